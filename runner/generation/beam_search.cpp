#include "runner/generation/beam_search.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/parts.h"
#include "runner/generation/options/accepted.h"
#include "runner/generation/sampling/logit_edits.h"
#include "runner/session/logprobs.h"

namespace mote {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

Status check(const BeamSearchOptions& options) {
  MOTE_BEAM_SEARCH_OPTIONS(MOTE_OPTION_CHECK)
  MOTE_REQUIRE(options.num_return_sequences <= options.num_beams, Code::kInvalidArgument,
               "num_return_sequences = %d: must be 1..%d, the number of beams", options.num_return_sequences,
               options.num_beams);
  MOTE_REQUIRE(options.max_new_tokens >= 0, Code::kInvalidArgument,
               "max_new_tokens = %lld: must be 0 (until the context is full) or more",
               static_cast<long long>(options.max_new_tokens));
  return {};
}

// A sequence that may go on.
struct Running {
  std::vector<int32_t> ids;
  float score = 0.0f;  // sum of log-probabilities
  LogitEdits edits;
  std::shared_ptr<const SessionSnapshot> state;  // before the last id; of the prompt: behind it
};

struct Candidate {
  size_t beam = 0;
  int32_t id = 0;
  float score = 0.0f;

  bool is_better_than(const Candidate& other) const {
    if (score != other.score) return score > other.score;
    return beam != other.beam ? beam < other.beam : id < other.id;
  }
};

struct Finished {
  Beam beam;
  std::shared_ptr<const SessionSnapshot> state;  // before its last id
};

class Search {
 public:
  Search(Session& session, const BeamSearchOptions& options)
      : session_(session), options_(options), num_beams_(static_cast<size_t>(options.num_beams)) {
    if (!options.ignore_eos) eos_ = {session.model().eos_token_ids().begin(), session.model().eos_token_ids().end()};
    num_candidates_ = std::max<size_t>(2, 1 + eos_.size()) * num_beams_;
    num_candidates_ = std::min(num_candidates_, num_beams_ * static_cast<size_t>(session.model().vocab_size()));
  }

  Result<std::vector<Beam>> run(std::span<const int32_t> prompt) {
    LogitEdits edits(options_.edits, session_.model().vocab_size(), session_.model().eos_token_ids());
    for (const int32_t id : session_.tokens()) edits.observe(id, false);
    for (const int32_t id : prompt) edits.observe(id, false);
    MOTE_RETURN_IF_ERROR(session_.append(prompt));
    const auto room = static_cast<int64_t>(session_.context_length() - session_.position()) + 1;
    max_length_ = options_.max_new_tokens == 0 ? room : std::min(room, options_.max_new_tokens);
    MOTE_ASSIGN(auto state, session_.snapshot());
    running_.push_back({{}, 0.0f, std::move(edits), std::move(state)});
    for (int64_t length = 1; length <= max_length_; ++length) {
      MOTE_RETURN_IF_ERROR(step(length));
      if (is_over(length)) break;
    }
    return best();
  }

 private:
  // The logits behind a beam, and its state there.
  Result<std::span<const float>> advance(Running& beam) {
    MOTE_RETURN_IF_ERROR(session_.adopt(*beam.state, static_cast<int64_t>(beam.state->tokens.size())));
    if (beam.ids.empty()) return session_.logits();
    beam.state.reset();
    MOTE_ASSIGN(const auto logits, session_.decode(beam.ids.back()));
    MOTE_ASSIGN(beam.state, session_.snapshot());
    return logits;
  }

  // Adds the best continuations of a beam.
  void collect(size_t index, std::span<const float> logits) {
    Running& beam = running_[index];
    const double total = log_sum_exp(logits);
    log_probabilities_.resize(logits.size());
    for (size_t id = 0; id < logits.size(); ++id) log_probabilities_[id] = log_probability(logits[id], total);
    for (const LogitEdit& edit : beam.edits.apply(log_probabilities_)) edits_.push_back(edit);
    for (const LogitEdit& edit : edits_) log_probabilities_[static_cast<size_t>(edit.id)] = edit.logit;
    edits_.clear();
    const auto worst_first = [](const Candidate& a, const Candidate& b) { return a.is_better_than(b); };
    for (size_t id = 0; id < logits.size(); ++id) {
      const Candidate candidate{index, static_cast<int32_t>(id), beam.score + log_probabilities_[id]};
      if (!(candidate.score > kMinusInfinity)) continue;
      if (candidates_.size() == num_candidates_) {
        if (!candidate.is_better_than(candidates_.front())) continue;
        std::pop_heap(candidates_.begin(), candidates_.end(), worst_first);
        candidates_.pop_back();
      }
      candidates_.push_back(candidate);
      std::push_heap(candidates_.begin(), candidates_.end(), worst_first);
    }
  }

  Status step(int64_t length) {
    candidates_.clear();
    for (size_t i = 0; i < running_.size(); ++i) {
      MOTE_ASSIGN(const auto logits, advance(running_[i]));
      collect(i, logits);
    }
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.is_better_than(b); });
    std::vector<Running> next;
    const bool is_last = length == max_length_;
    for (size_t rank = 0; rank < candidates_.size(); ++rank) {
      const Candidate& candidate = candidates_[rank];
      const Running& beam = running_[candidate.beam];
      const bool is_finished = is_last || std::find(eos_.begin(), eos_.end(), candidate.id) != eos_.end();
      if (is_finished && rank < num_beams_) finish(beam, candidate, length);
      if (!is_finished && next.size() < num_beams_) {
        next.push_back({beam.ids, candidate.score, beam.edits, beam.state});
        next.back().ids.push_back(candidate.id);
        next.back().edits.observe(candidate.id, true);
      }
    }
    running_ = std::move(next);
    return {};
  }

  double normalised(double score, int64_t length) const {
    return score / std::pow(static_cast<double>(length), options_.length_penalty);
  }

  // Keeps it if it is among the num_beams best.
  void finish(const Running& beam, const Candidate& candidate, int64_t length) {
    Finished finished{{beam.ids, static_cast<float>(normalised(candidate.score, length))}, beam.state};
    finished.beam.ids.push_back(candidate.id);
    const auto place = std::find_if(finished_.begin(), finished_.end(),
                                    [&](const Finished& other) { return other.beam.score < finished.beam.score; });
    finished_.insert(place, std::move(finished));
    if (finished_.size() > num_beams_) finished_.pop_back();
  }

  bool is_full() const { return finished_.size() == num_beams_; }

  bool is_over(int64_t length) const {
    if (running_.empty()) return true;
    if (!is_full()) return false;
    if (options_.early_stopping == EarlyStopping::kFull) return true;
    const bool looks_ahead = options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0.0;
    return !(normalised(running_.front().score, looks_ahead ? max_length_ : length) >
             static_cast<double>(finished_.back().beam.score));
  }

  Result<std::vector<Beam>> best() {
    MOTE_REQUIRE(!finished_.empty(), Code::kInvalidArgument, "the options leave no token that could come next");
    MOTE_RETURN_IF_ERROR(
        session_.adopt(*finished_.front().state, static_cast<int64_t>(finished_.front().state->tokens.size())));
    std::vector<Beam> beams;
    for (size_t i = 0; i < std::min(finished_.size(), static_cast<size_t>(options_.num_return_sequences)); ++i) {
      beams.push_back(std::move(finished_[i].beam));
    }
    return beams;
  }

  Session& session_;
  const BeamSearchOptions& options_;
  const size_t num_beams_;
  size_t num_candidates_ = 0;
  int64_t max_length_ = 0;  // of what is generated
  std::vector<int32_t> eos_;
  std::vector<Running> running_;    // best first
  std::vector<Finished> finished_;  // best first
  std::vector<Candidate> candidates_;
  std::vector<float> log_probabilities_;
  std::vector<LogitEdit> edits_;
};

}  // namespace

Result<std::vector<Beam>> beam_search(Session& session, std::span<const int32_t> prompt,
                                      const BeamSearchOptions& options) {
  MOTE_REQUIRE_PART("sessions.beams", Code::kInvalidArgument);
  MOTE_RETURN_IF_ERROR(check(options));
  MOTE_RETURN_IF_ERROR(check_sampling(options.edits, session.model().vocab_size()));
  MOTE_REQUIRE(!prompt.empty() || session.position() > 0, Code::kInvalidArgument,
               "the prompt has no tokens and neither has the session: at least one is needed");
  return Search(session, options).run(prompt);
}

}  // namespace mote
