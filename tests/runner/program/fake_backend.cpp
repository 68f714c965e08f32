#include "tests/runner/program/fake_backend.h"

#include <algorithm>

namespace mote::test {
namespace {

constexpr size_t kMaxRecords = 64;  // a fuzzer loads without end

struct Part {
  float factor = 0;
  std::vector<float> offsets;  // added to the last dimension; empty: none
};

Result<Part> read(const DelegatePart& source) {
  Part part;
  MOTE_REQUIRE(source.blob.size() == sizeof(part.factor), Code::kInvalidProgram,
               "%s: the blob has %zu bytes: must be 4", source.place.c_str(), source.blob.size());
  std::memcpy(&part.factor, source.blob.data(), sizeof(part.factor));
  if (source.weights.empty()) return part;
  const Tensor& weight = source.weights[0].tensor;
  MOTE_REQUIRE(
      source.weights.size() == 1 && weight.dtype == DType::kFloat32 && weight.bits == 0 && weight.num_elements() > 0,
      Code::kInvalidProgram, "%s: weights: must be one of float32", source.place.c_str());
  part.offsets.assign(weight.as<float>(), weight.as<float>() + weight.num_elements());
  return part;
}

struct FakeSnapshot final : DelegateSnapshot {
  explicit FakeSnapshot(int64_t at) : position(at) {}
  uint64_t held_bytes() const override { return sizeof(position); }
  Result<std::vector<std::byte>> to_bytes() const override {
    Bytes bytes(sizeof(position));
    put(bytes, 0, position);
    return bytes;
  }

  int64_t position;
};

class FakeDelegate final : public Delegate {
 public:
  FakeDelegate(FakeControls& controls, const std::vector<Part>& parts) : controls_(controls), parts_(parts) {}

  Result<size_t> prepare(size_t part, const Call& call, int64_t) override {
    MOTE_RETURN_IF_ERROR(controls_.prepare);
    MOTE_REQUIRE(part < parts_.size() && call.outputs.size() == 1, Code::kInvalidProgram, "outputs: must be one");
    const Tensor& output = *call.outputs[0];
    MOTE_REQUIRE(output.dtype == DType::kFloat32, Code::kInvalidProgram, "outputs[0]: must be float32");
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = *call.inputs[i];
      MOTE_REQUIRE(input.dtype == DType::kFloat32 && input.rank == output.rank && input.sizes == output.sizes,
                   Code::kInvalidProgram, "inputs[%zu]: must be float32 with the sizes of the output", i);
    }
    return controls_.scratch_bytes;
  }

  Status execute(size_t part, const Call& call, KernelContext& context) override {
    MOTE_RETURN_IF_ERROR(controls_.execute);
    if (controls_.executed.size() < kMaxRecords) controls_.executed.push_back(part);
    fill(context.scratch);
    const Part& run = parts_[part];
    for (int64_t i = 0; i < call.outputs[0]->num_elements(); ++i) {
      float sum = 0;
      for (const Tensor* input : call.inputs) sum += input->as<float>()[i];
      const float offset = run.offsets.empty() ? 0 : run.offsets[static_cast<size_t>(i) % run.offsets.size()];
      call.outputs[0]->as<float>()[i] = run.factor * sum + offset;
    }
    return {};
  }

  uint64_t held_bytes() const override { return controls_.held_bytes; }

  bool seek(int64_t position) override {
    if (position != 0 && !controls_.can_seek) return false;
    position_ = position;
    return true;
  }
  Result<std::shared_ptr<const DelegateSnapshot>> snapshot() const override {
    return std::shared_ptr<const DelegateSnapshot>(std::make_shared<FakeSnapshot>(position_));
  }
  Status restore(const DelegateSnapshot& snapshot) override {
    position_ = static_cast<const FakeSnapshot&>(snapshot).position;
    return {};
  }
  Result<std::shared_ptr<const DelegateSnapshot>> import(std::span<const std::byte> bytes) const override {
    int64_t position = 0;
    MOTE_REQUIRE(bytes.size() == sizeof(position), Code::kInvalidSession, "a state of %zu bytes: must be 8",
                 bytes.size());
    std::memcpy(&position, bytes.data(), sizeof(position));
    return std::shared_ptr<const DelegateSnapshot>(std::make_shared<FakeSnapshot>(position));
  }

 private:
  void fill(std::span<std::byte> scratch) {
    const bool is_aligned = reinterpret_cast<uintptr_t>(scratch.data()) % 64 == 0;
    if (!is_aligned || scratch.size() < controls_.scratch_bytes)
      ++controls_.num_bad_scratch;
    else
      std::ranges::fill(scratch, std::byte{0xff});
  }

  FakeControls& controls_;
  const std::vector<Part>& parts_;
  int64_t position_ = 0;
};

class FakeProgram final : public DelegateProgram {
 public:
  FakeProgram(FakeControls& controls, std::vector<Part> parts) : controls_(controls), parts_(std::move(parts)) {}

  Result<std::unique_ptr<Delegate>> open(const DelegateOptions&) const override {
    MOTE_RETURN_IF_ERROR(controls_.open);
    ++controls_.num_opened;
    return std::unique_ptr<Delegate>(new FakeDelegate(controls_, parts_));
  }
  bool has_state() const override { return controls_.has_state; }

 private:
  FakeControls& controls_;
  std::vector<Part> parts_;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::string name) : name_(std::move(name)), registration_(this) {}

  std::string_view name() const override { return name_; }
  Status check_device() const override { return fake(name_).check_device; }
  std::string why_not(const DelegateSource& source) const override {
    fake(name_).asked = source.parts.size();
    return fake(name_).why_not;
  }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override {
    FakeControls& controls = fake(name_);
    MOTE_RETURN_IF_ERROR(controls.load);
    std::vector<Part> parts;
    MOTE_RETURN_IF_ERROR(report(source.progress, 0.5));
    for (const DelegatePart& part : source.parts) {
      MOTE_ASSIGN(Part made, read(part));
      parts.push_back(std::move(made));
    }
    if (controls.loaded.size() < kMaxRecords) controls.loaded.push_back(std::move(source));
    return std::shared_ptr<const DelegateProgram>(std::make_shared<FakeProgram>(controls, std::move(parts)));
  }

 private:
  std::string name_;
  BackendRegistration registration_;
};

const FakeBackend fake_backend("fake");
const FakeBackend spare_backend("spare");
const FakeBackend third_backend("third");

}  // namespace

FakeControls& fake(const std::string& backend) {
  static std::map<std::string, FakeControls> all;
  return all[backend];
}

void reset_fakes() {
  for (const char* backend : {"fake", "spare", "third"}) fake(backend) = FakeControls();
}

Bytes fake_blob(float factor) {
  Bytes blob(sizeof(factor));
  put(blob, 0, factor);
  return blob;
}

}  // namespace mote::test
