// Elements chosen by indices: index_select, gather and scatter. Indices are data, so `run` checks them.
#include "kernels/ops/copy/copy.h"
#include "kernels/support/lines.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;

struct Params {
  int dim;
};

// Every index lies in [low, size).
Status expect_indices(const Tensor& index, int64_t low, int64_t size) {
  const Sizes sizes = Sizes::of(index);
  const Walk walk(index, sizes.span());
  const int64_t elements = index.num_elements();
  int64_t buffer[kBlock];
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t count = std::min(kBlock, elements - begin);
    const int64_t* values = walk.read(index.as<int64_t>(), begin, count, buffer);
    for (int64_t i = 0; i < count; ++i) {
      MOTE_REQUIRE(values[i] >= low && values[i] < size, Code::kInvalidArgument,
                   "index %lld is %lld: must be %lld..%lld", static_cast<long long>(begin + i),
                   static_cast<long long>(values[i]), static_cast<long long>(low), static_cast<long long>(size - 1));
    }
  }
  return Status();
}

Status check_select(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dense(x, "input 0"));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "input 0", 1, kMaxRank));
  MOTE_RETURN_IF_ERROR(expect_dtype(index, "input 1", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(index, "input 1", 1, 1));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  call.make_params<Params>().dim = dim;
  Sizes sizes = Sizes::of(x);
  sizes[dim] = index.size(0);
  return expect_output(call, 0, x.dtype, sizes.span());
}

// x with only its dimensions after `dim`.
Tensor dims_behind(const Tensor& x, int dim) {
  Tensor part = x;
  part.rank = x.rank - dim - 1;
  for (size_t i = 0; i < static_cast<size_t>(part.rank); ++i) {
    part.sizes[i] = x.sizes[i + static_cast<size_t>(dim) + 1];
    part.strides[i] = x.strides[i + static_cast<size_t>(dim) + 1];
  }
  return part;
}

template <typename T>
void select(const Tensor& x, const Tensor& index, const Tensor& y, int dim, ThreadPool& threads) {
  const Tensor inner = dims_behind(x, dim);
  const int64_t length = inner.num_elements(), chosen = index.size(0);
  const Sizes sizes = Sizes::of(inner);
  const Walk walk(inner, sizes.span());
  const int64_t grain = std::max<int64_t>(1, kElementGrain / length);
  threads.parallel_for(y.num_elements() / length, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = index.as<int64_t>()[row % chosen * index.stride(0)];
      if (at < 0) at += x.size(dim);
      int64_t offset = at * x.stride(dim), rest = row / chosen;
      for (int i = dim - 1; i >= 0; --i) {
        offset += rest % x.size(i) * x.stride(i);
        rest /= x.size(i);
      }
      T* to = y.as<T>() + row * length;
      T buffer[kBlock];
      for (int64_t first = 0; first < length; first += kBlock) {
        const int64_t count = std::min(kBlock, length - first);
        std::copy_n(walk.read(x.as<T>() + offset, first, count, buffer), count, to + first);
      }
    }
  });
}

Status run_select(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  const Tensor& y = *call.outputs[0];
  const int dim = call.get_params<Params>().dim;
  MOTE_RETURN_IF_ERROR(expect_indices(index, -x.size(dim), x.size(dim)));
  if (y.num_elements() == 0) return Status();
  with_element_type(y.dtype, [&]<typename T>() { select<T>(x, index, y, dim, *context.threads); });
  return Status();
}

OutputAxis select_axis(const SymbolicCall& call) {
  const auto dim = static_cast<int>(call.integer("dim", -1));
  const TokenAxis x = call.axis(0), index = call.axis(1);
  if (!index.exists()) return x.exists() && x.dim == dim ? OutputAxis(kMixesTokens) : x;
  return x.exists() ? OutputAxis(kMixesTokens) : index.at(dim);
}

// `index` has x's rank and lies within x in every dimension but `dim`.
Result<int> check_index(const Call& call) {
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dense(x, "input 0"));
  MOTE_RETURN_IF_ERROR(expect_dtype(index, "input 1", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(index, "input 1", x.rank, x.rank));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  for (int i = 0; i < x.rank; ++i) {
    MOTE_REQUIRE(i == dim || index.size(i) <= x.size(i), kBad,
                 "input 1 has size %lld in dimension %d: must be at most %lld", static_cast<long long>(index.size(i)),
                 i, static_cast<long long>(x.size(i)));
  }
  return dim;
}

Status check_gather(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 2, 2, 1));
  MOTE_ASSIGN(const int dim, check_index(call));
  call.make_params<Params>().dim = dim;
  return expect_output(call, 0, call.inputs[0]->dtype, Sizes::of(*call.inputs[1]).span());
}

// Lines with the sizes of the index and the strides of the tensor: element i of line n belongs to that of the index.
Lines lines_like(const Tensor& tensor, const Tensor& index, int dim) {
  Tensor part = tensor;
  part.sizes = index.sizes;
  return Lines(part, dim);
}

template <typename T>
void gather(const Tensor& x, const Tensor& index, const Tensor& y, int dim, ThreadPool& threads) {
  const Lines from = lines_like(x, index, dim), at(index, dim), to(y, dim);
  threads.parallel_for(at.count(), at.grain(), [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line) {
      const T* in = x.as<T>() + from.offset(line);
      const int64_t* indices = index.as<int64_t>() + at.offset(line);
      T* out = y.as<T>() + to.offset(line);
      for (int64_t i = 0; i < at.length(); ++i) out[i * to.stride()] = in[indices[i * at.stride()] * from.stride()];
    }
  });
}

Status run_gather(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  const int dim = call.get_params<Params>().dim;
  MOTE_RETURN_IF_ERROR(expect_indices(index, 0, x.rank == 0 ? 1 : x.size(dim)));
  if (index.num_elements() == 0) return Status();
  with_element_type(x.dtype, [&]<typename T>() { gather<T>(x, index, *call.outputs[0], dim, *context.threads); });
  return Status();
}

OutputAxis gather_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0), index = call.axis(1);
  if (!x.exists()) return index;
  return x == index && x.dim != call.integer("dim", -1) ? OutputAxis(x) : kMixesTokens;
}

Status check_scatter(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 3, 1));
  MOTE_ASSIGN(const int dim, check_index(call));
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  const Tensor& source = *call.inputs[2];
  MOTE_RETURN_IF_ERROR(expect_dtype(source, "input 2", {x.dtype}));
  MOTE_RETURN_IF_ERROR(expect_rank(source, "input 2", x.rank, x.rank));
  for (int i = 0; i < x.rank; ++i) {
    MOTE_REQUIRE(source.size(i) >= index.size(i), kBad, "input 2 has size %lld in dimension %d: must be at least %lld",
                 static_cast<long long>(source.size(i)), i, static_cast<long long>(index.size(i)));
  }
  call.make_params<Params>().dim = dim;
  return expect_output(call, 0, x.dtype, Sizes::of(x).span());
}

// Lines do not meet in y, and within a line the last of several equal indices wins.
template <typename T>
void scatter(const Tensor& index, const Tensor& source, const Tensor& y, int dim, ThreadPool& threads) {
  const Lines from = lines_like(source, index, dim), at(index, dim), to = lines_like(y, index, dim);
  threads.parallel_for(at.count(), at.grain(), [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line) {
      const T* in = source.as<T>() + from.offset(line);
      const int64_t* indices = index.as<int64_t>() + at.offset(line);
      T* out = y.as<T>() + to.offset(line);
      for (int64_t i = 0; i < at.length(); ++i) out[indices[i * at.stride()] * to.stride()] = in[i * from.stride()];
    }
  });
}

Status run_scatter(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  const Tensor& y = *call.outputs[0];
  const int dim = call.get_params<Params>().dim;
  MOTE_RETURN_IF_ERROR(expect_indices(index, 0, x.rank == 0 ? 1 : x.size(dim)));
  copy_strided(x, y, *context.threads);
  if (index.num_elements() == 0) return Status();
  with_element_type(x.dtype, [&]<typename T>() { scatter<T>(index, *call.inputs[2], y, dim, *context.threads); });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.index_select", .check = check_select, .run = run_select, .token_axis = select_axis);
MOTE_REGISTER_OP(.name = "aten.gather", .check = check_gather, .run = run_gather, .token_axis = gather_axis);
MOTE_REGISTER_OP(.name = "aten.scatter", .check = check_scatter, .run = run_scatter, .token_axis = joined_axis);

}  // namespace mote
