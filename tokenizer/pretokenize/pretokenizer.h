// Splits normalised text into the pieces that the model encodes on their own.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tokenizer/pretokenize/scanner.h"
#include "tokenizer/segment/tables.h"
#include "tokenizer/text/aligned_text.h"

namespace mote::tokenizer {

// A text and its pieces, which are in order, not empty, and do not overlap.
struct Pieces {
  AlignedText text;
  std::vector<Piece> pieces;
};

// Immutable.
class Pretokenizer {
 public:
  virtual ~Pretokenizer() = default;
  // Errors: kInvalidArgument if a regular expression gives up on the text.
  virtual Status apply(Pieces& pieces) const = 0;
  // Where all it does is to cut pieces as a scanner does: the scanner.
  virtual const Scanner* scanner() const { return nullptr; }
};

// One that cuts pieces and changes no text.
class Cutter : public Pretokenizer {
 public:
  Status apply(Pieces& pieces) const final;

 protected:
  // Appends the parts of `text` that stay, in order, as places in it.
  virtual Status cut(std::string_view text, std::vector<Piece>& parts) const = 0;
};

// One that may change text piece by piece. The parts of the new text that `change` names become the pieces.
class Rewriter : public Pretokenizer {
 public:
  Status apply(Pieces& pieces) const final;

 protected:
  virtual Status change(AlignedText& text, std::vector<Piece>& parts) const = 0;
};

// `spell_bytes`: whether ByteLevel writes text in the byte-level alphabet, or leaves its bytes to a model that reads
// them. Errors: kInvalidTokenizer naming the parameter.
Result<std::unique_ptr<Pretokenizer>> make_pretokenizer(const fb::Pretokenizer& from, bool spell_bytes);

}  // namespace mote::tokenizer
