// Drafts from the model's own head, for multi-token prediction or of EAGLE-3, which is applied to its own guesses.
// Source: DeepSeek-V3 Technical Report, 2.2; transformers modeling_layers.py MtpModel for the first id of a draft
#pragma once

#include "runner/generation/speculation/likeliest.h"
#include "runner/generation/speculation/proposer.h"

namespace mote {

// The head remembers the text in the session that it drafts for. Grades: how likely it finds its token.
class MultiTokenPrediction final : public Proposer {
 public:
  Rates expected_rates() const override { return kRatesOfProbabilities; }
  double seconds_an_id() const override;
  Status propose(const DraftContext& context, Draft& draft) override;

 private:
  StepCosts costs_;
  size_t usual_grade_ = AcceptanceRates::kGrades - 1;  // of the first id of a draft, lately
};

}  // namespace mote
