// Drafts from the text itself: what followed when its end occurred before.
// Source: Saxena, "Prompt Lookup Decoding"
#pragma once

#include "runner/generation/speculation/ngram_index.h"
#include "runner/generation/speculation/proposer.h"

namespace mote {

// Grades: how much of the end occurred before.
class PromptLookup final : public Proposer {
 public:
  Rates expected_rates() const override { return {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9}; }
  void begin_text() override { is_same_text_ = false; }
  Status propose(const DraftContext& context, Draft& draft) override;

 private:
  NgramIndex index_;
  bool is_same_text_ = false;
};

}  // namespace mote
