// Views: check sets the output's strides over its input's storage. Nothing runs.
#include <algorithm>

#include "kernels/support/contract.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;

Status expect_view_operands(const Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  const Tensor& y = *call.outputs[0];
  MOTE_REQUIRE(x.bits == 0 && y.bits == 0, kBad, "input 0 is quantised: a view must be of a dense tensor");
  MOTE_REQUIRE(x.dtype == y.dtype, kBad, "output 0 has dtype %s: must be that of its input, %s", dtype_name(y.dtype),
               dtype_name(x.dtype));
  return Status();
}

// Compares the declared sizes, then sets strides and offset.
Status finish(Call& call, const Sizes& sizes, std::span<const int64_t> strides, int64_t offset) {
  Tensor& y = *call.outputs[0];
  MOTE_RETURN_IF_ERROR(expect_sizes(y, "output 0", sizes.span()));
  std::ranges::copy(strides, y.strides.begin());
  const bool is_empty = y.num_elements() == 0;
  call.view_offset_bytes = is_empty ? 0 : offset * dtype_bytes(y.dtype);
  return Status();
}

Status finish(Call& call, const Sizes& sizes, const Sizes& strides, int64_t offset = 0) {
  return finish(call, sizes, strides.span(), offset);
}

// The attribute `size` of view and expand.
Result<Sizes> size_attribute(const Call& call) {
  MOTE_ASSIGN(const auto values, integers_in(call, "size", 0, kMaxTensorElements, kMaxRank));
  Sizes sizes;
  for (const int64_t value : values) sizes.push(value);
  return sizes;
}

// Strides for x seen with other sizes of the same product, as in PyTorch: runs of x's dimensions that are contiguous
// among themselves may be split and merged, nothing else.
bool strides_of_view(const Tensor& x, Sizes& sizes, Sizes& strides) {
  int next = sizes.rank - 1;
  int64_t run_elements = 1, run_stride = 1;
  for (int dim = x.rank - 1; dim >= 0; --dim) {
    if (run_elements == 1) run_stride = x.stride(dim);
    run_elements *= x.size(dim);
    const bool ends = dim == 0 || (x.size(dim - 1) != 1 && x.stride(dim - 1) != run_elements * run_stride);
    if (!ends) continue;
    int64_t placed = 1;
    while (next >= 0 && (placed < run_elements || sizes[next] == 1)) {
      strides[next] = placed * run_stride;
      placed *= sizes[next--];
    }
    if (placed != run_elements) return false;
    run_elements = 1;
  }
  return next < 0;
}

Status check_view(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  Tensor& y = *call.outputs[0];
  MOTE_ASSIGN(Sizes sizes, size_attribute(call));
  MOTE_RETURN_IF_ERROR(expect_sizes(y, "output 0", sizes.span()));
  MOTE_REQUIRE(x.num_elements() == y.num_elements(), kBad, "view of %lld elements as %lld: must be as many",
               static_cast<long long>(x.num_elements()), static_cast<long long>(y.num_elements()));
  y.set_contiguous_strides();
  call.view_offset_bytes = 0;
  if (x.is_contiguous()) return Status();
  Sizes strides = sizes;
  MOTE_REQUIRE(strides_of_view(x, sizes, strides), kBad,
               "input 0 has strides that do not allow this view: must be cloned before");
  return finish(call, sizes, strides);
}

// Elements of one step along the dimension; 0 if a dimension after it is a multiple of T.
int64_t stride_of(std::span<const Dim> shape, int dim) {
  int64_t stride = 1;
  for (auto i = static_cast<size_t>(dim) + 1; i < shape.size(); ++i) stride *= shape[i].constant;
  return stride;
}

OutputAxis view_axis(const SymbolicCall& call) {
  const TokenAxis from = call.axis(0);
  if (!from.exists()) return axis_of(call.output);
  const int64_t after = from.after * stride_of(call.inputs[0].shape, from.dim);
  for (int dim = 0; dim < call.output_rank(); ++dim) {
    const int64_t size = call.output[static_cast<size_t>(dim)].tokens;
    if (size == 0) continue;
    const int64_t stride = stride_of(call.output, dim);
    if (stride == 0 || after % stride != 0 || after == 0) return kMixesTokens;
    const int64_t own = after / stride;
    return size % own == 0 ? OutputAxis(TokenAxis{dim, size / own, own}) : kMixesTokens;
  }
  return kMixesTokens;
}

Status check_permute(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(const auto dims, integers_in(call, "dims", 0, std::max(x.rank - 1, 0), kMaxRank));
  MOTE_REQUIRE(static_cast<int>(dims.size()) == x.rank, kBad, "attribute 'dims' has %zu entries: must be %d",
               dims.size(), x.rank);
  Sizes sizes, strides;
  uint32_t seen = 0;
  for (const int64_t dim : dims) {
    MOTE_REQUIRE((seen >> dim & 1u) == 0, kBad, "attribute 'dims' repeats %lld: must be a permutation",
                 static_cast<long long>(dim));
    seen |= 1u << dim;
    sizes.push(x.size(static_cast<int>(dim)));
    strides.push(x.stride(static_cast<int>(dim)));
  }
  return finish(call, sizes, strides);
}

OutputAxis permute_axis(const SymbolicCall& call) {
  const TokenAxis from = call.axis(0);
  const SymbolicCall::Attribute* dims = call.find("dims");
  if (!from.exists() || dims == nullptr) return from;
  for (size_t i = 0; i < dims->dims.size(); ++i) {
    if (dims->dims[i].constant == from.dim) return from.at(static_cast<int>(i));
  }
  return kMixesTokens;
}

Status check_unsqueeze(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_REQUIRE(x.rank < kMaxRank, kBad, "input 0 has rank %d: must be below %d", x.rank, kMaxRank);
  MOTE_ASSIGN(const int64_t at, integer_in(call, "dim", 0, x.rank));
  Sizes sizes, strides;
  for (int dim = 0; dim <= x.rank; ++dim) {
    if (dim == at) {
      sizes.push(1);
      strides.push(dim < x.rank ? x.stride(dim) : 1);
    }
    if (dim < x.rank) {
      sizes.push(x.size(dim));
      strides.push(x.stride(dim));
    }
  }
  return finish(call, sizes, strides);
}

OutputAxis unsqueeze_axis(const SymbolicCall& call) {
  const TokenAxis from = call.axis(0);
  return from.exists() && call.integer("dim", 0) <= from.dim ? from.at(from.dim + 1) : from;
}

// Dimensions that are not 1 stay, as in PyTorch.
Status check_squeeze(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(const auto dims, integers_in(call, "dims", 0, std::max(x.rank - 1, 0), kMaxRank));
  Sizes sizes, strides;
  for (int dim = 0; dim < x.rank; ++dim) {
    if (x.size(dim) == 1 && std::ranges::find(dims, int64_t{dim}) != dims.end()) continue;
    sizes.push(x.size(dim));
    strides.push(x.stride(dim));
  }
  return finish(call, sizes, strides);
}

OutputAxis squeeze_axis(const SymbolicCall& call) { return removed_axis(call, "dims"); }

Status check_expand(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(Sizes sizes, size_attribute(call));
  MOTE_REQUIRE(sizes.rank >= x.rank, kBad, "attribute 'size' has %d entries: must be at least the rank %d", sizes.rank,
               x.rank);
  const int added = sizes.rank - x.rank;
  Sizes strides;
  for (int dim = 0; dim < sizes.rank; ++dim) {
    const int source = dim - added;
    const bool keeps = source >= 0 && x.size(source) == sizes[dim];
    MOTE_REQUIRE(keeps || source < 0 || x.size(source) == 1, kBad, "attribute 'size'[%d] = %lld: must be %lld", dim,
                 static_cast<long long>(sizes[dim]), static_cast<long long>(x.size(source)));
    strides.push(keeps ? x.stride(source) : 0);
  }
  return finish(call, sizes, strides);
}

Status check_slice(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_rank(x, "input 0", 1, kMaxRank));
  MOTE_ASSIGN(const int dim, dim_in(call, "dim", x.rank));
  MOTE_ASSIGN(const int64_t end, integer_in(call, "end", 0, x.size(dim)));
  MOTE_ASSIGN(const int64_t start, integer_in(call, "start", 0, end));
  MOTE_ASSIGN(const int64_t step, integer_or(call, "step", 1, 1, kMaxTensorElements));
  Sizes sizes = Sizes::of(x), strides;
  for (int i = 0; i < x.rank; ++i) strides.push(x.stride(i));
  sizes[dim] = (end - start + step - 1) / step;
  if (sizes[dim] > 1) strides[dim] *= step;  // step < size, so the product lies within the storage
  return finish(call, sizes, strides, sizes[dim] == 0 ? 0 : start * x.stride(dim));
}

// The dimension of the tokens must stay whole.
OutputAxis slice_axis(const SymbolicCall& call) {
  const TokenAxis from = call.axis(0);
  if (!from.exists() || call.integer("dim", -1) != from.dim) return from;
  const SymbolicCall::Attribute *start = call.find("start"), *end = call.find("end");
  if (start == nullptr || end == nullptr) return kMixesTokens;
  const bool from_first = start->dims[0].tokens == 0 && start->dims[0].constant == 0;
  const bool to_last = end->dims[0].tokens == from.before * from.after && end->dims[0].constant == 0;
  return from_first && to_last && call.integer("step", 1) == 1 ? OutputAxis(from) : kMixesTokens;
}

Status check_select(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_view_operands(call));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_rank(x, "input 0", 1, kMaxRank));
  MOTE_ASSIGN(const int at, dim_in(call, "dim", x.rank));
  MOTE_ASSIGN(const int64_t index, integer_in(call, "index", 0, x.size(at) - 1));
  Sizes sizes, strides;
  for (int dim = 0; dim < x.rank; ++dim) {
    if (dim == at) continue;
    sizes.push(x.size(dim));
    strides.push(x.stride(dim));
  }
  return finish(call, sizes, strides, index * x.stride(at));
}

OutputAxis select_axis(const SymbolicCall& call) { return removed_axis(call, "dim"); }

}  // namespace

MOTE_REGISTER_OP(.name = "aten.view", .is_view = true, .check = check_view, .token_axis = view_axis);
MOTE_REGISTER_OP(.name = "aten.permute", .is_view = true, .check = check_permute, .token_axis = permute_axis);
MOTE_REGISTER_OP(.name = "aten.unsqueeze", .is_view = true, .check = check_unsqueeze, .token_axis = unsqueeze_axis);
MOTE_REGISTER_OP(.name = "aten.squeeze", .is_view = true, .check = check_squeeze, .token_axis = squeeze_axis);
MOTE_REGISTER_OP(.name = "aten.expand", .is_view = true, .check = check_expand, .token_axis = broadcast_axis);
MOTE_REGISTER_OP(.name = "aten.slice", .is_view = true, .check = check_slice, .token_axis = slice_axis);
MOTE_REGISTER_OP(.name = "aten.select", .is_view = true, .check = check_select, .token_axis = select_axis);

}  // namespace mote
