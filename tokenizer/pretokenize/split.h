// Pre-tokenizer `Split`: cuts at the matches of a pattern.
// Source: tokenizers pre_tokenizers/split.rs
#pragma once

#include "tokenizer/pretokenize/pattern.h"
#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote::tokenizer {

class Split final : public Cutter {
 public:
  Split(Pattern pattern, fb::Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  Pattern pattern_;
  fb::Behavior behavior_;
  bool invert_;
};

// `Split` that isolates the matches of a pattern that a scanner was written for.
class ScannerSplit final : public Cutter {
 public:
  explicit ScannerSplit(std::unique_ptr<Scanner> scanner) : scanner_(std::move(scanner)) {}
  const Scanner* scanner() const override { return scanner_.get(); }

 protected:
  Status cut(std::string_view text, std::vector<Piece>& parts) const override;

 private:
  std::unique_ptr<Scanner> scanner_;
};

}  // namespace mote::tokenizer
