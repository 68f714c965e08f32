#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "runner/generation/generation.h"
#include "runner/generation/speculation/draft_model.h"
#include "runner/generation/speculation/speculator.h"
#include "tests/runner/session/random_ids.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using test::Ids;
using test::random_ids;

std::shared_ptr<const Model> open_model(const test::TinyFile& file) {
  auto model = Model::open(file.path());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

// ---- a session that looks ahead ----

class SpeculationOfWindow : public testing::TestWithParam<int32_t> {
 protected:
  SpeculationOfWindow() : file_(test::tiny_program({.window = GetParam()})), model_(open_model(file_)) {}

  std::unique_ptr<Session> open(int64_t context_length, int64_t chunk) const {
    return *Session::open(model_, {.context_length = context_length, .threads = 1, .prefill_chunk = chunk});
  }

  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

std::vector<float> copy(const Result<std::span<const float>>& logits) {
  EXPECT_TRUE(logits.ok()) << logits.status().message();
  return logits.ok() ? std::vector<float>(logits->begin(), logits->end()) : std::vector<float>();
}

// Drafts that are right for a while or not at all leave logits, maxima and tokens as they are without.
TEST_P(SpeculationOfWindow, drafts_change_no_bit_and_leave_no_trace) {
  std::mt19937 random(3);
  const Ids ids = random_ids(random, 60, 19);
  const auto plain = open(64, 6), ahead = open(64, 6);
  EXPECT_EQ(ahead->longest_draft(), 5u);
  copy(plain->prefill(std::span(ids).first(4)));
  copy(ahead->prefill(std::span(ids).first(4)));
  for (size_t i = 4; i < ids.size(); ++i) {
    Ids draft;
    if (random() % 2 == 0)
      draft.assign(ids.begin() + static_cast<ptrdiff_t>(i) + 1,
                   ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), i + 1 + random() % 6)));
    if (!draft.empty() && random() % 2 == 0) draft[random() % draft.size()] = static_cast<int32_t>(random() % 19);
    const auto expected = copy(plain->decode(ids[i]));
    EXPECT_EQ(copy(ahead->decode(ids[i], draft)), expected) << i;
    EXPECT_TRUE(std::ranges::equal(plain->logit_maxima(), ahead->logit_maxima()));
    EXPECT_TRUE(std::ranges::equal(plain->hidden_state(), ahead->hidden_state()));
    ASSERT_TRUE(
        std::equal(plain->tokens().begin(), plain->tokens().end(), ahead->tokens().begin(), ahead->tokens().end()))
        << i;
    if (random() % 8 == 0) {
      const int64_t back = static_cast<int64_t>(random() % 3);
      ASSERT_TRUE(plain->rewind(plain->position() - back).ok());
      ASSERT_TRUE(ahead->rewind(ahead->position() - back).ok());
      i -= static_cast<size_t>(back);
    }
  }
}

TEST_P(SpeculationOfWindow, a_draft_must_fit) {
  const auto session = open(8, 4);
  copy(session->prefill(Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(session->decode(1, Ids{1, 2, 3, 4}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->decode(1, Ids{1, 2, 3}).status().code(), Code::kContextFull);
  EXPECT_EQ(session->decode(1, Ids{19}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(session->position(), 5);
  copy(session->decode(1, Ids{1, 2}));
  EXPECT_EQ(session->position(), 6);
}

// ---- generations with and without ----

struct Outcome {
  Ids ids;
  std::string text;
  std::optional<FinishReason> reason;
  std::vector<float> logprobs;
  SpeculationStatistics statistics;
};

void run_to_the_end(Generation& generation) {
  for (bool ended = false; !ended;) {
    const auto piece = generation.next();
    ASSERT_TRUE(piece.ok()) << piece.status().message();
    ended = piece->finish_reason.has_value();
  }
}

// Steps two generations together: the caller sees no difference after any piece.
Outcome run_beside(Session& plain, Session& fast, const Ids& prompt, GenerationOptions options,
                   const SpeculationOptions& how, const std::shared_ptr<Speculator>& speculator) {
  options.speculation = {.speculative = SpeculationMode::kOff};
  auto expected = Generation::begin(plain, prompt, options);
  options.speculation = how;
  auto generation = Generation::begin(fast, prompt, options, speculator);
  EXPECT_TRUE(expected.ok() && generation.ok()) << generation.status().message();
  Outcome outcome;
  while (!outcome.reason.has_value()) {
    const auto a = (*expected)->next(), b = (*generation)->next();
    EXPECT_TRUE(a.ok() && b.ok()) << b.status().message();
    if (!a.ok() || !b.ok()) break;
    EXPECT_EQ(a->id, b->id);
    EXPECT_EQ(a->text, b->text);
    EXPECT_EQ(a->logprob, b->logprob);
    EXPECT_EQ(a->top_logprobs.size(), b->top_logprobs.size());
    for (size_t i = 0; i < a->top_logprobs.size(); ++i) {
      EXPECT_EQ(a->top_logprobs[i].id, b->top_logprobs[i].id);
      EXPECT_EQ(a->top_logprobs[i].logprob, b->top_logprobs[i].logprob);
    }
    EXPECT_EQ(a->finish_reason, b->finish_reason);
    EXPECT_TRUE(std::equal(plain.tokens().begin(), plain.tokens().end(), fast.tokens().begin(), fast.tokens().end()));
    if (testing::Test::HasFailure()) break;
    if (b->id >= 0) outcome.ids.push_back(b->id);
    outcome.text += b->text;
    outcome.reason = b->finish_reason;
  }
  EXPECT_EQ((*expected)->statistics().speculation.drafts, 0);
  outcome.statistics = (*generation)->statistics().speculation;
  return outcome;
}

GenerationOptions random_options(std::mt19937& random) {
  const auto chance = [&](int of) { return static_cast<int>(random() % static_cast<uint32_t>(of)) == 0; };
  const auto number = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(random() % 1000) / 1000.0));
  };
  GenerationOptions options;
  options.max_new_tokens = chance(3) ? 0 : static_cast<int64_t>(random() % 40 + 1);
  options.ignore_eos = chance(2);
  options.skip_special_tokens = chance(2);
  options.logprobs = chance(3);
  options.top_logprobs = chance(3) ? 3 : 0;
  if (chance(4)) options.stop_strings = {"a", "bc"};
  SamplingOptions& sampling = options.sampling;
  sampling.do_sample = chance(2);
  sampling.seed = random();
  sampling.temperature = number(0.05, 2.0);
  if (chance(3)) sampling.top_k = static_cast<int32_t>(random() % 10 + 1);
  if (chance(3)) sampling.top_p = number(0.2, 1.0);
  if (chance(4)) sampling.min_p = number(0.0, 0.3);
  if (chance(5)) sampling.typical_p = number(0.2, 1.0);
  if (chance(5)) sampling.xtc_probability = 0.5f;
  if (chance(3)) sampling.repetition_penalty = number(0.8, 1.5);
  if (chance(5)) sampling.repetition_window = 6;
  if (chance(5)) sampling.frequency_penalty = number(-0.5, 1.0);
  if (chance(5)) sampling.presence_penalty = number(-0.5, 1.0);
  if (chance(5)) sampling.dry_multiplier = 0.8f;
  if (chance(5)) sampling.no_repeat_ngram_size = static_cast<int32_t>(random() % 4 + 2);
  if (chance(4)) sampling.min_new_tokens = static_cast<int32_t>(random() % 10);
  if (chance(5)) sampling.sequence_bias = {{{3}, 2.0f}, {{4, 5}, -3.0f}};
  return options;
}

TEST_P(SpeculationOfWindow, every_option_gives_the_same_with_and_without) {
  test::ProgramBuilder builder = test::tiny_program({.window = GetParam(), .seed = 4});
  builder.program.eos_token_ids = {7};
  const test::TinyFile file(builder);
  const auto model = open_model(file);
  std::mt19937 random(5);
  const auto speculator = std::make_shared<Speculator>();
  const auto fast = *Session::open(model, {.context_length = 64, .threads = 1, .prefill_chunk = 12});
  int64_t accepted = 0, rejected = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto plain = *Session::open(model, {.context_length = 64, .threads = 1, .prefill_chunk = 12});
    if (random() % 4 == 0 && fast->position() > 0 && fast->position() < 30) {
      copy(plain->prefill(fast->tokens()));  // the next turn of a conversation
    } else {
      fast->reset();
    }
    const Ids prompt = random_ids(random, 2 + random() % 20, 6);
    const SpeculationOptions how{SpeculationMode::kLookup, static_cast<int32_t>(random() % 9)};
    const Outcome outcome = run_beside(*plain, *fast, prompt, random_options(random), how, speculator);
    if (HasFailure()) return;
    accepted += outcome.statistics.accepted_tokens;
    rejected += outcome.statistics.proposed_tokens - outcome.statistics.accepted_tokens;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(rejected, 500);
}

INSTANTIATE_TEST_SUITE_P(Windows, SpeculationOfWindow, testing::Values(0, 3));

class Speculation : public testing::Test {
 protected:
  Speculation() : file_(test::tiny_program()), model_(open_model(file_)) {}
  std::unique_ptr<Session> open(int64_t context_length = 64) const {
    return *Session::open(model_, {.context_length = context_length, .threads = 1});
  }
  static GenerationOptions fixed(int32_t draft_tokens, int64_t max_new_tokens = 0) {
    return {
        .max_new_tokens = max_new_tokens, .ignore_eos = true, .speculation = {SpeculationMode::kLookup, draft_tokens}};
  }

  test::TinyFile file_;
  std::shared_ptr<const Model> model_;
};

// Ends at a place where tokens were verified that nobody has seen; what follows is as if they never were.
TEST_F(Speculation, abandoned_or_cancelled_generations_leave_what_was_handed_out) {
  const Ids prompt = {1, 2, 3, 1, 2, 3, 1, 2};
  for (const bool cancels : {false, true}) {
    for (int pieces = 1; pieces < 30; ++pieces) {
      const auto session = open(), plain = open();
      auto generation = Generation::begin(*session, prompt, fixed(6));
      ASSERT_TRUE(generation.ok());
      Ids held = prompt;
      for (int i = 0; i < pieces; ++i) {
        const auto piece = (*generation)->next();
        ASSERT_TRUE(piece.ok());
        held.push_back(piece->id);
      }
      if (cancels) {
        session->cancel();
        const auto last = (*generation)->next();
        ASSERT_TRUE(last.ok());
        EXPECT_EQ(last->finish_reason, FinishReason::kCancelled);
        EXPECT_EQ(last->id, -1);
      }
      held.pop_back();
      ASSERT_TRUE(std::equal(held.begin(), held.end(), session->tokens().begin(), session->tokens().end()));
      generation = Status();
      copy(plain->prefill(held));
      const Ids other = {5, 6, 7};
      EXPECT_EQ(copy(session->prefill(other)), copy(plain->prefill(other))) << pieces;
    }
  }
}

TEST_F(Speculation, statistics_tell_what_was_proposed_and_accepted) {
  const auto session = open();
  auto generation = Generation::begin(*session, {1, 2, 3}, fixed(4, 100));
  ASSERT_TRUE(generation.ok());
  run_to_the_end(**generation);
  const SpeculationStatistics statistics = (*generation)->statistics().speculation;
  EXPECT_GT(statistics.drafts, 0);
  EXPECT_GE(statistics.proposed_tokens, statistics.drafts);
  EXPECT_LE(statistics.proposed_tokens, 4 * statistics.drafts);
  EXPECT_GT(statistics.accepted_tokens, 0);  // greedy decoding of a random model falls into a loop
  EXPECT_LE(statistics.accepted_tokens, statistics.proposed_tokens);
  EXPECT_DOUBLE_EQ(statistics.mean_run_length(),
                   static_cast<double>(statistics.accepted_tokens) / static_cast<double>(statistics.drafts) + 1);
  EXPECT_EQ(statistics.off_reason, nullptr);
}

TEST_F(Speculation, options_out_of_range_are_refused_by_name) {
  const auto session = open();
  const auto message = [&](const SpeculationOptions& how) {
    return Generation::begin(*session, {1}, {.speculation = how}).status().message();
  };
  EXPECT_NE(message({SpeculationMode::kAuto, 32}).find("draft_tokens = 32"), std::string::npos);
  EXPECT_NE(message({SpeculationMode::kAuto, -1}).find("draft_tokens = -1"), std::string::npos);
  EXPECT_NE(message({SpeculationMode::kDraft}).find("no draft model"), std::string::npos);
  const auto small = *Session::open(model_, {.prefill_chunk = 1});
  EXPECT_NE(Generation::begin(*small, {1}, fixed(0)).status().message().find("prefill_chunk"), std::string::npos);
  auto plain = Generation::begin(*small, {1}, {.max_new_tokens = 2});
  ASSERT_TRUE(plain.ok() && (*plain)->next().ok() && (*plain)->next().ok());
  EXPECT_NE((*plain)->statistics().speculation.off_reason, nullptr);
}

// ---- heads on the model's hidden state ----

// A head as MTP and EAGLE have them, but that it only remembers: after this state of the model and this id came that
// id, and then the model had that state.
class RememberingHead : public Proposer {
 public:
  struct Memory {
    std::vector<float> state;
    int32_t id = 0;  // chosen from it
  };
  explicit RememberingHead(std::vector<Memory> memories) : memories_(std::move(memories)) {}

  Rates expected_rates() const override {
    Rates rates;
    rates.fill(0.9);
    return rates;
  }

  Status propose(const DraftContext& context, Draft& draft) override {
    const auto same = [&](const Memory& memory) {
      return memory.id == context.text.back() && std::ranges::equal(memory.state, context.hidden_state);
    };
    const auto found = std::find_if(memories_.begin(), memories_.end(), same);
    if (found == memories_.end()) return {};
    for (auto next = found + 1; next != memories_.end() && draft.wants(0); ++next) draft.add(next->id, 0);
    return {};
  }

 private:
  std::vector<Memory> memories_;
};

TEST_F(Speculation, a_head_reads_the_state_that_the_last_id_was_chosen_from) {
  const Ids prompt = {1, 2, 3};
  const auto teacher = open();
  std::vector<RememberingHead::Memory> memories;
  auto logits = teacher->prefill(prompt);
  while (memories.size() < 40) {
    const auto id = static_cast<int32_t>(std::ranges::max_element(*logits) - logits->begin());
    memories.push_back({{teacher->hidden_state().begin(), teacher->hidden_state().end()}, id});
    logits = teacher->decode(id);
  }
  EXPECT_FALSE(memories[0].state.empty());
  EXPECT_NE(memories[0].state, memories[1].state);

  const auto plain = open(), fast = open();
  auto speculator = std::make_shared<Speculator>();
  speculator->set_draft_source(std::make_unique<RememberingHead>(memories));
  const GenerationOptions options{.max_new_tokens = 31, .ignore_eos = true};
  const Outcome outcome = run_beside(*plain, *fast, prompt, options, {SpeculationMode::kDraft, 4}, speculator);
  EXPECT_EQ(outcome.statistics.drafts, 6);  // 30 steps, five tokens each
  EXPECT_EQ(outcome.statistics.accepted_tokens, 24);
}

TEST_F(Speculation, hidden_states_are_told_only_with_the_logits_that_were_made_of_them) {
  const auto session = open();
  copy(session->prefill(Ids{1, 2, 3}));
  const std::vector<float> state(session->hidden_state().begin(), session->hidden_state().end());
  const auto fork = *session->fork();
  copy(fork->logits());
  EXPECT_TRUE(fork->hidden_state().empty());
  copy(fork->decode(4));
  copy(session->decode(4));
  EXPECT_TRUE(std::ranges::equal(fork->hidden_state(), session->hidden_state()));
  ASSERT_TRUE(session->rewind(2).ok());
  copy(session->decode(3));
  EXPECT_TRUE(std::ranges::equal(session->hidden_state(), state));
}

// ---- draft models ----

class DraftModels : public testing::Test {
 protected:
  DraftModels() : file_(test::tiny_program()), model_(open_model(file_)) {}

  std::unique_ptr<Session> open(int64_t context_length = 64, int64_t chunk = 12) const {
    return *Session::open(model_, {.context_length = context_length, .threads = 1, .prefill_chunk = chunk});
  }
  // A speculator of `session` with a draft model made as told.
  std::shared_ptr<Speculator> with_draft(const Session& session, const test::TinyModelOptions& options) {
    drafts_.push_back(std::make_unique<test::TinyFile>(test::tiny_program(options)));
    auto draft = DraftModel::open(session, open_model(*drafts_.back()));
    EXPECT_TRUE(draft.ok()) << draft.status().message();
    const auto speculator = std::make_shared<Speculator>();
    if (draft.ok()) speculator->set_draft_source(*std::move(draft));
    return speculator;
  }
  std::string refusal(const test::ProgramBuilder& builder) const {
    const test::TinyFile file(builder);
    const Status status = DraftModel::open(*open(), open_model(file)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  }

  test::TinyFile file_;
  std::vector<std::unique_ptr<test::TinyFile>> drafts_;
  std::shared_ptr<const Model> model_;
};

// The draft is the model itself, another one, or one whose window has moved on.
TEST_F(DraftModels, every_option_gives_the_same_with_and_without) {
  std::mt19937 random(6);
  int64_t accepted = 0, rejected = 0;
  for (const test::TinyModelOptions& draft : {test::TinyModelOptions{}, {.seed = 2}, {.window = 4}}) {
    const auto fast = open();
    const auto speculator = with_draft(*fast, draft);
    for (int round = 0; round < 100; ++round) {
      SCOPED_TRACE(round);
      const auto plain = open();
      if (random() % 4 == 0 && fast->position() > 0 && fast->position() < 30) {
        copy(plain->prefill(fast->tokens()));
      } else {
        fast->reset();
      }
      const auto mode = random() % 2 == 0 ? SpeculationMode::kDraft : SpeculationMode::kAuto;
      const SpeculationOptions how{mode, static_cast<int32_t>(random() % 9)};
      const Outcome outcome =
          run_beside(*plain, *fast, random_ids(random, 2 + random() % 20, 19), random_options(random), how, speculator);
      if (HasFailure()) return;
      accepted += outcome.statistics.accepted_tokens;
      rejected += outcome.statistics.proposed_tokens - outcome.statistics.accepted_tokens;
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(rejected, 200);
}

TEST_F(DraftModels, a_draft_that_is_the_model_is_always_right) {
  const auto session = open();
  const auto speculator = with_draft(*session, {});
  auto generation = Generation::begin(
      *session, {1, 2}, {.max_new_tokens = 41, .ignore_eos = true, .speculation = {SpeculationMode::kDraft, 4}},
      speculator);
  ASSERT_TRUE(generation.ok());
  run_to_the_end(**generation);
  const SpeculationStatistics statistics = (*generation)->statistics().speculation;
  EXPECT_EQ(statistics.drafts, 8);  // 40 steps, five tokens each
  EXPECT_EQ(statistics.proposed_tokens, 32);
  EXPECT_EQ(statistics.accepted_tokens, 32);
  EXPECT_EQ(statistics.mean_run_length(), 5.0);
}

TEST_F(DraftModels, a_cancelled_proposal_ends_the_generation_and_leaves_the_session_exact) {
  const auto session = open();
  const auto speculator = with_draft(*session, {.seed = 2});
  auto generation = Generation::begin(*session, {1, 2},
                                      {.ignore_eos = true, .speculation = {SpeculationMode::kDraft, 4}}, speculator);
  ASSERT_TRUE(generation.ok());
  const int32_t first = (*generation)->next()->id;
  session->cancel();
  EXPECT_EQ((*generation)->next()->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(session->position(), 2);
  const auto plain = open();
  copy(plain->prefill(Ids{1, 2}));
  EXPECT_EQ(copy(session->decode(first)), copy(plain->decode(first)));
}

TEST_F(DraftModels, other_tokens_are_refused_by_name) {
  const std::string without = refusal(test::tiny_model());
  EXPECT_NE(without.find("has none"), std::string::npos) << without;
  const test::TinyFile bare(test::tiny_model({.vocab_size = 23})), other(test::tiny_model());
  const auto target = *Session::open(open_model(bare), {.threads = 1});
  const std::string sizes = DraftModel::open(*target, open_model(other)).status().message();
  EXPECT_NE(sizes.find("vocab_size = 19: must be 23"), std::string::npos) << sizes;
}

// 100,000 tokens that were sampled behind proposals, against the probabilities that sampling draws from.
TEST_F(DraftModels, sampling_keeps_the_distribution) {
  const Ids prompt = {3, 1, 4};
  GenerationOptions options{.max_new_tokens = 3, .ignore_eos = true, .speculation = {SpeculationMode::kDraft, 2}};
  options.sampling.do_sample = true;
  options.sampling.temperature = 500.0f;  // the logits of the tiny model are far apart
  const auto session = open();
  const auto speculator = with_draft(*session, {.seed = 2});
  Sampler sampler(options.sampling, 19);
  std::map<std::pair<int32_t, int32_t>, double> expected, seen;  // of the second and the third token
  const auto after = [&](int64_t position, int32_t id) {
    EXPECT_TRUE(session->rewind(position).ok());
    return sampler.probabilities(copy(session->decode(id)));
  };
  const std::vector<float> first = sampler.probabilities(copy(session->prefill(prompt)));
  for (int32_t a = 0; a < 19; ++a) {
    const std::vector<float> second = after(3, a);
    for (int32_t b = 0; b < 19; ++b) {
      const std::vector<float> third = after(4, b);
      const double probability =
          static_cast<double>(first[static_cast<size_t>(a)]) * static_cast<double>(second[static_cast<size_t>(b)]);
      for (int32_t c = 0; c < 19; ++c)
        expected[{b, c}] += probability * static_cast<double>(third[static_cast<size_t>(c)]);
    }
  }
  constexpr int kDraws = 50'000;  // of two tokens
  int64_t accepted = 0, rejected = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    session->reset();
    options.sampling.seed = static_cast<uint64_t>(draw);
    auto generation = Generation::begin(*session, prompt, options, speculator);
    ASSERT_TRUE(generation.ok() && (*generation)->next().ok());
    const int32_t second = (*generation)->next()->id;
    seen[{second, (*generation)->next()->id}] += 1.0;
    const SpeculationStatistics statistics = (*generation)->statistics().speculation;
    ASSERT_EQ(statistics.proposed_tokens, 1);
    accepted += statistics.accepted_tokens;
    rejected += 1 - statistics.accepted_tokens;
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(rejected, 2000);
  double chi_square = 0.0, cells = 0.0;
  for (const auto& [pair, probability] : expected) {
    if (probability <= 0.0) {
      EXPECT_EQ(seen[pair], 0.0);
      continue;
    }
    const double mean = probability * kDraws;
    chi_square += (seen[pair] - mean) * (seen[pair] - mean) / mean;
    cells += 1.0;
  }
  EXPECT_GT(cells, 50.0);
  EXPECT_LT(chi_square, cells - 1.0 + 3.0 * std::sqrt(2.0 * cells));
}

}  // namespace
}  // namespace mote
