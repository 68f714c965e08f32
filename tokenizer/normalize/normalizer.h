// What happens to text before it is split.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"
#include "tokenizer/text/aligned_text.h"

namespace mote::tokenizer {

// Immutable.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Errors: kInvalidArgument if a regular expression gives up on the text.
  virtual Status apply(AlignedText& text) const = 0;
  // Whether texts in which it finds nothing to do can be told without a copy: true for one that stays as it is.
  virtual bool leaves_alone(std::string_view text) const { return text.empty(); }
};

// Errors: kInvalidTokenizer naming the parameter.
Result<std::unique_ptr<Normalizer>> make_normalizer(const fb::Normalizer& from);

}  // namespace mote::tokenizer
