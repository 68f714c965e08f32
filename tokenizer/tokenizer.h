// Text to token ids and back, as a Hugging Face tokenizer.json says.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/decode/byte_level.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pretokenize/pretokenizer.h"

namespace mote {

struct EncodeOptions {
  bool add_special = true;    // BOS and such, as the post-processor asks
  bool parse_special = true;  // special tokens spelled in the text become their ids
  std::span<const TextRange> plain = {};  // but not where any of their bytes lies in one of these; ascending
};

// Immutable; may be used from any number of threads.
class Tokenizer {
 public:
  // Reads the text of a tokenizer.json: byte-level BPE. Errors: kInvalidTokenizer names the field, its value and what
  // is supported.
  static Result<Tokenizer> parse(std::string_view json);

  // Ill-formed UTF-8 in `text` is read as U+FFFD.
  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const;

  // Ill-formed UTF-8 in the ids' bytes becomes U+FFFD; ids that no token has are passed over.
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const;

  // The bytes of one token, which need not be whole characters; empty for an id that no token has.
  std::string_view token_bytes(int32_t id) const { return decoder_.bytes(id); }
  bool is_special(int32_t id) const { return added_.is_special(id); }
  // One more than the largest id.
  int32_t num_ids() const { return decoder_.num_ids(); }

 private:
  Tokenizer(tokenizer::Bpe model, tokenizer::AddedTokens added, tokenizer::PostProcessor post_processor,
            tokenizer::ByteLevelDecoder decoder)
      : model_(std::move(model)), added_(std::move(added)), post_processor_(std::move(post_processor)),
        decoder_(std::move(decoder)) {}

  Status encode_normalized(std::string_view text, const EncodeOptions& options, std::vector<int32_t>& ids) const;
  Status encode_words(std::string text, std::vector<int32_t>& ids) const;

  std::unique_ptr<tokenizer::Normalizer> normalizer_;
  std::vector<std::unique_ptr<tokenizer::Pretokenizer>> pretokenizers_;
  tokenizer::Bpe model_;
  tokenizer::AddedTokens added_;
  tokenizer::PostProcessor post_processor_;
  tokenizer::ByteLevelDecoder decoder_;
};

}  // namespace mote
