// SentencePiece's decoder: visible spaces to spaces, bytes to characters, control symbols to nothing.
#pragma once

#include <string>

#include "tokenizer/decode/decoder.h"

namespace mote::tokenizer {

class SentencePieceDecoder final : public Decoder {
 public:
  struct Options {
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
    std::string unknown_surface;
  };
  SentencePieceDecoder(Options options, const fb::Segment& segment);
  Status apply(std::vector<TokenText>& tokens, size_t limit) const override;

 private:
  uint8_t type_of(int32_t id) const;

  Options options_;
  const flatbuffers::Vector<uint8_t>* types_;
  const flatbuffers::Vector<int32_t>* byte_ids_;
};

}  // namespace mote::tokenizer
