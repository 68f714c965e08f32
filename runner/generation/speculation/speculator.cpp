#include "runner/generation/speculation/speculator.h"

#include <algorithm>

#include "runner/generation/options/accepted.h"
#include "runner/generation/speculation/mtp.h"
#include "runner/generation/speculation/prompt_lookup.h"
#include "runner/generation/statistics.h"

namespace mote {
namespace {

// What may be lost to wrong drafts: this share of the time of plain decoding, beside what right ones have won.
constexpr double kAffordableShare = 0.02;
// And at the beginning so many plain steps: enough to try a short draft, or a draft model a few times.
constexpr double kFirstAllowance = 0.5;
constexpr double kFirstAllowanceOfDraftSource = 2.0;
// Of what was won, so many plain steps may be lost again.
constexpr double kMostBalance = 8.0;
constexpr double kRemembered = 0.9;        // of a source's tokens and seconds, from draft to draft
constexpr double kRememberedSteps = 0.99;  // of plain steps, which the speed-up is measured by

}  // namespace

const char* why_no_speculation(const Session& session) {
  const Model& model = session.model();
  const Result<uint32_t> verify = model.bound()->method_index("verify");
  if (verify.ok() && depends_on_call(model.bound()->method(*verify))) {
    return "the model's rotary embedding depends on the length of the text, so tokens must be computed one at a time";
  }
  if (session.shares_engine()) return "the session takes turns with others on one engine";
  if (session.longest_draft() > 0) return nullptr;
  return session.options().prefill_chunk == 1 ? "prefill_chunk = 1 leaves no room for drafts"
                                              : "rewind_tokens and rewind_mb leave the recurrent state no way back";
}

Speculator::Speculator() {
  sources_.push_back(std::make_unique<Source>(SpeculationMode::kLookup, std::make_unique<PromptLookup>()));
}

void Speculator::set_draft_source(std::unique_ptr<Proposer> proposer) {
  pending_ = {};
  std::erase_if(sources_, [](const auto& source) { return source->mode == SpeculationMode::kDraft; });
  if (proposer != nullptr) sources_.push_back(std::make_unique<Source>(SpeculationMode::kDraft, std::move(proposer)));
}

const Speculator::Source* Speculator::find(SpeculationMode mode) const {
  const auto found = std::ranges::find(sources_, mode, [](const auto& source) { return source->mode; });
  return found == sources_.end() ? nullptr : found->get();
}

bool Speculator::uses_head(const Session& session, const SpeculationOptions& options) {
  const bool is_wanted = options.speculative == SpeculationMode::kAuto || options.speculative == SpeculationMode::kMtp;
  return is_wanted && session.has_draft_head() && why_no_speculation(session) == nullptr;
}

Status Speculator::check(const Session& session, const SpeculationOptions& options) const {
  MOTE_RETURN_IF_ERROR(
      check_accepted("draft_tokens", options.draft_tokens, within(0, kMostDraftTokens, "0: as many as pay")));
  if (options.speculative == SpeculationMode::kAuto || options.speculative == SpeculationMode::kOff) return {};
  const bool is_draft = options.speculative == SpeculationMode::kDraft;
  const bool is_mtp = options.speculative == SpeculationMode::kMtp;
  MOTE_REQUIRE(!is_draft || has_draft_source(), Code::kInvalidArgument,
               "speculative = draft: this session has no draft model: give one, or use lookup or auto");
  const char* reason = why_no_speculation(session);
  MOTE_REQUIRE(reason == nullptr, Code::kInvalidArgument, "speculative = %s: %s: use auto or off",
               is_mtp     ? "mtp"
               : is_draft ? "draft"
                          : "lookup",
               reason);
  MOTE_REQUIRE(!is_mtp || session.has_draft_head(), Code::kInvalidArgument,
               "speculative = mtp: %s has no head for multi-token prediction: use lookup or auto",
               session.model().path().c_str());
  return {};
}

void Speculator::begin(const Session& session, const SpeculationOptions& options) {
  options_ = options;
  statistics_ = {};
  statistics_.off_reason =
      options.speculative == SpeculationMode::kOff ? "it was turned off" : why_no_speculation(session);
  pending_ = {};
  num_tokens_ = 0;
  balance_ = std::max(balance_, 0.0);
  text_.clear();
  if (session.has_draft_head() && find(SpeculationMode::kMtp) == nullptr) {
    sources_.insert(sources_.begin() + 1,
                    std::make_unique<Source>(SpeculationMode::kMtp, std::make_unique<MultiTokenPrediction>()));
  }
  for (const auto& source : sources_) source->proposer->begin_text();
}

bool Speculator::is_enabled(const Source& source) const {
  return options_.speculative == SpeculationMode::kAuto || options_.speculative == source.mode;
}

double Speculator::allowance() const {
  return balance_ + costs_.of(1) * (sources_.size() > 1 ? kFirstAllowanceOfDraftSource : kFirstAllowance);
}

// `id` is what came where the first of the pending ids that are left was proposed.
void Speculator::settle(int32_t id) {
  if (pending_.source == nullptr) return;
  if (pending_.is_verified) {
    settle_verified();
  } else {
    pending_.source->rates.add(pending_.grades.front(), pending_.ids.front() == id);
  }
  pending_.source = nullptr;
}

void Speculator::settle_verified() {
  Source& source = *pending_.source;
  const size_t count = pending_.ids.size();
  for (size_t i = 0; i < std::min(num_right_ + 1, count); ++i) source.rates.add(pending_.grades[i], i < num_right_);
  const double tokens = static_cast<double>(num_right_ + 1), seconds = pending_.seconds + costs_.of(count + 1);
  source.tokens = source.tokens * kRemembered + tokens;
  source.seconds = source.seconds * kRemembered + seconds;
  balance_ = std::min(balance_ + tokens * costs_.of(1) - seconds, kMostBalance * costs_.of(1));
}

// Keeps what the source proposes if that is better than what there is.
Status Speculator::ask(Source& source, const DraftContext& context, const DraftLimits& limits,
                       std::optional<double>& best_rate) {
  Draft draft(costs_, source.rates, limits);
  MOTE_RETURN_IF_ERROR(source.proposer->propose(context, draft));
  const std::vector<int32_t> proposed(draft.ids().begin(), draft.ids().end());
  const std::vector<size_t> grades(draft.grades().begin(), draft.grades().end());
  draft.trim();
  if (proposed.empty()) {
    if (limits.seconds_an_id > 0.0) source.rates.age();
    return {};
  }
  const double seconds = static_cast<double>(proposed.size()) * limits.seconds_an_id;
  if (draft.ids().empty()) {
    balance_ -= seconds;
    if (!best_rate.has_value()) pending_ = {&source, proposed, grades, false, 0.0};
    return {};
  }
  if (best_rate.has_value() && draft.expected_rate() <= *best_rate) return {};
  best_rate = draft.expected_rate();
  pending_ = {
      &source, {draft.ids().begin(), draft.ids().end()}, {draft.grades().begin(), draft.grades().end()}, true, seconds};
  return {};
}

Status Speculator::propose(Session& session, int32_t id, size_t limit) {
  if (text_.size() > session.tokens().size()) text_.clear();
  text_.insert(text_.end(), session.tokens().begin() + static_cast<ptrdiff_t>(text_.size()), session.tokens().end());
  text_.push_back(id);
  const auto room = static_cast<size_t>(session.context_length() - session.position()) - 1;
  DraftLimits limits;
  limits.longest = std::min({limit, room, session.longest_draft(), static_cast<size_t>(kMostDraftTokens)});
  limits.fixed = static_cast<size_t>(options_.draft_tokens);
  limits.affordable = allowance();
  const DraftContext context{text_, session.hidden_state(), &session};
  std::optional<double> best_rate;
  for (const auto& source : sources_) {
    if (!is_enabled(*source)) continue;
    const bool is_beaten =
        best_rate.has_value() && (limits.fixed > 0 || *best_rate * source->seconds >= source->tokens);
    if (is_beaten) continue;
    limits.seconds_an_id = source->proposer->seconds_an_id();
    MOTE_RETURN_IF_ERROR(ask(*source, context, limits, best_rate));
  }
  text_.pop_back();
  const int32_t vocab_size = session.model().vocab_size();
  const auto unknown =
      std::find_if(pending_.ids.begin(), pending_.ids.end(), [=](int32_t one) { return one < 0 || one >= vocab_size; });
  pending_.ids.erase(unknown, pending_.ids.end());
  if (pending_.ids.empty()) pending_.source = nullptr;
  return {};
}

// Without memory for a proposal the step goes on without one.
Status Speculator::propose_if_possible(Session& session, int32_t id, size_t limit) {
  try {
    return propose(session, id, limit);
  } catch (const std::bad_alloc&) {
    text_.clear();
    pending_ = {};
    return {};
  }
}

Result<std::span<const float>> Speculator::decode(Session& session, int32_t id, size_t limit) {
  ++num_tokens_;
  if (session.is_drafted(id)) {
    ++num_right_;
    ++statistics_.accepted_tokens;
    return session.decode(id);
  }
  settle(id);
  num_right_ = 0;
  const Clock::time_point start = Clock::now();
  if (statistics_.off_reason == nullptr && session.position() < session.context_length()) {
    MOTE_RETURN_IF_ERROR(propose_if_possible(session, id, limit));
  }
  const bool verifies = pending_.source != nullptr && pending_.is_verified;
  const std::span<const int32_t> draft = verifies ? std::span<const int32_t>(pending_.ids) : std::span<const int32_t>();
  const Clock::time_point proposed = Clock::now();
  auto logits = session.decode(id, draft);
  if (!logits.ok()) return logits;
  const double seconds = seconds_since(proposed);
  count_step(draft.size(), seconds, seconds_since(start) - seconds);
  return logits;
}

void Speculator::count_step(size_t num_drafted, double seconds, double proposal_seconds) {
  costs_.add(num_drafted + 1, seconds);
  statistics_.seconds += seconds + proposal_seconds;
  if (num_drafted > 0) {
    ++statistics_.drafts;
    statistics_.proposed_tokens += static_cast<int64_t>(num_drafted);
    return;
  }
  plain_steps_ = plain_steps_ * kRememberedSteps + 1.0;
  plain_seconds_ = plain_seconds_ * kRememberedSteps + seconds;
  balance_ = std::min(balance_ + kAffordableShare * costs_.of(1), kMostBalance * costs_.of(1));
}

SpeculationStatistics Speculator::statistics() const {
  SpeculationStatistics result = statistics_;
  if (plain_steps_ > 0.0) result.plain_seconds = static_cast<double>(num_tokens_) * plain_seconds_ / plain_steps_;
  return result;
}

}  // namespace mote
