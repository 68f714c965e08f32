// sort, topk, argmax, max and min along any dimension. NaN counts as the largest, equal elements keep their order.
#include <algorithm>

#include "kernels/support/contract.h"
#include "kernels/support/lines.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

struct Params {
  int dim;
  int64_t count;  // elements of a line that are returned
  bool descending;
};

template <typename T>
bool is_less(T a, T b) {
  return a < b || (b != b && a == a);
}

template <typename T>
struct Entry {
  T value;
  int64_t index;
};

// A total order, so that any algorithm gives the one stable result.
template <typename T>
struct Ascending {
  bool operator()(const Entry<T>& a, const Entry<T>& b) const {
    return is_less(a.value, b.value) || (!is_less(b.value, a.value) && a.index < b.index);
  }
};
template <typename T>
struct Descending {
  bool operator()(const Entry<T>& a, const Entry<T>& b) const {
    return is_less(b.value, a.value) || (!is_less(a.value, b.value) && a.index < b.index);
  }
};

template <typename T, typename Before>
void order(Entry<T>* entries, int64_t length, int64_t count) {
  if (count == length) {
    std::sort(entries, entries + length, Before());
  } else {
    std::partial_sort(entries, entries + count, entries + length, Before());
  }
}

template <typename T>
void sort_lines(const Call& call, KernelContext& context) {
  const Params& params = call.get_params<Params>();
  const Tensor& x = *call.inputs[0];
  const Tensor& values = *call.outputs[0];
  const Lines from(x, params.dim), to(values, params.dim);
  Entry<T>* scratch = reinterpret_cast<Entry<T>*>(context.scratch.data());
  context.threads->parallel_for(from.count(), from.grain(), [&](int64_t begin, int64_t end, int thread) {
    Entry<T>* entries = scratch + thread * from.length();
    for (int64_t line = begin; line < end; ++line) {
      const T* in = x.as<T>() + from.offset(line);
      for (int64_t i = 0; i < from.length(); ++i) entries[i] = {in[i * from.stride()], i};
      if (params.descending) {
        order<T, Descending<T>>(entries, from.length(), params.count);
      } else {
        order<T, Ascending<T>>(entries, from.length(), params.count);
      }
      T* out = values.as<T>() + to.offset(line);
      int64_t* indices = call.outputs[1]->template as<int64_t>() + to.offset(line);
      for (int64_t i = 0; i < params.count; ++i) {
        out[i * to.stride()] = entries[i].value;
        indices[i * to.stride()] = entries[i].index;
      }
    }
  });
}

Status run_sort(const Call& call, KernelContext& context) {
  if (call.outputs[0]->num_elements() == 0) return Status();
  switch (call.inputs[0]->dtype) {
    case DType::kFloat32: sort_lines<float>(call, context); break;
    case DType::kInt64: sort_lines<int64_t>(call, context); break;
    default: sort_lines<int32_t>(call, context); break;
  }
  return Status();
}

size_t scratch_bytes(const Call& call, int num_threads) {
  const Lines lines(*call.inputs[0], call.get_params<Params>().dim);
  return static_cast<size_t>(lines.length()) * sizeof(Entry<int64_t>) * static_cast<size_t>(num_threads);
}

// The input and `dim`, which every op here has.
Result<int> check_input(const Call& call, size_t outputs) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, outputs));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dtype(x, "input 0", {DType::kFloat32, DType::kInt64, DType::kInt32}));
  return dim_in(call, "dim", x.rank);
}

Status expect_values_and_indices(const Call& call, const Sizes& sizes) {
  MOTE_RETURN_IF_ERROR(expect_output(call, 0, call.inputs[0]->dtype, sizes.span()));
  return expect_output(call, 1, DType::kInt64, sizes.span());
}

Status check_sort(Call& call) {
  MOTE_ASSIGN(const int dim, check_input(call, 2));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(const int64_t descending, integer_or(call, "descending", 0, 0, 1));
  call.make_params<Params>() = {dim, x.rank == 0 ? 1 : x.size(dim), descending == 1};
  return expect_values_and_indices(call, Sizes::of(x));
}

Status check_topk(Call& call) {
  MOTE_ASSIGN(const int dim, check_input(call, 2));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(const int64_t largest, integer_or(call, "largest", 1, 0, 1));
  MOTE_ASSIGN(const int64_t k, integer_in(call, "k", 0, x.rank == 0 ? 1 : x.size(dim)));
  MOTE_REQUIRE(x.rank > 0 || k == 1, Code::kInvalidProgram, "attribute 'k' = 0: must be 1 for a scalar");
  call.make_params<Params>() = {dim, k, largest == 1};
  Sizes sizes = Sizes::of(x);
  if (x.rank > 0) sizes[dim] = k;
  return expect_values_and_indices(call, sizes);
}

template <typename T, bool Largest>
int64_t extreme_index(const T* line, int64_t length, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 0; i < length; ++i) {
    const T value = line[i * stride], held = line[best * stride];
    if (value != value) return i;  // the first NaN wins in max and in min
    if (Largest ? value > held : value < held) best = i;
  }
  return best;
}

// values is nullptr in argmax.
template <typename T, bool Largest>
void extreme_lines(const Tensor& x, int dim, T* values, int64_t* indices, ThreadPool& threads) {
  const Lines lines(x, dim);
  threads.parallel_for(lines.count(), lines.grain(), [&](int64_t begin, int64_t end, int) {
    for (int64_t line = begin; line < end; ++line) {
      const T* in = x.as<T>() + lines.offset(line);
      const int64_t index = extreme_index<T, Largest>(in, lines.length(), lines.stride());
      indices[line] = index;
      if (values != nullptr) values[line] = in[index * lines.stride()];
    }
  });
}

template <bool Largest>
Status run_extreme(const Call& call, KernelContext& context) {
  const Tensor& x = *call.inputs[0];
  const Tensor& indices = *call.outputs.back();
  if (indices.num_elements() == 0) return Status();
  const bool has_values = call.outputs.size() == 2;
  const auto run = [&]<typename T>(T* values) {
    extreme_lines<T, Largest>(x, call.get_params<Params>().dim, has_values ? values : nullptr, indices.as<int64_t>(),
                              *context.threads);
  };
  switch (x.dtype) {
    case DType::kFloat32: run(call.outputs[0]->as<float>()); break;
    case DType::kInt64: run(call.outputs[0]->as<int64_t>()); break;
    default: run(call.outputs[0]->as<int32_t>()); break;
  }
  return Status();
}

template <size_t Outputs>
Status check_extreme(Call& call) {
  MOTE_ASSIGN(const int dim, check_input(call, Outputs));
  const Tensor& x = *call.inputs[0];
  MOTE_ASSIGN(const int64_t keepdim, integer_or(call, "keepdim", 0, 0, 1));
  Sizes sizes;
  for (int other = 0; other < x.rank; ++other) {
    if (other != dim || keepdim == 1) sizes.push(other == dim ? 1 : x.size(other));
  }
  MOTE_REQUIRE(x.rank == 0 || x.size(dim) > 0, Code::kInvalidProgram,
               "input 0 has size 0 in dimension %d: must be at least 1", dim);
  call.make_params<Params>() = {dim, 1, true};
  if (Outputs == 2) return expect_values_and_indices(call, sizes);
  return expect_output(call, 0, DType::kInt64, sizes.span());
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.sort", .check = check_sort, .scratch_bytes = scratch_bytes, .run = run_sort,
                 .token_axis = along_axis);
MOTE_REGISTER_OP(.name = "aten.topk", .check = check_topk, .scratch_bytes = scratch_bytes, .run = run_sort,
                 .token_axis = along_axis);
MOTE_REGISTER_OP(.name = "aten.argmax", .check = check_extreme<1>, .run = run_extreme<true>,
                 .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.max", .check = check_extreme<2>, .run = run_extreme<true>, .token_axis = reduced_axis);
MOTE_REGISTER_OP(.name = "aten.min", .check = check_extreme<2>, .run = run_extreme<false>, .token_axis = reduced_axis);

}  // namespace mote
