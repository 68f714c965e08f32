// Drafts from a smaller model with the same tokens.
// Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding"; with an exact match in place
// of its rejection sampling: the same seed gives the same text with and without a draft model, on every machine
#pragma once

#include <memory>

#include "runner/generation/speculation/likeliest.h"
#include "runner/generation/speculation/proposer.h"
#include "runner/session/session.h"

namespace mote {

// Whether both models have the same tokens: their texts and which are special, id by id. Rows of the vocabulary that no
// token has may differ in number. Errors: kInvalidArgument naming the first difference.
Status check_same_tokens(const Model& target, const Model& draft);

// Has a session of its own that goes back and forth with the text. Grades: how likely the draft model finds its token.
class DraftModel final : public Proposer {
 public:
  // On the CPUs and with the threads of `target`, and cancelled with it. Errors: those of check_same_tokens and
  // Session::open.
  static Result<std::unique_ptr<DraftModel>> open(const Session& target, std::shared_ptr<const Model> draft);

  Rates expected_rates() const override { return kRatesOfProbabilities; }
  double seconds_an_id() const override;
  Status propose(const DraftContext& context, Draft& draft) override;

 private:
  explicit DraftModel(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  bool can_follow(std::span<const int32_t> text) const;
  Result<std::span<const float>> follow(std::span<const int32_t> text);

  std::unique_ptr<Session> session_;
  StepCosts costs_;
  size_t usual_grade_ = AcceptanceRates::kGrades - 1;  // of the first id of a draft, lately
};

}  // namespace mote
