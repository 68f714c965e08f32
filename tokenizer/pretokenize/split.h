// Pre-tokenizer `Split`: cuts at the matches of a pattern.
// Source: tokenizers pre_tokenizers/split.rs, tokenizer/normalizer.rs (SplitDelimiterBehavior)
#pragma once

#include "tokenizer/pretokenize/pretokenizer.h"
#include "tokenizer/pretokenize/regex.h"

namespace mote::tokenizer {

enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

class Split final : public Pretokenizer {
 public:
  Split(Regex regex, SplitBehavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  static Result<std::unique_ptr<Pretokenizer>> make(const Field& field);

  Status split(std::string text, std::vector<std::string>& pieces) const override;

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

}  // namespace mote::tokenizer
