// Where drafts come from.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "runner/generation/speculation/draft.h"

namespace mote {

class Session;

// What a draft continues.
struct DraftContext {
  std::span<const int32_t> text;
  // Of the model at the last id but one, from which it chose the last, [hidden_size]: what heads of its own read (MTP,
  // EAGLE). See Session::hidden_state for where it is empty.
  std::span<const float> hidden_state;
  Session* session = nullptr;  // whose text it is, for the model's own head; what it gives overwrites the hidden state
};

// Whatever it proposes, the text stays the same: it is only faster where proposals are right. Thread safety: one thread
// at a time.
class Proposer {
 public:
  using Rates = std::array<double, AcceptanceRates::kGrades>;

  virtual ~Proposer() = default;

  // How often ids of each grade are expected to be right, before that is measured.
  virtual Rates expected_rates() const = 0;

  // Seconds that one more id takes; 0: not worth counting.
  virtual double seconds_an_id() const { return 0.0; }

  // The next text may be another one.
  virtual void begin_text() {}

  // Adds ids to `draft` that may follow the text, in order, while it wants more. From call to call the text only grows.
  // Errors end the generation.
  virtual Status propose(const DraftContext& context, Draft& draft) = 0;
};

}  // namespace mote
