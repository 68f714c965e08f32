#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/pipeline.h"

namespace mote {
namespace {

// A text with its ill-formed parts replaced, and where given places of the old text are in it.
struct ValidText {
  std::string text;
  std::vector<TextRange> ranges;
};

ValidText replaced(std::string_view text, std::span<const TextRange> ranges) {
  ValidText valid;
  std::vector<size_t> new_place(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    for (size_t i = 0; i < character.length; ++i) new_place[at + i] = valid.text.size();
    valid.text += character.kind == Utf8Kind::kValid ? text.substr(at, character.length) : kReplacementCharacter;
    at += character.length;
  }
  new_place[text.size()] = valid.text.size();
  for (const TextRange& range : ranges) {
    valid.ranges.push_back(
        {new_place[std::min(range.begin, text.size())], new_place[std::min(range.end, text.size())]});
  }
  return valid;
}

tokenizer::PipelineOptions stages_of(const EncodeOptions& options) {
  tokenizer::PipelineOptions stages;
  stages.add_special = options.add_special;
  stages.added.parse_special = options.parse_special;
  stages.added.plain = options.plain;
  return stages;
}

tokenizer::PipelineOptions stages_with_offsets(const EncodeOptions& options, OffsetUnit unit) {
  tokenizer::PipelineOptions stages = stages_of(options);
  stages.offsets = true;
  stages.offsets_in_characters = unit == OffsetUnit::kCharacters;
  stages.type_ids = true;
  return stages;
}

// `encode(text, stages)` of valid text.
template <typename Encode>
Result<Encoding> encode_valid(std::string_view text, tokenizer::PipelineOptions stages, Encode encode) {
  if (is_valid_utf8(text)) return encode(text, stages);
  const ValidText valid = replaced(text, stages.added.plain);
  stages.added.plain = valid.ranges;
  return encode(valid.text, stages);
}

}  // namespace

Result<Tokenizer> Tokenizer::open(std::span<const std::byte> segment) {
  MOTE_ASSIGN(auto pipeline, tokenizer::Pipeline::open(segment, {}));
  return Tokenizer(std::move(pipeline));
}

Result<Tokenizer> Tokenizer::open(std::vector<std::byte> segment) {
  const std::span<const std::byte> bytes(segment);  // a moved vector keeps its storage
  MOTE_ASSIGN(auto pipeline, tokenizer::Pipeline::open(bytes, std::move(segment)));
  return Tokenizer(std::move(pipeline));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const auto encode = [&](std::string_view valid, const auto& stages) { return pipeline_->encode(valid, stages); };
  MOTE_ASSIGN(Encoding encoding, encode_valid(text, stages_of(options), encode));
  return std::move(encoding.ids);
}

Result<Encoding> Tokenizer::encode_with_offsets(std::string_view text, const EncodeOptions& options,
                                                OffsetUnit unit) const {
  const auto encode = [&](std::string_view valid, const auto& stages) { return pipeline_->encode(valid, stages); };
  return encode_valid(text, stages_with_offsets(options, unit), encode);
}

Result<Encoding> Tokenizer::encode_pair(std::string_view text, std::string_view pair, const EncodeOptions& options,
                                        OffsetUnit unit) const {
  const std::string valid_pair = is_valid_utf8(pair) ? std::string(pair) : replace_invalid_utf8(pair);
  const auto encode = [&](std::string_view valid, const auto& stages) {
    return pipeline_->encode_pair(valid, valid_pair, stages);
  };
  return encode_valid(text, stages_with_offsets(options, unit), encode);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  return pipeline_->decode(ids, skip_special);
}

bool Tokenizer::has_token(int32_t id) const {
  return (pipeline_->vocabulary().flags(id) & tokenizer::kTokenPresent) != 0;
}

std::string Tokenizer::token_text(int32_t id) const { return pipeline_->spelled(id); }

int32_t Tokenizer::token_id(std::string_view text) const { return pipeline_->id_of(text); }

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if ((pipeline_->vocabulary().flags(id) & tokenizer::kTokenPresent) == 0) return {};
  return pipeline_->vocabulary().strings()[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  return (pipeline_->vocabulary().flags(id) & tokenizer::kTokenSpecial) != 0;
}

int32_t Tokenizer::num_ids() const { return pipeline_->vocabulary().num_ids(); }

bool Tokenizer::is_byte_level() const { return pipeline_->is_byte_level(); }

std::string_view Tokenizer::kind() const { return pipeline_->segment().kind()->string_view(); }

}  // namespace mote
