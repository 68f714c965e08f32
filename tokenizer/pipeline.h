// The stages of a tokenizer, in the order in which text passes them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/decode/decoder.h"
#include "tokenizer/encoding.h"
#include "tokenizer/model/model.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/pretokenize/pretokenizer.h"
#include "tokenizer/process/processor.h"

namespace mote::tokenizer {

inline constexpr uint32_t kSegmentVersion = 3;

struct PipelineOptions {
  bool add_special = true;
  AddedOptions added;
  bool offsets = false;
  bool offsets_in_characters = false;
  bool type_ids = false;
};

// Immutable. Uses the segment where it lies.
class Pipeline {
 public:
  // `owned` holds the bytes of `segment`, if nobody else does.
  static Result<std::shared_ptr<const Pipeline>> open(std::span<const std::byte> segment, std::vector<std::byte> owned);

  // `text` and `pair` are valid UTF-8.
  Result<Encoding> encode(std::string_view text, const PipelineOptions& options) const;
  Result<Encoding> encode_pair(std::string_view text, std::string_view pair, const PipelineOptions& options) const;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  const VocabularyView& vocabulary() const { return vocabulary_; }
  const fb::Segment& segment() const { return *segment_; }
  bool is_byte_level() const { return only_bytes_; }
  std::string spelled(int32_t id) const;
  // The id that a file spells so, an added token's or the model's; -1: none.
  int32_t id_of(std::string_view spelling) const;

 private:
  Pipeline() = default;
  Status make_stages();
  Status make_pretokenizers();
  Result<EncodingPart> encode_part(std::string_view text, const PipelineOptions& options) const;
  Result<Encoding> finished(std::vector<EncodingPart> parts, const PipelineOptions& options) const;

  class Encoder;  // one call of encode

  std::vector<std::byte> owned_;
  const fb::Segment* segment_ = nullptr;
  VocabularyView vocabulary_;
  AddedTokens raw_added_;
  AddedTokens normalized_added_;
  std::vector<std::unique_ptr<Normalizer>> normalizers_;
  std::vector<std::unique_ptr<Pretokenizer>> pretokenizers_;
  std::unique_ptr<Model> model_;
  std::vector<Processor> processors_;
  std::vector<std::unique_ptr<Decoder>> decoders_;
  const Scanner* only_scanner_ = nullptr;  // where the pre-tokenizers do nothing but what this scanner does
  bool needs_origins_ = false;             // a stage asks where text came from
  bool trims_ = false;                     // a post-processor asks for the spaces of tokens
  bool only_bytes_ = false;                // decoding is joining the bytes of tokens
};

}  // namespace mote::tokenizer
