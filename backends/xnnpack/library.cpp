#include "backends/xnnpack/library.h"

#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"

namespace mote::xnnpack {
namespace {

constexpr float kSample = -0.75f;
constexpr float kPositiveSample = 0.75f;

struct UnaryProof {
  Unary function;
  float input;
  double expected;
};

std::vector<UnaryProof> unary_proofs() {
  const double x = kSample, p = kPositiveSample;
  const double tanh_gelu = 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  return {{Unary::kAbs, kSample, p},
          {Unary::kApproximateGelu, kSample, tanh_gelu},
          {Unary::kBankersRounding, kSample, -1},
          {Unary::kCeiling, kSample, 0},
          {Unary::kClamp, kSample, -0.5},
          {Unary::kCosine, kSample, std::cos(x)},
          {Unary::kElu, kSample, std::expm1(x)},
          {Unary::kExp, kSample, std::exp(x)},
          {Unary::kFloor, kSample, -1},
          {Unary::kGelu, kSample, 0.5 * x * std::erfc(-x / std::sqrt(2.0))},
          {Unary::kLeakyRelu, kSample, x * 0.25},
          {Unary::kLog, kPositiveSample, std::log(p)},
          {Unary::kNegate, kSample, p},
          {Unary::kReciprocalSquareRoot, kPositiveSample, 1 / std::sqrt(p)},
          {Unary::kSigmoid, kSample, 1 / (1 + std::exp(-x))},
          {Unary::kSine, kSample, std::sin(x)},
          {Unary::kSquareRoot, kPositiveSample, std::sqrt(p)},
          {Unary::kSquare, kSample, x * x},
          {Unary::kTanh, kSample, std::tanh(x)}};
}

// a function of kSample and kPositiveSample
struct BinaryProof {
  Binary function;
  double expected;
};
constexpr std::array kBinaryProofs = {
    BinaryProof{Binary::kAdd, 0},     BinaryProof{Binary::kSubtract, -1.5}, BinaryProof{Binary::kMultiply, -0.5625},
    BinaryProof{Binary::kDivide, -1}, BinaryProof{Binary::kMaximum, 0.75},  BinaryProof{Binary::kMinimum, -0.75}};

// One subgraph that computes every function at once, a value each: two inputs, then the outputs.
class Probe {
 public:
  explicit Probe(const Api& api) : api_(api) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    if (runtime_ != nullptr) api_.delete_runtime(runtime_);
    if (subgraph_ != nullptr) api_.delete_subgraph(subgraph_);
    if (workspace_ != nullptr) api_.release_workspace(workspace_);
  }

  // The outputs; nothing if the library refuses a step.
  std::vector<float> run(const std::vector<UnaryProof>& unary) {
    const size_t num_outputs = unary.size() + kBinaryProofs.size();
    std::vector<std::array<float, 8>> data(2 + num_outputs);  // room for reads beyond the end
    data[0][0] = kSample;
    data[1][0] = kPositiveSample;
    if (!define(unary) || !compute(data)) return {};
    std::vector<float> results;
    for (size_t i = 0; i < num_outputs; ++i) results.push_back(data[2 + i][0]);
    return results;
  }

 private:
  static bool ok(XnnStatus status) { return status == XnnStatus::kSuccess; }

  bool define(const std::vector<UnaryProof>& unary) {
    const size_t num_values = 2 + unary.size() + kBinaryProofs.size();
    if (!ok(api_.create_subgraph(static_cast<uint32_t>(num_values), 0, &subgraph_))) return false;
    const size_t one = 1;
    uint32_t id = 0;
    for (uint32_t i = 0; i < num_values; ++i) {
      const uint32_t flags = i < 2 ? kExternalInput : kExternalOutput;
      if (!ok(api_.define_tensor_value(subgraph_, Datatype::kFloat32, 1, &one, nullptr, i, flags, &id))) return false;
    }
    uint32_t output = 2;
    for (const UnaryProof& proof : unary) {
      UnaryParams params{};
      if (proof.function == Unary::kClamp) params.clamp = {-0.5f, 0.5f};
      if (proof.function == Unary::kElu) params.elu.alpha = 1.0f;
      if (proof.function == Unary::kLeakyRelu) params.leaky_relu.negative_slope = 0.25f;
      const uint32_t input = proof.input == kSample ? 0 : 1;
      if (!ok(api_.define_unary(subgraph_, proof.function, &params, input, output++, 0))) return false;
    }
    const BinaryParams unbounded{-INFINITY, INFINITY};
    for (const BinaryProof& proof : kBinaryProofs) {
      if (!ok(api_.define_binary(subgraph_, proof.function, &unbounded, 0, 1, output++, 0))) return false;
    }
    return true;
  }

  bool compute(std::vector<std::array<float, 8>>& data) {
    std::vector<ExternalValue> values;
    for (uint32_t i = 0; i < data.size(); ++i) values.push_back({i, data[i].data()});
    return ok(api_.create_workspace(&workspace_)) &&
           ok(api_.create_runtime_v4(subgraph_, nullptr, workspace_, nullptr, 0, &runtime_)) &&
           ok(api_.reshape_runtime(runtime_)) && ok(api_.setup_runtime_v2(runtime_, values.size(), values.data())) &&
           ok(api_.invoke_runtime(runtime_));
  }

  const Api& api_;
  Subgraph* subgraph_ = nullptr;
  Workspace* workspace_ = nullptr;
  Runtime* runtime_ = nullptr;
};

Status prove(const Api& api, const std::string& name) {
  const std::vector<UnaryProof> unary = unary_proofs();
  const std::vector<float> results = Probe(api).run(unary);
  MOTE_REQUIRE(!results.empty(), Code::kInvalidArgument,
               "%s: this XNNPACK cannot compute a graph of unary and binary operators", name.c_str());
  for (size_t i = 0; i < results.size(); ++i) {
    const bool is_unary = i < unary.size();
    const double expected = is_unary ? unary[i].expected : kBinaryProofs[i - unary.size()].expected;
    const int number =
        is_unary ? static_cast<int>(unary[i].function) : static_cast<int>(kBinaryProofs[i - unary.size()].function);
    MOTE_REQUIRE(std::abs(results[i] - expected) < 1e-4, Code::kInvalidArgument,
                 "%s: this XNNPACK computes %g as its %s operator %d where %g is expected: its version numbers "
                 "operators differently; "
                 "versions from March 2025 on are known to work",
                 name.c_str(), static_cast<double>(results[i]), is_unary ? "unary" : "binary", number, expected);
  }
  return {};
}

// name: that of the library, if it is found
Result<const Api*> load(std::string& name) {
  MOTE_ASSIGN(const Functions found, find_functions());
  const XnnStatus status = found.api.initialize(nullptr);
  MOTE_REQUIRE(status == XnnStatus::kSuccess, Code::kInvalidArgument, "%s: XNNPACK does not start on this device: %s",
               found.library.c_str(), status_name(status));
  MOTE_RETURN_IF_ERROR(prove(found.api, found.library));
  name = found.library;
  return static_cast<const Api*>(new Api(found.api));
}

}  // namespace

Result<const Api*> library() {
  static std::string& name = *new std::string;
  static const Result<const Api*>& loaded = *new Result<const Api*>(load(name));
  // Not while the other threads wait for the library.
  static std::atomic_flag is_said;
  if (loaded.ok() && !is_said.test_and_set()) MOTE_LOG_LINE(kInfo, "xnnpack: %s", name.c_str());
  return loaded;
}

}  // namespace mote::xnnpack
