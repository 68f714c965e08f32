// The decoders that look at one token at a time or at neighbours.
#pragma once

#include <string>

#include "tokenizer/decode/decoder.h"
#include "tokenizer/pretokenize/pattern.h"

namespace mote::tokenizer {

// `ByteLevel`: the byte-level alphabet back to bytes. What is no UTF-8 becomes U+FFFD.
class ByteLevelDecoder final : public Decoder {
 public:
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;
};

// `ByteFallback`: runs of <0xXX> to the characters whose bytes they are.
class ByteFallbackDecoder final : public Decoder {
 public:
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;
};

// `Fuse`
class FuseDecoder final : public Decoder {
 public:
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;
};

// `WordPiece`: a space before every token but the first and those with the prefix.
class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  std::string prefix_;
  bool cleanup_;
};

// `BPEDecoder`: the suffix of words becomes a space.
class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  std::string suffix_;
};

// `CTC`: repeated tokens are one, padding is nothing.
class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string padding, std::string delimiter, bool cleanup)
      : padding_(std::move(padding)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  std::string padding_;
  std::string delimiter_;
  bool cleanup_;
};

// `Metaspace`: the replacement becomes a space, or nothing in the first token where one was prepended.
class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(char32_t replacement, bool drops_first);
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  std::string replacement_;
  bool drops_first_;
};

// `Replace`
class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  Pattern pattern_;
  std::string content_;
};

// `Strip`: up to `start` of the character at the start of each token, up to `stop` at its end.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(char32_t content, uint32_t start, uint32_t stop);
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  std::string content_;
  uint32_t start_;
  uint32_t stop_;
};

}  // namespace mote::tokenizer
