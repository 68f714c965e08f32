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

template <bool kIsWhole>
MOTE_INLINE F32x16 load_row(const float* from, int64_t count) {
  return kIsWhole ? load_f32(from) : load_upto(from, count);
}

template <bool kIsWhole>
MOTE_INLINE void store_row(float* to, F32x16 value, int64_t count) {
  if (kIsWhole) {
    store_f32(to, value);
  } else {
    store_upto(to, value, count);
  }
}

// kIsWhole: the width is a multiple of 16.
template <int kRows, bool kHasBeta, bool kIsWhole, Decay kDecay>
class Rows {
 public:
  Rows(const LinearAttentionTokens& call, const LinearAttentionRow* rows) : call_(call), rows_(rows) {
    for (int r = 0; r < kRows; ++r) state_[r] = rows[r].state;
  }

  // Builds for size have the code of the first token for all.
  void run() {
    if constexpr (!kIsSmall) run_token<true>(0);
    for (int64_t t = kIsSmall ? 0 : 1; t < call_.tokens; ++t) run_token<kIsSmall>(t);
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
    add<kFetches && !kHasBeta>(k, call_.q.first + t * call_.q.step, t);
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

  MOTE_INLINE F32x16 load(const float* from, int64_t n) const { return load_row<kIsWhole>(from + n, call_.width - n); }
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
      const F32x16 key = load(k, n), query = load(q, n);
      fetch<kFetches>(n);
      for (int r = 0; r < kRows; ++r) {
        const F32x16 value = fma(key, updates[r], decayed(r, n));
        store_row<kIsWhole>(state_[r] + n, value, call_.width - n);
        read[r] = fma(query, value, read[r]);
      }
    }
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

// The tokens of a few columns of rows, which stay in registers meanwhile.
template <int kRows, bool kIsWhole, Decay kDecay>
class ReplayedRows {
 public:
  ReplayedRows(const LinearAttentionTokens& call, const LinearAttentionRow* rows) : call_(call), rows_(rows) {}

  void run() const {
    int64_t n = 0;
    for (; n + 16 * kVectors <= call_.width; n += 16 * kVectors) run_columns<kVectors>(n);
    for (; n < call_.width; n += 16) run_columns<1>(n);
  }

 private:
#if defined(__AVX512F__)
  static constexpr int kVectors = 4;  // of 32, four rows of these are half
#else
  static constexpr int kVectors = 1;
#endif

  // Lines of rows behind these, in their order.
  MOTE_INLINE void fetch(int64_t n) const {
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(rows_[0].from + kFetchAhead + n * kRows + r * 16);
      __builtin_prefetch(rows_[0].state + kFetchAhead + n * kRows + r * 16, 1);
    }
  }

  template <int kCount>
  MOTE_INLINE void run_columns(int64_t n) const {
    F32x16 state[kRows][kCount];
    const float *update[kRows], *decay[kRows];
    for (int i = 0; i < kCount; ++i) fetch(n + 16 * i);
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kCount; ++i) state[r][i] = load(rows_[r].from, n + 16 * i);
      update[r] = rows_[r].v.first;
      decay[r] = rows_[r].decay.first;
    }
    const float* k = call_.k.first;
    const int64_t update_step = rows_[0].v.step, decay_step = rows_[0].decay.step;
    for (int64_t t = 0; t < call_.tokens; ++t) {
      F32x16 keys[kCount];
      for (int i = 0; i < kCount; ++i) keys[i] = load(k, n + 16 * i);
      for (int r = 0; r < kRows; ++r) {
        const F32x16 added = splat(*update[r]);
        const F32x16 decays = kDecay == Decay::kOfRow ? splat(*decay[r]) : added;
        for (int i = 0; i < kCount; ++i) {
          const F32x16 factor = kDecay == Decay::kOfElements ? load(decay[r], n + 16 * i) : decays;
          const F32x16 decayed = kDecay == Decay::kNone ? state[r][i] : factor * state[r][i];
          state[r][i] = fma(keys[i], added, decayed);
        }
        update[r] += update_step;
        if (kDecay != Decay::kNone) decay[r] += decay_step;
      }
      k += call_.k.step;
    }
    for (int r = 0; r < kRows; ++r) {
      for (int i = 0; i < kCount; ++i)
        store_row<kIsWhole>(rows_[r].state + n + 16 * i, state[r][i], call_.width - n - 16 * i);
    }
  }
  MOTE_INLINE F32x16 load(const float* from, int64_t n) const { return load_row<kIsWhole>(from + n, call_.width - n); }

  const LinearAttentionTokens& call_;
  const LinearAttentionRow* rows_;
};

// Whether rows are taken four at a time: in builds for size not those of rare widths.
template <bool kIsWhole> constexpr bool kTogether = kIsWhole || !kIsSmall;

struct RunBlocks {
  template <bool kHasBeta, bool kIsWhole, Decay kDecay>
  static void block(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
    if constexpr (kTogether<kIsWhole>) {
      if (count == kLinearAttentionRows)
        return Rows<kLinearAttentionRows, kHasBeta, kIsWhole, kDecay>(call, rows).run();
    }
    for (int r = 0; r < count; ++r) Rows<1, kHasBeta, kIsWhole, kDecay>(call, rows + r).run();
  }
};

struct ReplayBlocks {
  template <bool, bool kIsWhole, Decay kDecay>
  static void block(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
    if constexpr (kTogether<kIsWhole>) {
      if (count == kLinearAttentionRows) return ReplayedRows<kLinearAttentionRows, kIsWhole, kDecay>(call, rows).run();
    }
    for (int r = 0; r < count; ++r) ReplayedRows<1, kIsWhole, kDecay>(call, rows + r).run();
  }
};

template <typename Blocks, bool kHasBeta, bool kIsWhole>
void run_decay(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  const auto with = [&]<Decay kDecay>() { Blocks::template block<kHasBeta, kIsWhole, kDecay>(call, rows, count); };
  if (rows->decay.first == nullptr) return with.template operator()<Decay::kNone>();
  if (!call.decay_is_vector) return with.template operator()<Decay::kOfRow>();
  with.template operator()<Decay::kOfElements>();
}

template <typename Blocks, bool kHasBeta>
void run_width(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  call.width % 16 == 0 ? run_decay<Blocks, kHasBeta, true>(call, rows, count)
                       : run_decay<Blocks, kHasBeta, false>(call, rows, count);
}

void run(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  rows->beta.first == nullptr ? run_width<RunBlocks, false>(call, rows, count)
                              : run_width<RunBlocks, true>(call, rows, count);
}

void replay(const LinearAttentionTokens& call, const LinearAttentionRow* rows, int count) {
  run_width<ReplayBlocks, false>(call, rows, count);
}

constexpr LinearAttentionFunctions kFunctions = {run, replay};

MOTE_REGISTER_KERNEL(.name = "linear_attention_" MOTE_ISA_NAME, .role = LinearAttentionFunctions::kRole,
                     .needs = kNeeds, .rank = kRank, .functions = &kFunctions);

}  // namespace
}  // namespace MOTE_ISA
}  // namespace mote
