// Decoders: token texts to text.
// Source: tokenizers decoders/*.rs; sentencepiece sentencepiece_processor.cc (Decode)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/segment/tables.h"

namespace mote::tokenizer {

struct TokenText {
  std::string text;
  int32_t id = -1;  // -1: of more than one token
};

// Immutable.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // limit: bytes that the texts may have together
  // Errors: kInvalidArgument if a regular expression gives up on the text, kInvalidTokenizer beyond the limit.
  virtual Status apply(std::vector<TokenText>& tokens, size_t limit) const = 0;
};

// Errors: kInvalidTokenizer naming the parameter.
Result<std::unique_ptr<Decoder>> make_decoder(const fb::Decoder& from, const fb::Segment& segment);

size_t total_bytes(const std::vector<TokenText>& tokens);
// All texts in one.
void fuse(std::vector<TokenText>& tokens);

// Every `from` becomes `to`; an empty `from` is found before every character and at the end.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace mote::tokenizer
