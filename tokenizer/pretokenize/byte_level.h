// Pre-tokenizer `ByteLevel`: GPT-2's word split and prefix space.
// Source: tokenizers pre_tokenizers/byte_level.rs
#pragma once

#include <optional>

#include "tokenizer/pretokenize/pretokenizer.h"
#include "tokenizer/pretokenize/regex.h"

namespace mote::tokenizer {

class ByteLevelPretokenizer final : public Pretokenizer {
 public:
  ByteLevelPretokenizer(bool add_prefix_space, std::optional<Regex> regex)
      : add_prefix_space_(add_prefix_space), regex_(std::move(regex)) {}
  static Result<std::unique_ptr<Pretokenizer>> make(const Field& field);

  Status split(std::string text, std::vector<std::string>& pieces) const override;

 private:
  bool add_prefix_space_;
  std::optional<Regex> regex_;
};

}  // namespace mote::tokenizer
