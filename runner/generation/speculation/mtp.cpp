#include "runner/generation/speculation/mtp.h"

#include "runner/generation/statistics.h"
#include "runner/session/session.h"

namespace mote {
namespace {

// Before it is measured; not 0, which is free of cost.
constexpr double kHopedSecondsOfHead = 1e-9;

}  // namespace

double MultiTokenPrediction::seconds_an_id() const { return costs_.is_known() ? costs_.of(1) : kHopedSecondsOfHead; }

// The first guess also reads what was accepted since the last one, in the same call: that hardly costs more.
Status MultiTokenPrediction::propose(const DraftContext& context, Draft& draft) {
  if (context.session == nullptr || !draft.wants(usual_grade_)) return {};
  Session& session = *context.session;
  Clock::time_point start = Clock::now();
  const size_t num_unread = session.num_unread_by_head();
  MOTE_ASSIGN(std::span<const float> logits, session.guess(context.text.back()));
  bool is_first = true;
  while (!logits.empty()) {
    const Likeliest guess = likeliest(logits);
    if (!is_first || num_unread <= StepCosts::kMostTokens) costs_.add(1, seconds_since(start));
    if (is_first) usual_grade_ = (3 * usual_grade_ + guess.grade + 2) / 4;
    is_first = false;
    draft.add(guess.id, guess.grade);
    if (!draft.wants(guess.grade)) return {};
    start = Clock::now();
    MOTE_ASSIGN(logits, session.guess_next(guess.id));
  }
  return {};
}

}  // namespace mote
