// Tensors laid into larger ones: cat, constant_pad_nd and repeat_interleave.
#include <cstring>

#include "kernels/ops/copy/copy.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;

struct CatParams {
  int dim;
};

Status check_cat(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, call.inputs.size(), 1));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    MOTE_REQUIRE(call.inputs[i] != nullptr, kBad, "input %zu is absent: it is not optional", i);
  }
  const Tensor& first = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_rank(first, "input 0", 1, kMaxRank));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", first.rank));
  Sizes sizes = Sizes::of(first);
  sizes[dim] = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& x = *call.inputs[i];
    const std::string name = "input " + std::to_string(i);
    MOTE_RETURN_IF_ERROR(expect_dtype(x, name.c_str(), {first.dtype}));
    MOTE_RETURN_IF_ERROR(expect_rank(x, name.c_str(), first.rank, first.rank));
    Sizes expected = Sizes::of(first);
    expected[dim] = x.size(dim);
    MOTE_RETURN_IF_ERROR(expect_sizes(x, name.c_str(), expected.span()));
    sizes[dim] += x.size(dim);
    MOTE_REQUIRE(sizes[dim] <= kMaxTensorElements, kBad, "the inputs together exceed 2^40 in dimension %d", dim);
  }
  call.make_params<CatParams>().dim = dim;
  return expect_output(call, 0, first.dtype, sizes.span());
}

// Copies x, as rows of `row` elements, to y: the first row to `start`, each `pitch` elements after the one before.
template <typename T>
void lay_rows(const Tensor& x, T* y, int64_t row, int64_t start, int64_t pitch, ThreadPool& threads) {
  const Sizes sizes = Sizes::of(x);
  const Walk walk(x, sizes.span());
  for_each_block(threads, x.num_elements(), [&](int64_t begin, int64_t count) {
    T buffer[kBlock];
    const T* from = walk.read(x.as<T>(), begin, count, buffer);
    for (int64_t done = 0; done < count;) {
      const int64_t at = begin + done, column = at % row;
      const int64_t run = std::min(count - done, row - column);
      std::memcpy(y + at / row * pitch + start + column, from + done, static_cast<size_t>(run) * sizeof(T));
      done += run;
    }
  });
}

Status run_cat(const Call& call, KernelContext& context) {
  const Tensor& y = *call.outputs[0];
  const int dim = call.get_params<CatParams>().dim;
  if (y.num_elements() == 0) return Status();
  int64_t inner = 1;
  for (int i = dim + 1; i < y.rank; ++i) inner *= y.size(i);
  int64_t start = 0;
  for (const Tensor* x : call.inputs) {
    const int64_t row = x->size(dim) * inner;
    if (row == 0) continue;
    with_element_type(
        y.dtype, [&]<typename T>() { lay_rows<T>(*x, y.as<T>(), row, start, y.size(dim) * inner, *context.threads); });
    start += row;
  }
  return Status();
}

struct PadParams {
  uint64_t element;
  int64_t before[kMaxRank];  // may be negative, which crops
};

Status check_pad(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dense(x, "input 0"));
  MOTE_ASSIGN(const auto pad,
              integers_in(call, "pad", -kMaxTensorElements, kMaxTensorElements, 2 * static_cast<size_t>(x.rank)));
  MOTE_REQUIRE(pad.size() % 2 == 0, kBad, "attribute 'pad' has %zu entries: must be pairs", pad.size());
  MOTE_ASSIGN(const double value, number_or(call, "value", 0.0));
  MOTE_ASSIGN(const uint64_t element, element_of(value, x.dtype));
  PadParams& params = call.make_params<PadParams>();
  params.element = element;
  Sizes sizes = Sizes::of(x);
  for (size_t i = 0; i < pad.size(); i += 2) {
    const int dim = x.rank - 1 - static_cast<int>(i / 2);
    params.before[dim] = pad[i];
    sizes[dim] += pad[i] + pad[i + 1];
    MOTE_REQUIRE(sizes[dim] >= 0, kBad, "attribute 'pad' crops dimension %d to %lld: must leave at least 0", dim,
                 static_cast<long long>(sizes[dim]));
  }
  return expect_output(call, 0, x.dtype, sizes.span());
}

// Sets the offset of an output row's source. Returns false if the row lies in the padding.
bool source_row(const Tensor& x, const Tensor& y, const PadParams& params, int64_t row, int64_t& offset) {
  offset = 0;
  for (int dim = y.rank - 2; dim >= 0; --dim) {
    const int64_t at = row % y.size(dim) - params.before[dim];
    row /= y.size(dim);
    if (at < 0 || at >= x.size(dim)) return false;
    offset += at * x.stride(dim);
  }
  return true;
}

template <typename T>
void pad_rows(const Tensor& x, const Tensor& y, const PadParams& params, ThreadPool& threads) {
  const int64_t length = row_length(y);
  const int64_t before = y.rank == 0 ? 0 : params.before[y.rank - 1];
  const int64_t first = std::clamp<int64_t>(before, 0, length);
  const int64_t last = std::clamp<int64_t>(before + row_length(x), first, length);
  const int64_t stride = x.rank == 0 ? 1 : x.stride(-1);
  const int64_t grain = std::max<int64_t>(1, kElementGrain / length);
  threads.parallel_for(num_rows(y), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = y.as<T>() + row * length;
      std::fill_n(to, length, static_cast<T>(params.element));
      int64_t offset = 0;
      if (!source_row(x, y, params, row, offset)) continue;
      for (int64_t i = first; i < last; ++i) to[i] = x.as<T>()[offset + (i - before) * stride];
    }
  });
}

Status run_pad(const Call& call, KernelContext& context) {
  const Tensor& y = *call.outputs[0];
  if (y.num_elements() == 0) return Status();
  with_element_type(
      y.dtype, [&]<typename T>() { pad_rows<T>(*call.inputs[0], y, call.get_params<PadParams>(), *context.threads); });
  return Status();
}

// The dimension of the tokens must be neither padded nor cropped.
OutputAxis pad_axis(const SymbolicCall& call) {
  const TokenAxis from = call.axis(0);
  const SymbolicCall::Attribute* pad = call.find("pad");
  if (!from.exists() || pad == nullptr) return from;
  const auto first = 2 * static_cast<size_t>(call.rank(0) - 1 - from.dim);  // pairs begin with the last dimension
  for (size_t i = first; i < first + 2 && i < pad->dims.size(); ++i) {
    if (pad->dims[i].tokens != 0 || pad->dims[i].constant != 0) return kMixesTokens;
  }
  return from;
}

struct RepeatParams {
  int dim;
  int64_t repeats;
};

Status check_repeat(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dense(x, "input 0"));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "input 0", 1, kMaxRank - 1));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  const int64_t most = kMaxTensorElements / std::max<int64_t>(x.size(dim), 1);
  MOTE_ASSIGN(const int64_t repeats, integer_in(call, "repeats", 0, most));
  call.make_params<RepeatParams>() = {dim, repeats};
  Sizes sizes = Sizes::of(x);
  sizes[dim] *= repeats;
  return expect_output(call, 0, x.dtype, sizes.span());
}

// Copies x to y, both seen with an extra dimension of `repeats` after `dim`, over which x has stride 0.
Status run_repeat(const Call& call, KernelContext& context) {
  const RepeatParams& params = call.get_params<RepeatParams>();
  const Tensor& x = *call.inputs[0];
  Tensor from = x;
  from.rank = x.rank + 1;
  for (size_t dim = static_cast<size_t>(x.rank); dim > static_cast<size_t>(params.dim) + 1; --dim) {
    from.sizes[dim] = x.sizes[dim - 1];
    from.strides[dim] = x.strides[dim - 1];
  }
  from.sizes[static_cast<size_t>(params.dim) + 1] = params.repeats;
  from.strides[static_cast<size_t>(params.dim) + 1] = 0;
  Tensor to = from;
  to.data = call.outputs[0]->data;
  to.set_contiguous_strides();
  copy_strided(from, to, *context.threads);
  return Status();
}

OutputAxis repeat_axis(const SymbolicCall& call) {
  TokenAxis axis = call.axis(0);
  if (axis.exists() && call.integer("dim", -1) == axis.dim) axis.after *= call.integer("repeats", 1);
  return axis;
}

}  // namespace

OutputAxis joined_axis(const SymbolicCall& call) {
  const OutputAxis all = same_axis(call);
  return all.has_value() && all->exists() && all->dim == call.integer("dim", -1) ? kMixesTokens : all;
}

MOTE_REGISTER_OP(.name = "aten.cat", .check = check_cat, .run = run_cat, .token_axis = joined_axis);
MOTE_REGISTER_OP(.name = "aten.constant_pad_nd", .check = check_pad, .run = run_pad, .token_axis = pad_axis);
MOTE_REGISTER_OP(.name = "aten.repeat_interleave", .check = check_repeat, .run = run_repeat, .token_axis = repeat_axis);

}  // namespace mote
