// A row of the state is read twice and written once for each token, and stays in the first cache from token to token.
// Sums over a row: element n belongs to lane n % 16, in ascending order.
#include "kernels/ops/linear_attention/linear_attention.h"

#include "kernels/kernel.h"
#include "kernels/simd/vectors.h"

namespace mote {
inline namespace MOTE_ISA {
namespace {

constexpr int64_t kFetchAhead = 1024;  // floats

enum class Decay { kNone, kOfRow, kOfElements };

// kReads: without a query it only moves the state on. kIsWhole: the width is a multiple of 16.
template <int kRows, bool kReads, bool kHasBeta, bool kIsWhole, Decay kDecay>
class Rows {
 public:
  Rows(const LinearAttentionTokens& call, const LinearAttentionRow* rows) : call_(call), rows_(rows) {
    for (int r = 0; r < kRows; ++r) state_[r] = rows[r].state;
  }

  void run() {
    run_token<true>(0);
    for (int64_t t = 1; t < call_.tokens; ++t) run_token<false>(t);
  }

 private:
  // kFetches: the first token is the one that waits for memory.
  template <bool kFetches>
  MOTE_INLINE void run_token(int64_t t) {
    const float* k = call_.k.first + t * call_.k.step;
    for (int r = 0; r < kRows; ++r) {
      update_[r] = rows_[r].v.first[t * rows_[r].v.step];
      if constexpr (kDecay != Decay::kNone) decay_[r] = rows_[r].decay.first + t * rows_[r].decay.step;
      if constexpr (kDecay == Decay::kOfRow) decays_[r] = splat(*decay_[r]);
    }
    if constexpr (kHasBeta) correct<kFetches>(k, t);
    if (rows_[0].update != nullptr) {
      for (int r = 0; r < kRows; ++r) rows_[r].update[t * call_.update_step] = update_[r];
    }
    add<kFetches && !kHasBeta>(k, kReads ? call_.q.first + t * call_.q.step : nullptr, t);
  }

  // Rows are read side by side, which hardware does not recognise as one stream: lines of rows behind them are fetched
  // in their order.
  template <bool kFetches>
  MOTE_INLINE void fetch(int64_t n) const {
    if constexpr (kFetches) {
      const float* ahead = state_[0] + kFetchAhead + n * kRows;
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(ahead + r * 16, 1);
    }
  }

  MOTE_INLINE F32x16 load(const float* from, int64_t n) const {
    return kIsWhole ? load_f32(from + n) : load_upto(from + n, call_.width - n);
  }
  MOTE_INLINE F32x16 decayed(int r, int64_t n) const {
    const F32x16 state = load(state_[r], n);
    if constexpr (kDecay == Decay::kNone) return state;
    if constexpr (kDecay == Decay::kOfRow) return decays_[r] * state;
    return load(decay_[r], n) * state;
  }

  // The delta rule: what is added along the keys becomes beta (v - k S), with the state as it has decayed.
  template <bool kFetches>
  MOTE_INLINE void correct(const float* k, int64_t t) {
    F32x16 known[kRows];
    for (int r = 0; r < kRows; ++r) known[r] = splat(0.0f);
    for (int64_t n = 0; n < call_.width; n += 16) {
      const F32x16 key = load(k, n);
      fetch<kFetches>(n);
      for (int r = 0; r < kRows; ++r) known[r] = fma(key, decayed(r, n), known[r]);
    }
    float sums[kRows];
    sum_rows(known, sums);
    for (int r = 0; r < kRows; ++r) update_[r] = rows_[r].beta.first[t * rows_[r].beta.step] * (update_[r] - sums[r]);
  }

  template <bool kFetches>
  MOTE_INLINE void add(const float* k, const float* q, int64_t t) {
    F32x16 read[kRows], updates[kRows];
    for (int r = 0; r < kRows; ++r) {
      read[r] = splat(0.0f);
      updates[r] = splat(update_[r]);
    }
    for (int64_t n = 0; n < call_.width; n += 16) {
      const F32x16 key = load(k, n), query = kReads ? load(q, n) : key;
      fetch<kFetches>(n);
      for (int r = 0; r < kRows; ++r) {
        const F32x16 value = fma(key, updates[r], decayed(r, n));
        if (kIsWhole) {
          store_f32(state_[r] + n, value);
        } else {
          store_upto(state_[r] + n, value, call_.width - n);
        }
        if (kReads) read[r] = fma(query, value, read[r]);
      }
    }
    if (!kReads) return;
    float sums[kRows];
    sum_rows(read, sums);
    for (int r = 0; r < kRows; ++r) rows_[r].y[t * call_.y_step] = sums[r];
  }

  MOTE_INLINE static void sum_rows(const F32x16* rows, float* sums) {
    if constexpr (kRows == 4) {
      sum_lanes_of_4(rows, sums);
    } else {
      for (int r = 0; r < kRows; ++r) sums[r] = sum_lanes(rows[r]);
    }
  }

  const LinearAttentionTokens& call_;
  const LinearAttentionRow* rows_;
  float* state_[kRows];
  const float* decay_[kRows] = {};
  F32x16 decays_[kRows];
  float update_[kRows];
};

template <bool kReads, bool kHasBeta, bool kIsWhole, Decay kDecay>
void run_block(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  if (count == kLinearAttentionRows) {
    Rows<kLinearAttentionRows, kReads, kHasBeta, kIsWhole, kDecay>(call, rows).run();
  } else {
    for (int r = 0; r < count; ++r) Rows<1, kReads, kHasBeta, kIsWhole, kDecay>(call, rows + r).run();
  }
}

template <bool kReads, bool kHasBeta, bool kIsWhole>
void run_decay(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  if (rows->decay.first == nullptr) return run_block<kReads, kHasBeta, kIsWhole, Decay::kNone>(call, rows, count);
  if (!call.decay_is_vector) return run_block<kReads, kHasBeta, kIsWhole, Decay::kOfRow>(call, rows, count);
  run_block<kReads, kHasBeta, kIsWhole, Decay::kOfElements>(call, rows, count);
}

template <bool kReads, bool kHasBeta>
void run_width(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  call.width % 16 == 0 ? run_decay<kReads, kHasBeta, true>(call, rows, count)
                       : run_decay<kReads, kHasBeta, false>(call, rows, count);
}

void run(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  if (call.q.first == nullptr) return run_width<false, false>(call, rows, count);  // updates are those that were made
  rows->beta.first == nullptr ? run_width<true, false>(call, rows, count) : run_width<true, true>(call, rows, count);
}

constexpr LinearAttentionFunctions kFunctions = {run};

MOTE_REGISTER_KERNEL(.name = "linear_attention_" MOTE_ISA_NAME, .role = LinearAttentionFunctions::kRole,
                     .needs = kNeeds, .rank = kRank, .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
