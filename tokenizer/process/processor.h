// Post-processors: special tokens around a text, and offsets without the white space of tokens.
// Source: tokenizers processors/{template,bert,roberta,sequence}.rs, pre_tokenizers/byte_level.rs (process_offsets)
#pragma once

#include <vector>

#include "base/status.h"
#include "tokenizer/encoding.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

// Immutable.
class Processor {
 public:
  // Errors: kInvalidTokenizer naming the parameter.
  static Result<Processor> make(const fb::Processor& from, int32_t num_ids);

  bool trims() const { return trim_offsets_; }
  // A text is one part at first, a pair of texts two; a template makes one of each of its pieces.
  void apply(std::vector<EncodingPart>& parts, bool add_special) const;

 private:
  Processor() = default;
  void apply_template(std::vector<EncodingPart>& parts, bool add_special) const;
  void surround(std::vector<EncodingPart>& parts) const;
  void trim(EncodingPart& part) const;

  fb::ProcessorKind kind_{};
  bool trim_offsets_ = false;
  bool add_prefix_space_ = false;
  int32_t cls_ = 0;
  int32_t sep_ = 0;
  std::vector<fb::TemplatePiece> pieces_;
  std::vector<fb::TemplatePiece> pair_pieces_;
};

}  // namespace mote::tokenizer
