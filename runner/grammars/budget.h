// Limits of what a grammar may cost. Input that would cost more is refused with an error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mote::constraints {

inline constexpr size_t kMaxGrammarBytes = size_t{1} << 20;  // of source text
inline constexpr size_t kMaxNesting = 200;                   // of groups, schemas and values
inline constexpr size_t kMaxRules = 20'000;
inline constexpr size_t kMaxStates = 250'000;  // of all rules together, once deterministic
// Of one WorkBudget, of which a step is some 20 ns on a desktop processor.
inline constexpr size_t kMaxCompileSteps = 12'000'000;
inline constexpr size_t kMaxCompileBytes = size_t{48} << 20;
inline constexpr uint32_t kMaxStackDepth = 2'000;          // of rules inside of rules while matching
inline constexpr size_t kMaxStepWork = 200'000;            // stack entries touched by one byte
inline constexpr size_t kMaxMaskSteps = 20'000'000;        // of all that one mask is made of, also where it was kept
inline constexpr size_t kMaxClassifySteps = 4'000'000;     // of finding states that allow the same tokens
inline constexpr size_t kMaxTokenBytes = 512;              // longer tokens are never allowed
inline constexpr size_t kMaxMaskBytes = size_t{64} << 20;  // of a grammar; when there are more all are dropped

}  // namespace mote::constraints
