// mote.ngram_ids: the rows of a table that n-grams of tokens are given by hashing.
#include "kernels/kernel.h"
#include "kernels/support/contract.h"
#include "kernels/support/rows.h"
#include "kernels/support/token_axes.h"

namespace mote {

namespace {

constexpr int64_t kMostIds = int64_t{1} << 24;  // that a float32 counts exactly
constexpr size_t kMostHeads = 1024;

struct NgramParams {
  std::span<const int64_t> sizes;  // of the parts of the table, those of pairs first
  int64_t eos;
};

Status check_ngram_ids(Call& call) {
  MOTE_RETURN_IF_ERROR(expect_operands(call, 3, 3, 1));
  const Tensor& tokens = *call.inputs[0];
  const Tensor& previous = *call.inputs[1];
  MOTE_RETURN_IF_ERROR(expect_dtype(tokens, "tokens", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_rank(tokens, "tokens", 2, 2));
  MOTE_RETURN_IF_ERROR(expect_dtype(previous, "previous", {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_rank(previous, "previous", 3, 3));
  MOTE_REQUIRE(tokens.size(0) == 1 && previous.size(0) == 1 && previous.size(1) == tokens.size(1),
               Code::kInvalidProgram, "tokens and previous must be [1, T] and [1, T, P]");
  NgramParams& params = call.make_params<NgramParams>();
  MOTE_ASSIGN(params.sizes, integers_in(call, "sizes", 1, kMaxTensorElements, kMostHeads));
  MOTE_ASSIGN(params.eos, integer_or(call, "eos", 0, 0, kMostIds - 1));
  const auto count = static_cast<int64_t>(params.sizes.size()), before = previous.size(2);
  const Tensor& multipliers = *call.inputs[2];
  MOTE_RETURN_IF_ERROR(expect_dtype(multipliers, "multipliers", {DType::kInt64}));
  MOTE_RETURN_IF_ERROR(expect_sizes(multipliers, "multipliers", {before + 1}));
  MOTE_REQUIRE(before >= 1 && count >= 1 && count % before == 0, Code::kInvalidProgram,
               "attribute 'sizes' has %lld entries: must be a multiple of the columns of previous, %lld, and not 0",
               static_cast<long long>(count), static_cast<long long>(before));
  const int64_t sizes[] = {1, tokens.size(1), count};
  return expect_output(call, 0, DType::kInt64, sizes);
}

// Written so that NaN falls to a bound.
int64_t whole(float x) {
  constexpr auto kMost = static_cast<float>(kMostIds);
  return static_cast<int64_t>(x > -kMost ? (x < kMost ? x : kMost) : -kMost);
}

// The remainder that is not negative.
int64_t remainder_of(uint64_t hash, int64_t size) {
  const int64_t rest = static_cast<int64_t>(hash) % size;
  return rest < 0 ? rest + size : rest;
}

Status run_ngram_ids(const Call& call, KernelContext& context) {
  const Tensor& tokens = *call.inputs[0];
  const Tensor& previous = *call.inputs[1];
  const Tensor& multipliers = *call.inputs[2];
  const NgramParams& params = call.get_params<NgramParams>();
  const auto factor = [&](int64_t i) {
    return static_cast<uint64_t>(multipliers.as<int64_t>()[i * multipliers.stride(0)]);
  };
  const int64_t before = previous.size(2), heads = static_cast<int64_t>(params.sizes.size());
  context.threads->parallel_for(tokens.size(1), row_grain(heads), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float* back = previous.as<float>() + t * previous.stride(1);
      int64_t* ids = call.outputs[0]->as<int64_t>() + t * heads;
      uint64_t hash = static_cast<uint64_t>(tokens.as<int64_t>()[t * tokens.stride(1)]) * factor(0);
      int64_t first = 0, head = 0;
      bool ended = false;
      for (int64_t i = 0; i < before; ++i) {
        const int64_t distance = whole(back[i * previous.stride(2)]);
        ended = ended || distance == 0;
        const int64_t id = ended ? params.eos : params.eos + distance;
        hash ^= static_cast<uint64_t>(id) * factor(i + 1);
        for (const int64_t last = head + heads / before; head < last; ++head) {
          const int64_t size = params.sizes[static_cast<size_t>(head)];
          ids[head] = first + remainder_of(hash, size);
          first += size;
        }
      }
    }
  });
  return Status();
}

OutputAxis ngram_ids_axis(const SymbolicCall& call) { return tokens_at(call, {1, 1}); }

}  // namespace

MOTE_REGISTER_OP(.name = "mote.ngram_ids", .check = check_ngram_ids, .run = run_ngram_ids,
                 .token_axis = ngram_ids_axis);

}  // namespace mote
