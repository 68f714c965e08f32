// Puts special tokens around the ids of a text.
// Source: tokenizers processors/template.rs
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "tokenizer/json.h"

namespace mote::tokenizer {

class PostProcessor {
 public:
  // Supported: null, ByteLevel (which changes no ids), TemplateProcessing (its `single`), Sequence of these.
  static Result<PostProcessor> make(const Field& field);

  std::vector<int32_t> apply(std::vector<int32_t> ids) const;

 private:
  // Special tokens before and behind the text, from the innermost template out.
  struct Template {
    std::vector<int32_t> before;
    std::vector<int32_t> behind;
  };
  static Result<Template> read_template(const Field& field);
  Status append(const Field& field);

  std::vector<Template> templates_;
};

}  // namespace mote::tokenizer
