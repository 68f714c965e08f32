// Small ops for tests of loader and executor, and a language model made of them whose logits are easy to compute by
// hand.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tests/runner/program/program_builder.h"

namespace mote::test {

inline constexpr int64_t kVocabSize = 11;
inline constexpr int64_t kDim = 4;

// Methods of sum_model.
inline constexpr uint32_t kPrefill = 0;
inline constexpr uint32_t kDecode = 1;
inline constexpr uint32_t kVerify = 2;  // its logits are a row a token

// Number of times that check of any test op ran.
extern std::atomic<int64_t> num_checks;
// Set by the op test.cancel when it runs.
extern std::atomic<bool> cancel_flag;

// test.embedding -> test.running_sum (recurrent state) -> test.head. Methods prefill, decode and verify.
ProgramBuilder sum_model();

// What a target of sum_model adds behind the embedding: x float32 [1, T, kDim] -> a value of the same shape.
using Between = std::function<int32_t(MethodBuilder&, int32_t)>;
// Appends prefill, decode and verify of sum_model in another target.
void add_target(ProgramBuilder& builder, const std::string& target, const Between& between);
// The tables of sum_model without methods.
ProgramBuilder sum_tables();

// What sum_model computes for `ids` from position 0: [ids, kVocabSize].
std::vector<float> sum_model_logits(const std::vector<int64_t>& ids);

}  // namespace mote::test
