// Decodes with drafts where that is faster: propose, verify, roll back.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/generation/speculation/draft.h"
#include "runner/generation/speculation/options.h"
#include "runner/generation/speculation/proposer.h"
#include "runner/session/session.h"

namespace mote {

// Belongs to one session and may outlive its generations: what it learned of costs and of the text helps the next one.
// Lossless by construction: a session computes the same logits with and without a draft, and whoever samples from them
// never sees the draft. Thread safety: as its session.
class Speculator {
 public:
  // With prompt lookup, and the head of the session's model if it has one.
  Speculator();
  // A further source of drafts: a draft model, or heads on the model's hidden state.
  void set_draft_source(std::unique_ptr<Proposer> proposer);
  bool has_draft_source() const { return find(SpeculationMode::kDraft) != nullptr; }

  // Errors: kInvalidArgument for an option out of range, or one that asks for what this session cannot do.
  Status check(const Session& session, const SpeculationOptions& options) const;

  // Whether the head of the session's model is to read the text of a generation with these options.
  static bool uses_head(const Session& session, const SpeculationOptions& options);

  // A generation begins, whose options passed check.
  void begin(const Session& session, const SpeculationOptions& options);

  // As session.decode(id), a step of a generation that has use for at most `limit` ids behind `id`.
  Result<std::span<const float>> decode(Session& session, int32_t id, size_t limit);

  // Of the generation.
  SpeculationStatistics statistics() const;

 private:
  struct Source {
    Source(SpeculationMode mode_of_it, std::unique_ptr<Proposer> its_proposer)
        : mode(mode_of_it), proposer(std::move(its_proposer)), rates(proposer->expected_rates()) {}

    SpeculationMode mode;
    std::unique_ptr<Proposer> proposer;
    AcceptanceRates rates;
    double tokens = 0.0;   // that its drafts gave lately
    double seconds = 0.0;  // and took
  };
  // Ids of a source whose fate is not known yet.
  struct Pending {
    Source* source = nullptr;
    std::vector<int32_t> ids;
    std::vector<size_t> grades;
    bool is_verified = false;  // else they were not worth it, and only teach how good the source is
    double seconds = 0.0;      // of their proposal
  };

  void settle(int32_t id);
  void settle_verified();
  void count_step(size_t num_drafted, double seconds, double proposal_seconds);
  const Source* find(SpeculationMode mode) const;
  Status propose(Session& session, int32_t id, size_t limit);
  Status propose_if_possible(Session& session, int32_t id, size_t limit);
  Status ask(Source& source, const DraftContext& context, const DraftLimits& limits, std::optional<double>& best_rate);
  bool is_enabled(const Source& source) const;
  double allowance() const;

  std::vector<std::unique_ptr<Source>> sources_;  // cheapest first
  SpeculationOptions options_;
  SpeculationStatistics statistics_;
  StepCosts costs_;
  Pending pending_;
  size_t num_right_ = 0;  // of the pending ids
  double balance_ = 0.0;  // seconds won so far, as far as they may be lost again
  int64_t num_tokens_ = 0;
  double plain_steps_ = 0.0;  // lately, and what they took
  double plain_seconds_ = 0.0;
  std::vector<int32_t> text_;
};

// Why a session cannot look ahead; nullptr: it can.
const char* why_no_speculation(const Session& session);

}  // namespace mote
