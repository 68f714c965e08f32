// Biases, penalties and n-grams are compared with transformers in tests/llm_runner/test_runner_sampling.py.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "runner/generation/sampling/logit_edits.h"

namespace mote {
namespace {

using Edits = std::map<int32_t, float>;
using Ids = std::vector<int32_t>;

constexpr int32_t kVocabulary = 10;
constexpr float kNever = -std::numeric_limits<float>::infinity();

// What a text of these ids, all of them output, makes of logits that are all 1.
Edits edits_of(const SamplingOptions& options, const Ids& text, const Ids& eos = {}) {
  LogitEdits edits(options, kVocabulary, eos);
  for (const int32_t id : text) edits.observe(id, true);
  Edits result;
  for (const LogitEdit& edit : edits.apply(std::vector<float>(kVocabulary, 1.0f))) result[edit.id] = edit.logit;
  return result;
}

TEST(LogitEdits, do_nothing_where_nothing_is_asked_for) { EXPECT_EQ(edits_of({}, {1, 2, 3, 1, 2}), Edits()); }

TEST(LogitEdits, count_how_often_an_id_was_generated) {
  SamplingOptions options;
  options.frequency_penalty = 0.5f;
  options.presence_penalty = 0.25f;
  EXPECT_EQ(edits_of(options, {1, 2, 1}), (Edits{{1, -0.25f}, {2, 0.25f}}));
  LogitEdits edits(options, kVocabulary, {});
  edits.observe(1, false);  // of the prompt
  EXPECT_TRUE(edits.apply(std::vector<float>(kVocabulary, 1.0f)).empty());
}

TEST(LogitEdits, the_window_of_the_repetition_penalty_moves_on) {
  SamplingOptions options;
  options.repetition_penalty = 2.0f;
  options.repetition_window = 2;
  EXPECT_EQ(edits_of(options, {1, 2, 3}), (Edits{{2, 0.5f}, {3, 0.5f}}));
  EXPECT_EQ(edits_of(options, {1, 2, 1, 3}), (Edits{{1, 0.5f}, {3, 0.5f}}));
}

TEST(LogitEdits, dry_grows_with_the_repetition_it_would_continue) {
  SamplingOptions options;
  options.dry_multiplier = 1.0f;
  options.dry_base = 2.0f;
  EXPECT_EQ(edits_of(options, {1, 2, 3, 7, 2}), Edits());                       // one id repeated
  EXPECT_EQ(edits_of(options, {1, 2, 3, 7, 1, 2}), (Edits{{3, 0.0f}}));         // two: 1 - 1 * 2^0
  EXPECT_EQ(edits_of(options, {9, 1, 2, 3, 7, 9, 1, 2}), (Edits{{3, -1.0f}}));  // three
  options.dry_allowed_length = 1;
  EXPECT_EQ(edits_of(options, {2, 3, 2, 4, 2}), (Edits{{3, 0.0f}, {4, 0.0f}}));
}

TEST(LogitEdits, dry_stops_at_breakers_and_at_its_window) {
  SamplingOptions options;
  options.dry_multiplier = 1.0f;
  const Ids text = {9, 1, 2, 3, 7, 9, 1, 2};
  options.dry_sequence_breakers = {1};
  EXPECT_EQ(edits_of(options, text), Edits());  // 1 ends the repetition, which has one id then
  options.dry_sequence_breakers = {2};
  EXPECT_EQ(edits_of(options, text), Edits());  // the text ends with one
  options.dry_sequence_breakers = {3};
  EXPECT_EQ(edits_of(options, text), Edits());  // what would come next is one
  options.dry_sequence_breakers = {};
  options.dry_window = 5;
  EXPECT_EQ(edits_of(options, text), Edits());
}

TEST(LogitEdits, a_long_repetition_stays_finite_or_bans) {
  SamplingOptions options;
  options.dry_multiplier = 3.0e38f;
  options.dry_base = 100.0f;
  const Edits edits = edits_of(options, Ids(200, 4));
  ASSERT_EQ(edits.size(), 1u);
  EXPECT_EQ(edits.at(4), kNever);
}

TEST(LogitEdits, no_end_before_enough_tokens) {
  SamplingOptions options;
  options.min_new_tokens = 2;
  EXPECT_EQ(edits_of(options, {1}, {0, 5}), (Edits{{0, kNever}, {5, kNever}}));
  EXPECT_EQ(edits_of(options, {1, 2}, {0, 5}), Edits());
  EXPECT_EQ(edits_of(options, {1}, {0, 1000}), (Edits{{0, kNever}}));
}

TEST(LogitEdits, edits_of_a_step_do_not_outlive_it) {
  SamplingOptions options;
  options.no_repeat_ngram_size = 2;
  options.sequence_bias = {{{3, 4}, 1.5f}};
  LogitEdits edits(options, kVocabulary, {});
  const std::vector<float> logits(kVocabulary, 1.0f);
  for (const int32_t id : {3, 5, 3}) edits.observe(id, true);
  EXPECT_EQ(edits.apply(logits).size(), 2u);  // 4 has a bias, 5 is banned
  edits.observe(6, true);
  EXPECT_TRUE(edits.apply(logits).empty());
  edits.observe(-1, true);
  edits.observe(kVocabulary, true);
  EXPECT_TRUE(edits.apply(logits).empty());
}

}  // namespace
}  // namespace mote
