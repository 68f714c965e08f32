#include "backends/proof/products.h"

#include <array>
#include <chrono>
#include <vector>

#include "base/memory.h"
#include "kernels/op.h"

namespace mote::proof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostBytes = int64_t{64} << 20;

int64_t bytes_of(const Tensor& weight) {
  return weight.num_elements() * (weight.bits == 0 ? 8 * dtype_bytes(weight.dtype) : int64_t{weight.bits}) / 8;
}

Tensor vector_of(std::vector<float>& elements) {
  Tensor tensor;
  tensor.data = elements.data();
  tensor.rank = 2;
  tensor.sizes = {1, static_cast<int64_t>(elements.size())};
  tensor.set_contiguous_strides();
  return tensor;
}

Status multiply(const Op& op, const DelegateProduct& product, ThreadPool* threads) {
  std::vector<float> x(static_cast<size_t>(product.weight.size(1)), 0.5f);
  std::vector<float> y(static_cast<size_t>(product.weight.size(0)));
  Tensor in = vector_of(x), out = vector_of(y);
  const std::array<const Tensor*, 2> ins = {&in, &product.weight};
  const std::array<Tensor*, 1> outs = {&out};
  const std::array<Attribute, 1> attributes = {Attribute{"activations", {}, {}, product.activations}};
  Call call{};
  call.inputs = ins;
  call.outputs = outs;
  call.attributes = attributes;
  MOTE_RETURN_IF_ERROR(op.check(call));
  const AlignedMemory scratch = allocate_aligned(op.scratch_bytes(call, threads->num_threads()));
  MOTE_REQUIRE(scratch != nullptr, Code::kOutOfMemory, "no memory for a product");
  KernelContext context;
  context.threads = threads;
  context.scratch = {scratch.get(), op.scratch_bytes(call, threads->num_threads())};
  return op.run(call, context);
}

}  // namespace

uint64_t cpu_ns_of(std::span<const DelegateProduct> products, const DelegateSource& source) {
  const Op* op = find_op("mote.linear");
  if (op == nullptr || products.empty() || !source.make_threads) return 0;
  const Result<std::unique_ptr<ThreadPool>> threads = source.make_threads();
  if (!threads.ok()) return 0;
  int64_t all = 0, done = 0;
  uint64_t ns = 0;
  for (const DelegateProduct& product : products) {
    all += bytes_of(product.weight);
    if (done >= kMostBytes) continue;
    if (done == 0 && !multiply(*op, product, threads->get()).ok()) return 0;  // its pages are read once before
    const Clock::time_point start = Clock::now();
    if (!multiply(*op, product, threads->get()).ok()) return 0;
    ns += static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    done += bytes_of(product.weight);
  }
  if (done == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(ns) * static_cast<double>(all) / static_cast<double>(done));
}

}  // namespace mote::proof
