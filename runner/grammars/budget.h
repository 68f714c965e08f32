// Limits of what a grammar may cost. Input that would cost more is refused with an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote::constraints {

inline constexpr size_t kMaxGrammarBytes = size_t{1} << 20;  // of source text
inline constexpr size_t kMaxNesting = 200;                   // of groups, schemas and values
inline constexpr size_t kMaxRules = 20'000;
inline constexpr size_t kMaxExpressions = 500'000;
inline constexpr size_t kMaxNfaStates = 1'000'000;  // of all rules together
inline constexpr size_t kMaxStates = 250'000;       // of all rules together, once deterministic
inline constexpr size_t kMaxWork = 30'000'000;      // steps of making them deterministic
inline constexpr uint32_t kMaxStackDepth = 2'000;   // of rules inside of rules while matching
inline constexpr size_t kMaxStepWork = 200'000;     // stack entries touched by one byte
inline constexpr size_t kMaxTokenBytes = 512;       // longer tokens are never allowed
inline constexpr size_t kMaxMaskBytes = size_t{192}
                                        << 20;  // of masks that are kept; when there are more all are dropped

}  // namespace mote::constraints
