// A row of the state is read twice and written once for each token, and stays in the first cache from token to token.
// Sums over a row: element n belongs to lane n % 16, in ascending order.
#include "kernels/ops/linear_attention/linear_attention.h"

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

MOTE_INLINE F32x16 decay_at(const LinearAttentionTokens& call, const LinearAttentionRow& row, int64_t t, int64_t n) {
  if (row.decay.first == nullptr) return splat(1.0f);
  const float* decay = row.decay.first + t * row.decay.step;
  return call.decay_is_vector ? load_upto(decay + n, call.width - n) : splat(*decay);
}

// What is added along the keys: v, or the delta rule's beta (v - k S) with the state as it has decayed.
template <int kRows>
MOTE_INLINE void find_updates(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int64_t t,
                              float* updates) {
  for (int r = 0; r < kRows; ++r) updates[r] = rows[r].v.first[t * rows[r].v.step];
  if (rows[0].beta.first == nullptr) return;
  const float* k = call.k.first + t * call.k.step;
  F32x16 known[kRows];
  for (int r = 0; r < kRows; ++r) known[r] = splat(0.0f);
  for (int64_t n = 0; n < call.width; n += 16) {
    const F32x16 key = load_upto(k + n, call.width - n);
    for (int r = 0; r < kRows; ++r) {
      known[r] = fma(key, decay_at(call, rows[r], t, n) * load_upto(rows[r].state + n, call.width - n), known[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    updates[r] = rows[r].beta.first[t * rows[r].beta.step] * (updates[r] - sum_lanes(known[r]));
  }
}

// Without a query it only moves the state on.
template <int kRows, bool kReads>
void run_rows(const LinearAttentionTokens& call, const LinearAttentionRow* rows) {
  for (int64_t t = 0; t < call.tokens; ++t) {
    float updates[kRows];
    find_updates<kRows>(call, rows, t, updates);
    for (int r = 0; r < kRows; ++r) {
      if (rows[r].update != nullptr) rows[r].update[t * call.update_step] = updates[r];
    }
    const float* q = kReads ? call.q.first + t * call.q.step : nullptr;
    const float* k = call.k.first + t * call.k.step;
    F32x16 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = splat(0.0f);
    for (int64_t n = 0; n < call.width; n += 16) {
      const int64_t left = call.width - n;
      const F32x16 key = load_upto(k + n, left), query = kReads ? load_upto(q + n, left) : key;
      for (int r = 0; r < kRows; ++r) {
        float* state = rows[r].state + n;
        const F32x16 value = fma(key, splat(updates[r]), decay_at(call, rows[r], t, n) * load_upto(state, left));
        store_upto(state, value, left);
        if (kReads) sums[r] = fma(query, value, sums[r]);
      }
    }
    if (!kReads) continue;
    for (int r = 0; r < kRows; ++r) rows[r].y[t * call.y_step] = sum_lanes(sums[r]);
  }
}

template <bool kReads>
void run_block(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  if (count == kLinearAttentionRows) {
    run_rows<kLinearAttentionRows, kReads>(call, rows);
  } else {
    for (int r = 0; r < count; ++r) run_rows<1, kReads>(call, rows + r);
  }
}

void run(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  call.q.first == nullptr ? run_block<false>(call, rows, count) : run_block<true>(call, rows, count);
}

constexpr LinearAttentionFunctions kFunctions = {run};

MOTE_REGISTER_KERNEL(.name = "linear_attention_" MOTE_ISA_NAME, .role = LinearAttentionFunctions::kRole,
                     .needs = kNeeds, .rank = kRank, .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
