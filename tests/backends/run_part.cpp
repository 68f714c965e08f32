// run_part BACKEND: runs one part for tests in Python. Standard input, in units of int64 (bytes are padded to 8):
//   bytes of the blob, blob; weights: count, each: dtype, bits, group_size, rank, sizes, bytes, data;
//   T; inputs: count, each: dtype, rank, sizes, data; outputs: count, each: dtype, rank, sizes
// Standard output: the outputs. A refusal goes to standard error and gives status 1.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include <unistd.h>

#include "runner/program/delegates.h"
#include "runner/program/thread_pool.h"
#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

constexpr int kNoDevice = 3;
using Bytes = std::vector<std::byte>;

class Reader {
 public:
  int64_t integer() {
    int64_t value = 0;
    read(&value, sizeof(value));
    return value;
  }
  // At a multiple of 64 bytes, as in a file.
  std::span<const std::byte> blob() {
    const int64_t count = integer();
    const Bytes data = bytes(count);
    const size_t room = (data.size() + 63) / 64 * 64;
    auto* place = static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(room, 64)));
    std::memcpy(place, data.data(), data.size());
    blob_.reset(place);
    return {place, data.size()};
  }
  Owned weight() {
    const auto dtype = static_cast<DType>(integer());
    const auto bits = static_cast<uint8_t>(integer());
    const auto group_size = static_cast<int32_t>(integer());
    Owned owned = make(dtype, shape());
    owned.tensor.bits = bits;
    owned.tensor.group_size = group_size;
    owned.bytes = bytes(integer());
    owned.tensor.data = owned.bytes.data();
    return owned;
  }
  Owned input() {
    const auto dtype = static_cast<DType>(integer());
    Owned owned = make(dtype, shape());
    const Bytes data = bytes(owned.count() * dtype_bytes(dtype));
    std::memcpy(owned.tensor.data, data.data(), data.size());
    return owned;
  }
  Shape shape() {
    Shape sizes(static_cast<size_t>(integer()));
    for (int64_t& size : sizes) size = integer();
    return sizes;
  }

 private:
  Bytes bytes(int64_t count) {
    Bytes data(static_cast<size_t>((count + 7) / 8 * 8));
    read(data.data(), data.size());
    data.resize(static_cast<size_t>(count));
    return data;
  }
  static void read(void* to, size_t count) {
    if (std::fread(to, 1, count, stdin) != count) {
      std::fprintf(stderr, "the request ends early\n");
      std::exit(2);
    }
  }

  std::unique_ptr<std::byte, void (*)(void*)> blob_{nullptr, std::free};
};

// Standard output. What libraries print there from now on goes to standard error.
std::FILE* take_output() {
  std::FILE* output = ::fdopen(::dup(STDOUT_FILENO), "wb");
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return output;
}

// Loads a part, runs it once with T = tokens and writes what it gives.
Status run(const Backend& backend, std::FILE* to) {
  Reader reader;
  DelegatePart part;
  part.place = "test.mote: delegates[0] (" + std::string(backend.name()) + ")";
  part.blob = reader.blob();
  std::deque<Owned> weights, inputs, outputs;
  for (int64_t count = reader.integer(); count > 0; --count) weights.push_back(reader.weight());
  for (size_t i = 0; i < weights.size(); ++i)
    part.weights.push_back({static_cast<uint32_t>(i), "w", weights[i].tensor});
  DelegateSource source;
  source.parts.push_back(std::move(part));
  MOTE_ASSIGN(const auto program, backend.load(std::move(source)));
  MOTE_ASSIGN(const auto pool, make_thread_pool(1));
  MOTE_ASSIGN(const auto delegate, program->open({.threads = pool.get(), .max_tokens = 4096}));

  const int64_t tokens = reader.integer();
  std::vector<const Tensor*> ins;
  std::vector<Tensor*> outs;
  for (int64_t count = reader.integer(); count > 0; --count) inputs.push_back(reader.input());
  for (int64_t count = reader.integer(); count > 0; --count) {
    const auto dtype = static_cast<DType>(reader.integer());
    outputs.push_back(make(dtype, reader.shape()));
  }
  for (const Owned& input : inputs) ins.push_back(&input.tensor);
  for (Owned& output : outputs) {
    if (output.tensor.dtype == DType::kFloat32) std::fill_n(output.as<float>(), output.count(), NAN);
    outs.push_back(&output.tensor);
  }
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  MOTE_RETURN_IF_ERROR(delegate->prepare(0, call, tokens).status());
  KernelContext context;
  context.threads = pool.get();
  const char* count_of_largest = std::getenv("MOTE_TEST_LARGEST");
  if (count_of_largest != nullptr) delegate->want_largest(static_cast<size_t>(std::atoi(count_of_largest)));
  MOTE_RETURN_IF_ERROR(delegate->execute(0, call, context));
  if (!delegate->largest().empty()) MOTE_RETURN_IF_ERROR(delegate->read_output(outs[0]));
  for (const Owned& output : outputs) {
    std::fwrite(output.tensor.data, static_cast<size_t>(dtype_bytes(output.tensor.dtype)),
                static_cast<size_t>(output.count()), to);
  }
  std::fwrite(delegate->largest().data(), sizeof(LargestElement), delegate->largest().size(), to);
  return {};
}

int run_backend(const char* name) {
  std::FILE* output = take_output();
  const Backend* backend = find_backend(name);
  const Status device =
      backend != nullptr ? backend->check_device() : Status(Code::kUnsupportedBackend, "is not built");
  if (!device.ok()) {
    std::fprintf(output, "skipped: %s\n", device.message().c_str());
    std::fclose(output);
    return kNoDevice;
  }
  const Status status = run(*backend, output);
  std::fclose(output);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace mote::test

int main(int, char** arguments) { return mote::test::run_backend(arguments[1]); }
