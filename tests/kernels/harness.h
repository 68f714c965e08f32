// Runs one op as an executor does: tensors with memory of their own, attributes, states, scratch with guards around it.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/op.h"
#include "kernels/ops/linear/packed_weights.h"

namespace mote::test {

// Splits a loop evenly over num_threads std::threads.
class TestPool : public ThreadPool {
 public:
  explicit TestPool(int num_threads) : num_threads_(num_threads) {}
  int num_threads() const override { return num_threads_; }
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end, int thread)>& body) override;

 private:
  int num_threads_;
};

using Shape = std::vector<int64_t>;

// A tensor that owns its elements.
struct Owned {
  std::vector<std::byte> bytes;
  Tensor tensor;

  template <typename T> T* as() { return tensor.as<T>(); }
  template <typename T> const T* as() const { return tensor.as<const T>(); }
  int64_t count() const { return tensor.num_elements(); }
};

Owned make(DType dtype, const Shape& shape);  // zeros, contiguous
Owned floats(const Shape& shape, const std::vector<float>& values);
Owned integers(const Shape& shape, const std::vector<int64_t>& values);
Owned bools(const Shape& shape, const std::vector<int>& values);
Owned random_floats(const Shape& shape, uint32_t seed, float scale = 1.0f);
// float16 or bfloat16 elements near those of `source`.
Owned narrow(const Owned& source, DType dtype);
// The same values with dimensions in memory in the order `order`: strided unless it is 0, 1, 2, ...
Owned with_layout(const Owned& source, const std::vector<int>& order);

// Tiles of random codes, multipliers and scales, and what they stand for.
enum class Multipliers : uint8_t { kAny, kNotNegative, kOne };
struct Tiles {
  Owned owned;
  std::vector<double> values;  // [experts, N, K]
};
Tiles random_tiles(const Shape& shape, int bits, int group_size, uint32_t seed,
                   Multipliers multipliers = Multipliers::kAny);
// The same with float16 scales. [N, K]
Tiles random_tiles(const Shape& shape, int bits, int group_size, const TileScales& scales, uint32_t seed);

class OpCall {
 public:
  explicit OpCall(const std::string& name) : name_(name) {}

  OpCall& input(const Owned& tensor);  // outlives the call
  OpCall& input(Owned&& tensor);
  OpCall& absent();
  OpCall& output(DType dtype, const Shape& shape);
  OpCall& integers(const std::string& name, const std::vector<int64_t>& values);
  OpCall& number(const std::string& name, double value);
  OpCall& text(const std::string& name, const std::string& value);
  OpCall& state(const StateShape& shape);
  OpCall& caches(std::vector<KvCache>* caches);
  OpCall& recurrent(std::vector<RecurrentState>* states);
  OpCall& sequences(const std::vector<SequenceStates>* sequences);  // instead of caches and recurrent states of one

  Status check();
  // check, then run with this many threads; outputs are filled with garbage before.
  Status run(int num_threads = 1);

  Owned& result(size_t index = 0) { return outputs_[index]; }
  Call& call() { return call_; }

 private:
  struct NamedAttribute {
    std::string name;
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    std::string text;
    bool is_text = false;
  };
  NamedAttribute& attribute(const std::string& name);
  void assemble();

  std::string name_;
  std::vector<const Tensor*> inputs_;
  std::deque<Tensor> input_tensors_;
  std::deque<Owned> kept_;
  std::deque<Owned> outputs_;
  std::vector<Tensor*> output_pointers_;
  std::deque<NamedAttribute> attributes_;
  std::vector<Attribute> attribute_views_;
  std::vector<StateShape> state_shapes_;
  std::vector<KvCache>* caches_ = nullptr;
  std::vector<RecurrentState>* recurrent_ = nullptr;
  const std::vector<SequenceStates>* sequences_ = nullptr;
  std::unique_ptr<PackedWeights> packed_weights_ = std::make_unique<PackedWeights>();
  Call call_;
};

// Largest |actual - expected| over the largest |expected| (at least 1e-6); infinite where only one of them is NaN.
double relative_error(const float* actual, const std::vector<double>& expected);
bool same_bits(const Owned& a, const Owned& b);
std::vector<double> to_doubles(const Owned& tensor);  // row-major, whatever the strides
// Float rows as int8 activations stand for them: (code - zero) * scale.
std::vector<double> quantised_rows(const Owned& x);
// The same for runs of `length` with a scale each and no zero: scale * code.
std::vector<double> quantised_runs(const Owned& x, int64_t length);
// Contiguous rows, rotated as docs/ops.md says, in float32.
Owned rotated_rows(const Owned& x);
// [T, K] x [N, K]: x W^T
std::vector<double> multiply_rows(const std::vector<double>& x, const std::vector<double>& weight, int64_t n,
                                  int64_t k);

}  // namespace mote::test
