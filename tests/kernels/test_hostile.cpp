// Every op's check and scratch size are asked about thousands of random operands and attributes. Nothing may crash; run
// under the address and undefined behaviour sanitizers this also finds overflow.
#include <gtest/gtest.h>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : generator_(seed) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(generator_() % static_cast<uint64_t>(count)); }

  int64_t size() {
    const int64_t sizes[] = {
        0, 1, 1, 2, 3, 4, 8, 16, 32, 64, int64_t{1} << 20, int64_t{1} << 39, (int64_t{1} << 40) - 1};
    return sizes[below(13)];
  }
  int64_t integer() {
    const int64_t integers[] = {
        -1, 0, 0, 1, 1, 2, 3, 7, 8, int64_t{1} << 40, -(int64_t{1} << 48), int64_t{1} << 48, INT64_MAX, INT64_MIN};
    return integers[below(14)];
  }
  Tensor tensor() {
    Tensor tensor;
    tensor.rank = static_cast<int>(below(6)) == 0 ? static_cast<int>(below(10)) : static_cast<int>(below(5));
    const bool small = below(2) == 0;
    for (int64_t& one : tensor.sizes) one = small ? below(4) + (below(3) == 0 ? 30 : 0) : size();
    if (tensor.rank <= kMaxRank) tensor.set_contiguous_strides();
    if (below(8) == 0) tensor.strides[static_cast<size_t>(below(8))] = below(3) == 0 ? INT64_MAX : 0;
    tensor.dtype = below(3) == 0 ? static_cast<DType>(below(8)) : (below(4) == 0 ? DType::kInt64 : DType::kFloat32);
    if (below(5) == 0) {
      tensor.dtype = DType::kInt8;
      tensor.bits = static_cast<uint8_t>(below(10));
      tensor.group_size = static_cast<int32_t>(below(3) == 0 ? below(300) : 32);
      if (below(2) == 0) {
        tensor.scales = {static_cast<int32_t>(below(3) == 0 ? below(300) : 32), static_cast<WeightOffset>(below(4)),
                         below(2) == 0, nullptr};
      }
    }
    return tensor;
  }

 private:
  std::mt19937_64 generator_;
};

const char* kNames[] = {"size",  "dims",     "dim",     "start", "end",     "step",    "index",      "pad",
                        "value", "diagonal", "repeats", "k",     "largest", "keepdim", "descending", "min",
                        "max",   "eps",      "scale",   "state", "window",  "softcap", "unit_offset"};

struct Operands {
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> inputs;
  std::vector<Tensor*> outputs;
  std::vector<std::vector<int64_t>> integers;
  std::vector<double> number{1e300};
  std::vector<Attribute> attributes;
  std::vector<StateShape> states;
};

void fill(Random& random, Operands& o) {
  o.tensors.resize(8);
  for (Tensor& tensor : o.tensors) tensor = random.tensor();
  // Often the output is right, so that later checks are reached.
  if (random.below(2) == 0) o.tensors[6] = o.tensors[0];
  for (int64_t i = random.below(7); i > 0; --i) {
    o.inputs.push_back(
        random.below(10) == 0 ? nullptr : &o.tensors[static_cast<size_t>(random.below(3) == 0 ? 0 : random.below(6))]);
  }
  for (int64_t i = random.below(8) == 0 ? random.below(4) : 1 + random.below(2); i > 0; --i)
    o.outputs.push_back(&o.tensors[6 + i % 2]);
  for (size_t i = 0; i < std::size(kNames); ++i) {
    o.integers.emplace_back();
    const int64_t length = random.below(3) == 0 ? random.below(10) : 1;
    for (int64_t j = 0; j < length; ++j)
      o.integers.back().push_back(random.below(2) == 0 ? random.below(4) : random.integer());
  }
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (random.below(20) == 0) continue;
    Attribute attribute{kNames[i], o.integers[i], {}, {}};
    if (random.below(8) == 0) attribute = {kNames[i], {}, o.number, {}};
    if (random.below(20) == 0) attribute = {kNames[i], {}, {}, "half"};
    o.attributes.push_back(attribute);
  }
  StateShape state;
  state.is_kv_cache = random.below(2) == 0;
  state.num_heads = static_cast<int32_t>(random.below(3)) - 1;
  state.head_dim = state.value_head_dim = static_cast<int32_t>(random.below(3)) - 1;
  state.window = static_cast<int32_t>(random.below(3)) - 1;
  state.recurrent = random.tensor();
  if (state.recurrent.rank > kMaxRank) state.recurrent.rank = kMaxRank;
  o.states.push_back(state);
}

TEST(Hostile, checks_answer_for_any_operands) {
  const int rounds = 3000;
  for (const Op* op : all_ops()) {
    Random random(static_cast<uint32_t>(std::hash<std::string_view>()(op->name)));
    for (int round = 0; round < rounds; ++round) {
      Operands o;
      fill(random, o);
      Call call;
      call.inputs = o.inputs;
      call.outputs = o.outputs;
      call.attributes = o.attributes;
      call.state_shapes = o.states;
      const Status status = op->check(call);
      if (!status.ok()) {
        ASSERT_FALSE(status.message().empty()) << op->name;
        continue;
      }
      if (op->scratch_bytes != nullptr) { ASSERT_LT(op->scratch_bytes(call, 256), size_t{1} << 62) << op->name; }
    }
  }
}

TEST(Hostile, checks_answer_without_operands) {
  for (const Op* op : all_ops()) {
    Call call;
    if (op->name == "aten.full" || op->name == "aten.arange") continue;
    EXPECT_FALSE(op->check(call).ok()) << op->name;
  }
}

}  // namespace
}  // namespace mote::test
