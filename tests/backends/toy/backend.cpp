// The toy backend at run time. Three variables of the environment are for tests: with MOTE_TOY_FORGETS it goes back
// only as far as it must, with MOTE_TOY_HIDES it gives its keys and values to nobody, and with MOTE_TOY_FAILS=n the
// n-th part that a session executes fails.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <new>

#include "runner/program/delegate.h"
#include "toy_schema_generated.h"

namespace mote::toy {
namespace {

constexpr int32_t kMaxStates = 1 << 16;
constexpr int32_t kMaxWidth = 1 << 16;

// Elements of a position's keys and values: all heads.
struct Widths {
  int64_t key = 0, value = 0;
  bool operator==(const Widths&) const = default;
};

// Keys and values of one state: a row for each position.
struct Cache {
  std::vector<float> keys, values;

  void resize(int64_t positions, Widths widths) {
    keys.resize(static_cast<size_t>(positions * widths.key));
    values.resize(static_cast<size_t>(positions * widths.value));
  }
};
using Caches = std::map<int32_t, Cache>;  // by state

struct Part {
  std::string place;
  const fb::Part* part;  // verified, in the file
};

bool is_within(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

Status check(const Part& part) {
  const auto invalid = [&](const char* what) { return Status(Code::kInvalidProgram, part.place + ": " + what); };
  if (part.part->tokens() < 0) return invalid("tokens: must be at least 0");
  for (const fb::Attention* attention : *part.part->attentions()) {
    if (!is_within(attention->state(), 0, kMaxStates)) return invalid("attentions.state: must be 0..65536");
    if (attention->output() < 0 || attention->positions() < 0)
      return invalid("attentions.output, positions: must be at least 0");
    const bool has_sizes =
        is_within(attention->num_heads(), 1, kMaxWidth) && is_within(attention->num_kv_heads(), 1, kMaxWidth) &&
        is_within(attention->head_dim(), 1, kMaxWidth) && is_within(attention->value_head_dim(), 1, kMaxWidth);
    if (!has_sizes || attention->num_heads() % attention->num_kv_heads() != 0)
      return invalid("attentions: heads and widths do not fit");
    for (const fb::Operand* operand : {attention->q(), attention->k(), attention->v()}) {
      const bool fits = operand->input() >= 0 && operand->offset() >= 0 && operand->token_stride() >= 0;
      if (!fits) return invalid("attentions.q, k, v: must be at least 0");
    }
  }
  return {};
}

// Shared by sessions; the states of parts that name the same one have one shape.
class Parts {
 public:
  static Result<std::shared_ptr<const Parts>> load(const DelegateSource& source) {
    const auto parts = std::make_shared<Parts>();
    for (const DelegatePart& given : source.parts) {
      flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(given.blob.data()), given.blob.size());
      MOTE_REQUIRE(fb::VerifyPartBuffer(verifier) && given.weights.empty(), Code::kInvalidProgram,
                   "%s: is not a blob of this backend", given.place.c_str());
      parts->parts_.push_back({given.place, fb::GetPart(given.blob.data())});
      MOTE_RETURN_IF_ERROR(check(parts->parts_.back()));
      MOTE_RETURN_IF_ERROR(parts->add_widths(parts->parts_.back()));
    }
    return std::shared_ptr<const Parts>(parts);
  }

  const Part& part(size_t index) const { return parts_[index]; }
  const std::map<int32_t, Widths>& widths() const { return widths_; }  // by state

 private:
  Status add_widths(const Part& part) {
    for (const fb::Attention* attention : *part.part->attentions()) {
      const Widths widths{int64_t{attention->num_kv_heads()} * attention->head_dim(),
                          int64_t{attention->num_kv_heads()} * attention->value_head_dim()};
      const auto [entry, is_new] = widths_.try_emplace(attention->state(), widths);
      MOTE_REQUIRE(is_new || entry->second == widths, Code::kInvalidProgram,
                   "%s: attentions.state = %d: has another shape elsewhere", part.place.c_str(), attention->state());
    }
    return {};
  }

  std::vector<Part> parts_;
  std::map<int32_t, Widths> widths_;
};

class Snapshot final : public DelegateSnapshot {
 public:
  explicit Snapshot(Caches caches) : caches_(std::move(caches)) {}

  const Caches& caches() const { return caches_; }
  uint64_t held_bytes() const override {
    uint64_t elements = 0;
    for (const auto& [state, cache] : caches_) elements += cache.keys.size() + cache.values.size();
    return elements * sizeof(float);
  }
  // Keys and values of each state, one after the other.
  Result<std::vector<std::byte>> to_bytes() const override {
    std::vector<std::byte> bytes;
    for (const auto& [state, cache] : caches_) {
      for (const std::vector<float>* part : {&cache.keys, &cache.values}) {
        const std::span<const std::byte> raw = std::as_bytes(std::span(*part));
        bytes.insert(bytes.end(), raw.begin(), raw.end());
      }
    }
    return bytes;
  }

 private:
  Caches caches_;
};

// Elements of q, k or v of one call.
struct Reader {
  const float* data;
  int64_t head_stride, token_stride;

  Reader(const Call& call, const fb::Operand& operand, int64_t tokens, int64_t width)
      : data(call.inputs[static_cast<size_t>(operand.input())]->as<float>() + operand.offset()),
        head_stride(operand.token_stride() == 0 ? tokens * width : width),
        token_stride(operand.token_stride() == 0 ? width : operand.token_stride()) {}
  const float* at(int64_t head, int64_t token) const { return data + head * head_stride + token * token_stride; }
};

class ToyDelegate final : public Delegate {
 public:
  explicit ToyDelegate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {
    for (const auto& [state, widths] : parts_->widths()) caches_[state];
    if (const char* fails = std::getenv("MOTE_TOY_FAILS")) calls_to_failure_ = std::atoll(fails);
  }

  Result<size_t> prepare(size_t part, const Call& call, int64_t tokens) override {
    const Part& wanted = parts_->part(part);
    MOTE_REQUIRE(wanted.part->tokens() == 0 || wanted.part->tokens() == tokens, Code::kInvalidProgram,
                 "%s: tokens = %lld: the call has %lld", wanted.place.c_str(),
                 static_cast<long long>(wanted.part->tokens()), static_cast<long long>(tokens));
    for (const fb::Attention* attention : *wanted.part->attentions()) {
      MOTE_REQUIRE(fits(*attention, call, tokens), Code::kInvalidProgram, "%s: attentions: the call has other sizes",
                   wanted.place.c_str());
    }
    return 0;
  }

  Status execute(size_t part, const Call& call, KernelContext&) override try {
    if (calls_to_failure_ > 0 && --calls_to_failure_ == 0) return {Code::kInternal, "the toy fails as it was told to"};
    for (const fb::Attention* attention : *parts_->part(part).part->attentions())
      MOTE_RETURN_IF_ERROR(attend(*attention, call));
    return {};
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for keys and values"}; }

  uint64_t held_bytes() const override { return Snapshot(caches_).held_bytes(); }

  bool seek(int64_t position) override {
    const bool is_near = position == 0 || position >= latest_call_;
    if ((!is_near && std::getenv("MOTE_TOY_FORGETS") != nullptr) || position > positions()) return false;
    for (auto& [state, cache] : caches_) cache.resize(position, parts_->widths().at(state));
    return true;
  }

  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const override {
    return std::shared_ptr<const DelegateSnapshot>(std::make_shared<Snapshot>(caches_));
  }

  Status restore(const DelegateSnapshot& snapshot) override {
    caches_ = static_cast<const Snapshot&>(snapshot).caches();
    latest_call_ = positions();
    return {};
  }

  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const override {
    int64_t width = 0;
    for (const auto& [state, widths] : parts_->widths()) width += widths.key + widths.value;
    const size_t row = static_cast<size_t>(width) * sizeof(float);
    MOTE_REQUIRE(bytes.size() % row == 0, Code::kInvalidSession,
                 "%zu bytes of keys and values: must be a multiple of %zu", bytes.size(), row);
    Caches caches;
    const auto count = static_cast<int64_t>(bytes.size() / row);
    for (const auto& [state, widths] : parts_->widths()) {
      caches[state].resize(count, widths);
      for (std::vector<float>* to : {&caches[state].keys, &caches[state].values}) {
        std::memcpy(to->data(), bytes.data(), to->size() * sizeof(float));
        bytes = bytes.subspan(to->size() * sizeof(float));
      }
    }
    return std::shared_ptr<const DelegateSnapshot>(std::make_shared<Snapshot>(std::move(caches)));
  }

  std::optional<DType> cache_dtype(int32_t state) const override {
    const bool gives = std::getenv("MOTE_TOY_HIDES") == nullptr && caches_.contains(state);
    return gives ? std::optional(DType::kFloat32) : std::nullopt;
  }
  Status read_cache(int32_t state, std::span<std::byte> keys, std::span<std::byte> values) const override {
    const Cache& cache = caches_.at(state);
    std::memcpy(keys.data(), cache.keys.data(), keys.size());
    std::memcpy(values.data(), cache.values.data(), values.size());
    return {};
  }
  Status write_cache(int32_t state, int64_t positions, std::span<const std::byte> keys,
                     std::span<const std::byte> values) override try {
    Cache& cache = caches_.at(state);
    cache.resize(positions, parts_->widths().at(state));
    std::memcpy(cache.keys.data(), keys.data(), keys.size());
    std::memcpy(cache.values.data(), values.data(), values.size());
    latest_call_ = positions;
    return {};
  } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory for keys and values"}; }

 private:
  // That all states hold; a call that failed may have left more in some.
  int64_t positions() const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& [state, cache] : caches_) {
      least = std::min(least, static_cast<int64_t>(cache.keys.size()) / parts_->widths().at(state).key);
    }
    return least;
  }

  static bool fits(const fb::Attention& attention, const Call& call, int64_t tokens) {
    const auto inputs = static_cast<int32_t>(call.inputs.size());
    const auto has = [&](const fb::Operand& operand, int64_t heads, int64_t width) {
      if (operand.input() >= inputs) return false;
      const Tensor& input = *call.inputs[static_cast<size_t>(operand.input())];
      const int64_t last = operand.token_stride() == 0
                               ? heads * tokens * width
                               : operand.offset() + (tokens - 1) * operand.token_stride() + heads * width;
      return input.dtype == DType::kFloat32 && (operand.token_stride() != 0 || operand.offset() == 0) &&
             last <= input.num_elements();
    };
    if (!has(*attention.q(), attention.num_heads(), attention.head_dim()) ||
        !has(*attention.k(), attention.num_kv_heads(), attention.head_dim()) ||
        !has(*attention.v(), attention.num_kv_heads(), attention.value_head_dim())) {
      return false;
    }
    if (attention.positions() >= inputs || attention.output() >= static_cast<int32_t>(call.outputs.size()))
      return false;
    const Tensor& positions = *call.inputs[static_cast<size_t>(attention.positions())];
    const Tensor& output = *call.outputs[static_cast<size_t>(attention.output())];
    return positions.dtype == DType::kInt64 && positions.num_elements() == tokens && output.dtype == DType::kFloat32 &&
           output.num_elements() == tokens * attention.num_heads() * attention.value_head_dim();
  }

  Status attend(const fb::Attention& attention, const Call& call) {
    const Tensor& positions = *call.inputs[static_cast<size_t>(attention.positions())];
    const int64_t tokens = positions.num_elements(), width = attention.head_dim(),
                  value_width = attention.value_head_dim();
    Cache& cache = caches_.at(attention.state());
    const int64_t first = static_cast<int64_t>(cache.keys.size()) / parts_->widths().at(attention.state()).key;
    MOTE_REQUIRE(positions.as<int64_t>()[0] == first, Code::kInvalidArgument, "position %lld: the toy is at %lld",
                 static_cast<long long>(positions.as<int64_t>()[0]), static_cast<long long>(first));
    latest_call_ = first;
    const Reader q(call, *attention.q(), tokens, width), k(call, *attention.k(), tokens, width);
    const Reader v(call, *attention.v(), tokens, value_width);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t head = 0; head < attention.num_kv_heads(); ++head) {
        cache.keys.insert(cache.keys.end(), k.at(head, t), k.at(head, t) + width);
        cache.values.insert(cache.values.end(), v.at(head, t), v.at(head, t) + value_width);
      }
    }
    float* output = call.outputs[static_cast<size_t>(attention.output())]->as<float>();
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t head = 0; head < attention.num_heads(); ++head, output += value_width) {
        attend_one(attention, cache, q.at(head, t), head, first + t + 1, output);
      }
    }
    return {};
  }

  // One query of one head over the first `count` positions.
  static void attend_one(const fb::Attention& attention, const Cache& cache, const float* query, int64_t head,
                         int64_t count, float* output) {
    const int64_t kv_heads = attention.num_kv_heads(), kv_head = head * kv_heads / attention.num_heads();
    const int64_t width = attention.head_dim(), value_width = attention.value_head_dim();
    std::vector<double> weights(static_cast<size_t>(count));
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t p = 0; p < count; ++p) {
      const float* key = cache.keys.data() + (p * kv_heads + kv_head) * width;
      double score = 0;
      for (int64_t i = 0; i < width; ++i) score += double{query[i]} * key[i];
      weights[static_cast<size_t>(p)] = score * attention.scale();
      largest = std::max(largest, weights[static_cast<size_t>(p)]);
    }
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (int64_t i = 0; i < value_width; ++i) {
      double mean = 0;
      for (int64_t p = 0; p < count; ++p)
        mean += weights[static_cast<size_t>(p)] *
                cache.values[static_cast<size_t>((p * kv_heads + kv_head) * value_width + i)];
      output[i] = static_cast<float>(mean / sum);
    }
  }

  std::shared_ptr<const Parts> parts_;
  Caches caches_;
  int64_t latest_call_ = 0;  // the position that it began at
  int64_t calls_to_failure_ = 0;
};

class ToyProgram final : public DelegateProgram {
 public:
  explicit ToyProgram(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions&) const override {
    return std::unique_ptr<Delegate>(std::make_unique<ToyDelegate>(parts_));
  }
  bool has_state() const override { return !parts_->widths().empty(); }

 private:
  std::shared_ptr<const Parts> parts_;
};

class ToyBackend final : public Backend {
 public:
  std::string_view name() const override { return "toy"; }
  Status check_device() const override { return {}; }
  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override try {
    MOTE_ASSIGN(auto parts, Parts::load(source));
    return std::shared_ptr<const DelegateProgram>(std::make_shared<ToyProgram>(std::move(parts)));
  } catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory for the parts of the toy"); }
};

const ToyBackend backend;
const BackendRegistration registration(&backend);

}  // namespace
}  // namespace mote::toy
