// Runs one part with XNNPACK for tests in Python. Standard input, in units of int64 (bytes are padded to 8):
//   bytes of the blob, blob; weights: count, each: dtype, bits, group_size, rank, sizes, bytes, data;
//   T; inputs: count, each: rank, sizes, float32 data; outputs: count, each: rank, sizes
// Standard output: the outputs, float32. A refusal goes to standard error and gives status 1.
#include <cstdio>
#include <cstring>
#include <deque>

#include "tests/backends/xnnpack/harness.h"

namespace mote::xnnpack::test {
namespace {

class Reader {
 public:
  int64_t integer() {
    int64_t value = 0;
    read(&value, sizeof(value));
    return value;
  }
  Bytes bytes(int64_t count) {
    Bytes data(static_cast<size_t>((count + 7) / 8 * 8));
    read(data.data(), data.size());
    data.resize(static_cast<size_t>(count));
    return data;
  }
  mote::test::Shape shape() {
    mote::test::Shape sizes(static_cast<size_t>(integer()));
    for (int64_t& size : sizes) size = integer();
    return sizes;
  }
  Owned weight() {
    const auto dtype = static_cast<DType>(integer());
    const auto bits = static_cast<uint8_t>(integer());
    const auto group_size = static_cast<int32_t>(integer());
    Owned owned = mote::test::make(dtype, shape());
    owned.tensor.bits = bits;
    owned.tensor.group_size = group_size;
    owned.bytes = bytes(integer());
    owned.tensor.data = owned.bytes.data();
    return owned;
  }
  Owned input() {
    Owned owned = mote::test::make(DType::kFloat32, shape());
    const Bytes data = bytes(owned.count() * 4);
    std::memcpy(owned.tensor.data, data.data(), data.size());
    return owned;
  }

 private:
  static void read(void* to, size_t count) {
    if (std::fread(to, 1, count, stdin) != count) std::exit(2);
  }
};

int run() {
  Reader reader;
  if (!has_library()) return 3;
  const Bytes blob = reader.bytes(reader.integer());
  std::deque<Owned> weights, inputs;
  for (int64_t count = reader.integer(); count > 0; --count) weights.push_back(reader.weight());
  const int64_t tokens = reader.integer();
  for (int64_t count = reader.integer(); count > 0; --count) inputs.push_back(reader.input());
  std::vector<mote::test::Shape> outputs;
  for (int64_t count = reader.integer(); count > 0; --count) outputs.push_back(reader.shape());
  std::vector<const Owned*> weight_pointers, input_pointers;
  for (const Owned& weight : weights) weight_pointers.push_back(&weight);
  for (const Owned& input : inputs) input_pointers.push_back(&input);
  Loaded loaded(blob, weight_pointers);
  const Status status = loaded.run(input_pointers, outputs, tokens);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Owned& output = loaded.output(i);
    std::fwrite(output.tensor.data, 4, static_cast<size_t>(output.count()), stdout);
  }
  return 0;
}

}  // namespace
}  // namespace mote::xnnpack::test

int main() { return mote::xnnpack::test::run(); }
