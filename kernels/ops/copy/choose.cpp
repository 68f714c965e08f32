// Elements kept or replaced by position or condition: tril, triu and where.
#include "kernels/ops/copy/copy.h"

namespace mote {

namespace {

struct TriangleParams {
  int64_t diagonal;
};

Status check_triangle(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 1, 1, 1));
  const Tensor& x = *call.inputs[0];
  MOTE_RETURN_IF_ERROR(expect_dense(x, "input 0"));
  MOTE_RETURN_IF_ERROR(expect_rank(x, "input 0", 2, kMaxRank));
  MOTE_ASSIGN(const int64_t diagonal, integer_or(call, "diagonal", 0, -kMaxTensorElements, kMaxTensorElements));
  call.make_params<TriangleParams>().diagonal = diagonal;
  return expect_output(call, 0, x.dtype, Sizes::of(x).span());
}

template <typename T, bool Lower>
void copy_triangle(const Tensor& x, const Tensor& y, int64_t diagonal, ThreadPool& threads) {
  const int64_t length = y.size(-1), stride = x.stride(-1);
  const int64_t grain = std::max<int64_t>(1, kElementGrain / length);
  threads.parallel_for(num_rows(y), grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t edge = row % y.size(-2) + diagonal + (Lower ? 1 : 0);
      const int64_t cut = std::clamp<int64_t>(edge, 0, length);
      const int64_t first = Lower ? 0 : cut, last = Lower ? cut : length;
      const T* from = x.as<T>() + row_offset(x, row);
      T* to = y.as<T>() + row * length;
      std::fill_n(to, length, T{0});
      for (int64_t i = first; i < last; ++i) to[i] = from[i * stride];
    }
  });
}

template <bool Lower>
Status run_triangle(const Call& call, KernelContext& context) {
  const Tensor& y = *call.outputs[0];
  if (y.num_elements() == 0) return Status();
  with_element_type(y.dtype, [&]<typename T>() {
    copy_triangle<T, Lower>(*call.inputs[0], y, call.get_params<TriangleParams>().diagonal, *context.threads);
  });
  return Status();
}

OutputAxis triangle_axis(const SymbolicCall& call) {
  const TokenAxis x = call.axis(0);
  return x.exists() && x.dim >= call.rank(0) - 2 ? OutputAxis(kMixesTokens) : x;
}

// Sizes of the three inputs broadcast together.
Result<Sizes> broadcast_sizes(const Call& call) {
  int rank = 0;
  for (const Tensor* input : call.inputs) rank = std::max(rank, input->rank);
  Sizes sizes;
  for (int dim = 0; dim < rank; ++dim) sizes.push(1);
  for (const Tensor* input : call.inputs) {
    for (int dim = 0; dim < input->rank; ++dim) {
      int64_t& common = sizes[dim + rank - input->rank];
      const int64_t size = input->size(dim);
      MOTE_REQUIRE(size == common || size == 1 || common == 1, Code::kInvalidProgram,
                   "inputs have sizes %lld and %lld in one dimension: must be equal or 1",
                   static_cast<long long>(common), static_cast<long long>(size));
      if (size != 1) common = size;
    }
  }
  return sizes;
}

Status check_where(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 3, 1));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[0], "input 0", {DType::kBool}));
  const DType dtype = call.inputs[1]->dtype;
  MOTE_RETURN_IF_ERROR(expect_dense(*call.inputs[1], "input 1"));
  MOTE_RETURN_IF_ERROR(expect_dtype(*call.inputs[2], "input 2", {dtype}));
  MOTE_ASSIGN(const Sizes sizes, broadcast_sizes(call));
  return expect_output(call, 0, dtype, sizes.span());
}

template <typename T>
void choose(const Call& call, ThreadPool& threads) {
  const Tensor& y = *call.outputs[0];
  const Sizes sizes = Sizes::of(y);
  const Tensor &condition = *call.inputs[0], &a = *call.inputs[1], &b = *call.inputs[2];
  const Walk walk_condition(condition, sizes.span()), walk_a(a, sizes.span()), walk_b(b, sizes.span());
  for_each_block(threads, y.num_elements(), [&](int64_t begin, int64_t count) {
    uint8_t condition_buffer[kBlock];
    T a_buffer[kBlock], b_buffer[kBlock];
    const uint8_t* conditions = walk_condition.read(condition.as<uint8_t>(), begin, count, condition_buffer);
    const T* as = walk_a.read(a.as<T>(), begin, count, a_buffer);
    const T* bs = walk_b.read(b.as<T>(), begin, count, b_buffer);
    T* to = y.as<T>() + begin;
    for (int64_t i = 0; i < count; ++i) to[i] = conditions[i] != 0 ? as[i] : bs[i];
  });
}

Status run_where(const Call& call, KernelContext& context) {
  with_element_type(call.outputs[0]->dtype, [&]<typename T>() { choose<T>(call, *context.threads); });
  return Status();
}

}  // namespace

MOTE_REGISTER_OP(.name = "aten.tril", .check = check_triangle, .run = run_triangle<true>, .token_axis = triangle_axis);
MOTE_REGISTER_OP(.name = "aten.triu", .check = check_triangle, .run = run_triangle<false>, .token_axis = triangle_axis);
MOTE_REGISTER_OP(.name = "aten.where", .check = check_where, .run = run_where, .token_axis = broadcast_axis);

}  // namespace mote
