#include "tokenizer/pipeline.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/segment/verify.h"
#include "tokenizer/text/growth.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

constexpr char32_t kSpelledSpace = 0x120;

uint32_t count_leading_spaces(std::string_view text) {
  uint32_t count = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.code_point != kSpelledSpace && !is_space(character.code_point)) break;
    text.remove_prefix(character.length);
    ++count;
  }
  return count;
}

uint32_t count_trailing_spaces(std::string_view text) {
  uint32_t count = 0;
  while (!text.empty()) {
    const Character character = last_character(text);
    if (character.code_point != kSpelledSpace && !is_space(character.code_point)) break;
    text.remove_suffix(character.length);
    ++count;
  }
  return count;
}

// Bytes to characters, as Hugging Face converts them: there what starts at the end of the text is left as it is.
void count_in_characters(std::string_view text, bool converts_end, std::vector<Origin>& offsets) {
  std::vector<uint32_t> characters(text.size());
  uint32_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++count;
    characters[i] = count - 1;
  }
  for (Origin& offset : offsets) {
    if (offset.begin >= text.size()) {
      if (converts_end) offset = {count, count};
      continue;
    }
    const uint32_t begin = characters[offset.begin];
    if (offset.end < text.size())
      offset.end = characters[offset.end];
    else
      offset.end = (offset.end - 1 < text.size() ? characters[offset.end - 1] : begin + 1) + 1;
    offset.begin = begin;
  }
}

}  // namespace

// The ids of one text. Works on one stretch between added tokens after another.
class Pipeline::Encoder {
 public:
  Encoder(const Pipeline& pipeline, std::string_view text, const PipelineOptions& options)
      : pipeline_(pipeline),
        text_(text),
        options_(options),
        tracked_(options.offsets || pipeline.needs_origins_ || !options.added.plain.empty()) {}

  Result<EncodingPart> run() {
    for (const Segment& segment : pipeline_.raw_added_.split(text_, options_.added, nullptr)) {
      if (segment.id >= 0) {
        add_token(segment.id, {static_cast<uint32_t>(segment.begin), static_cast<uint32_t>(segment.end)},
                  spaces_of(text_.substr(segment.begin, segment.end - segment.begin)));
      } else {
        MOTE_RETURN_IF_ERROR(encode_stretch(segment.begin, segment.end));
      }
    }
    if (options_.offsets && options_.offsets_in_characters)
      count_in_characters(text_, is_sentencepiece(), part_.encoding.offsets);
    return std::move(part_);
  }

 private:
  bool is_sentencepiece() const {
    const fb::ModelKind kind = pipeline_.segment_->model()->kind();
    return kind == fb::ModelKind::sentencepiece_bpe || kind == fb::ModelKind::sentencepiece_unigram;
  }

  bool leaves_alone(std::string_view text) const {
    return std::all_of(pipeline_.normalizers_.begin(), pipeline_.normalizers_.end(),
                       [&](const auto& normalizer) { return normalizer->leaves_alone(text); });
  }

  Status encode_stretch(size_t begin, size_t end) {
    const std::string_view stretch = text_.substr(begin, end - begin);
    const bool changes_nothing = !tracked_ && pipeline_.normalized_added_.empty() && leaves_alone(stretch);
    if (changes_nothing && pipeline_.only_scanner_ != nullptr) return encode_scanned(stretch);
    AlignedText text(text_, begin, end, tracked_);
    for (const auto& normalizer : pipeline_.normalizers_) MOTE_RETURN_IF_ERROR(normalizer->apply(text));
    if (pipeline_.normalized_added_.empty()) return encode_normalized(std::move(text));
    for (const Segment& segment : pipeline_.normalized_added_.split(text.text(), options_.added, &text)) {
      if (segment.id < 0) {
        MOTE_RETURN_IF_ERROR(encode_normalized(text.slice(segment.begin, segment.end)));
      } else {
        const Origin origin =
            tracked_ ? Origin{text.origin(segment.begin).begin, text.origin(segment.end - 1).end} : Origin{};
        add_token(segment.id, origin,
                  spaces_of(std::string_view(text.text()).substr(segment.begin, segment.end - segment.begin)));
      }
    }
    return {};
  }

  Status encode_scanned(std::string_view text) {
    const Scanner& scanner = *pipeline_.only_scanner_;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = scanner.end_of_piece(text, begin);
      MOTE_RETURN_IF_ERROR(pipeline_.model_->encode_ids(text.substr(begin, end - begin), part_.encoding.ids));
      begin = end;
    }
    return {};
  }

  Status encode_normalized(AlignedText text) {
    if (text.size() == 0) return {};
    // A slice of normalised text begins where its first byte came from.
    Pieces pieces{text.tracked() ? text.slice(0, text.size()) : std::move(text), {}};
    pieces.pieces.push_back({0, static_cast<uint32_t>(pieces.text.size())});
    for (const auto& pretokenizer : pipeline_.pretokenizers_) MOTE_RETURN_IF_ERROR(pretokenizer->apply(pieces));
    const std::string_view bytes = pieces.text.text();
    for (const Piece& piece : pieces.pieces) {
      const std::string_view part = bytes.substr(piece.begin, piece.end - piece.begin);
      if (!options_.offsets) {
        MOTE_RETURN_IF_ERROR(pipeline_.model_->encode_ids(part, part_.encoding.ids));
        continue;
      }
      tokens_.clear();
      MOTE_RETURN_IF_ERROR(pipeline_.model_->encode(part, tokens_));
      for (const Token& token : tokens_)
        add_token(token.id, origin_of(pieces.text, piece, token), spaces_of(token, part));
    }
    return {};
  }

  // Places that leave the piece, which byte fallback with a prefix makes, stay as the model gave them.
  static Origin origin_of(const AlignedText& text, const Piece& piece, const Token& token) {
    if (token.begin > token.end || piece.begin + token.end > piece.end) return {token.begin, token.end};
    if (token.begin == token.end) {
      const uint32_t at = text.origin(std::min<size_t>(piece.begin + token.begin, text.size() - 1)).begin;
      return {at, at};
    }
    return {text.origin(piece.begin + token.begin).begin, text.origin(piece.begin + token.end - 1).end};
  }

  Spaces spaces_of(std::string_view text) const {
    return pipeline_.trims_ ? Spaces{count_leading_spaces(text), count_trailing_spaces(text)} : Spaces{};
  }

  // Hugging Face has a text for each token: the model's spelling, or where a Unigram model knows none the text itself.
  Spaces spaces_of(const Token& token, std::string_view piece) const {
    if (!pipeline_.trims_) return {};
    const fb::Model& model = *pipeline_.segment_->model();
    if (model.kind() == fb::ModelKind::unigram && token.id == model.unk_id() && token.end <= piece.size()) {
      return spaces_of(piece.substr(token.begin, token.end - token.begin));
    }
    const std::string_view text = pipeline_.vocabulary_.strings()[static_cast<size_t>(token.id)];
    if ((pipeline_.vocabulary_.flags(token.id) & kTokenUnspelled) == 0) return spaces_of(text);
    const size_t leading = std::min(text.find_first_not_of(' '), text.size());
    const size_t last = text.find_last_not_of(' ');
    const size_t trailing = last == std::string_view::npos ? text.size() : text.size() - 1 - last;
    return {static_cast<uint32_t>(leading), static_cast<uint32_t>(trailing)};
  }

  void add_token(int32_t id, Origin origin, Spaces spaces) {
    part_.encoding.ids.push_back(id);
    if (!options_.offsets) return;
    part_.encoding.offsets.push_back(origin);
    if (pipeline_.trims_) part_.spaces.push_back(spaces);
  }

  const Pipeline& pipeline_;
  std::string_view text_;
  const PipelineOptions& options_;
  bool tracked_;
  EncodingPart part_;
  std::vector<Token> tokens_;
};

Result<std::shared_ptr<const Pipeline>> Pipeline::open(std::span<const std::byte> bytes, std::vector<std::byte> owned) {
  MOTE_ASSIGN(const fb::Segment* segment, verify_segment(bytes));
  std::shared_ptr<Pipeline> pipeline(new Pipeline());
  pipeline->owned_ = std::move(owned);
  pipeline->segment_ = segment;
  pipeline->vocabulary_ = VocabularyView(*segment);
  MOTE_RETURN_IF_ERROR(pipeline->make_stages());
  return std::shared_ptr<const Pipeline>(std::move(pipeline));
}

Status Pipeline::make_stages() {
  MOTE_ASSIGN(raw_added_, AddedTokens::make(*segment_, segment_->raw_added()));
  MOTE_ASSIGN(normalized_added_, AddedTokens::make(*segment_, segment_->normalized_added()));
  for (const fb::Normalizer* from : *segment_->normalizers()) {
    MOTE_ASSIGN(auto normalizer, make_normalizer(*from));
    normalizers_.push_back(std::move(normalizer));
  }
  MOTE_RETURN_IF_ERROR(make_pretokenizers());
  MOTE_ASSIGN(model_, make_model(*segment_));
  for (const fb::Processor* from : *segment_->processors()) {
    MOTE_ASSIGN(Processor processor, Processor::make(*from, vocabulary_.num_ids()));
    trims_ = trims_ || processor.trims();
    processors_.push_back(std::move(processor));
  }
  for (const fb::Decoder* from : *segment_->decoders()) {
    MOTE_ASSIGN(auto decoder, make_decoder(*from, *segment_));
    decoders_.push_back(std::move(decoder));
  }
  only_bytes_ = segment_->model()->kind() == fb::ModelKind::byte_level_bpe && decoders_.size() == 1 &&
                segment_->decoders()->Get(0)->kind() == fb::DecoderKind::byte_level;
  return {};
}

Status Pipeline::make_pretokenizers() {
  const bool spell_bytes = segment_->model()->kind() != fb::ModelKind::byte_level_bpe;
  for (const fb::Pretokenizer* from : *segment_->pretokenizers()) {
    const bool asks_for_origins =
        from->kind() == fb::PretokenizerKind::metaspace && from->prepend_scheme() == fb::PrependScheme::first;
    needs_origins_ = needs_origins_ || (asks_for_origins && (!normalizers_.empty() || !pretokenizers_.empty()));
    const bool does_nothing = from->kind() == fb::PretokenizerKind::byte_level && !spell_bytes &&
                              !from->add_prefix_space() && !from->use_regex();
    if (does_nothing) continue;
    MOTE_ASSIGN(auto pretokenizer, make_pretokenizer(*from, spell_bytes));
    pretokenizers_.push_back(std::move(pretokenizer));
  }
  if (pretokenizers_.size() == 1) only_scanner_ = pretokenizers_.front()->scanner();
  return {};
}

Result<EncodingPart> Pipeline::encode_part(std::string_view text, const PipelineOptions& options) const {
  MOTE_REQUIRE(text.size() < (size_t{1} << 30), Code::kInvalidArgument, "a text of %zu bytes: must be below 1 GiB",
               text.size());
  return Encoder(*this, text, options).run();
}

Result<Encoding> Pipeline::finished(std::vector<EncodingPart> parts, const PipelineOptions& options) const {
  if (options.type_ids) {
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].encoding.type_ids.assign(parts[i].encoding.ids.size(), static_cast<uint32_t>(i));
  }
  for (const Processor& processor : processors_) processor.apply(parts, options.add_special);
  Encoding all = parts.empty() ? Encoding{} : std::move(parts.front().encoding);
  for (size_t i = 1; i < parts.size(); ++i) {
    const Encoding& part = parts[i].encoding;
    all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
    all.offsets.insert(all.offsets.end(), part.offsets.begin(), part.offsets.end());
    all.type_ids.insert(all.type_ids.end(), part.type_ids.begin(), part.type_ids.end());
  }
  if (!options.offsets) all.offsets.clear();
  if (!options.type_ids) all.type_ids.clear();
  return all;
}

Result<Encoding> Pipeline::encode(std::string_view text, const PipelineOptions& options) const {
  std::vector<EncodingPart> parts(1);
  MOTE_ASSIGN(parts[0], encode_part(text, options));
  return finished(std::move(parts), options);
}

Result<Encoding> Pipeline::encode_pair(std::string_view text, std::string_view pair,
                                       const PipelineOptions& options) const {
  std::vector<EncodingPart> parts(2);
  MOTE_ASSIGN(parts[0], encode_part(text, options));
  PipelineOptions of_pair = options;
  of_pair.added.plain = {};
  MOTE_ASSIGN(parts[1], encode_part(pair, of_pair));
  return finished(std::move(parts), options);
}

std::string Pipeline::spelled(int32_t id) const {
  const uint8_t flags = vocabulary_.flags(id);
  if ((flags & kTokenPresent) == 0) return {};
  const std::string_view bytes = vocabulary_.strings()[static_cast<size_t>(id)];
  if ((flags & kTokenUnspelled) == 0) return std::string(bytes);
  std::string spelling;
  for (const char c : bytes) spelling += byte_spelling(static_cast<unsigned char>(c));
  return spelling;
}

int32_t Pipeline::id_of(std::string_view spelling) const {
  const bool unspelled = segment_->model()->kind() == fb::ModelKind::byte_level_bpe;
  const auto bytes = unspelled ? spelled_bytes(spelling) : std::nullopt;
  const int32_t id = vocabulary_.find(bytes.has_value() ? std::string_view(*bytes) : spelling);
  if (id >= 0 && spelled(id) == spelling) return id;
  for (const fb::AddedToken* token : *segment_->added()) {
    if (spelled(token->id()) == spelling) return token->id();
  }
  return -1;
}

std::string Pipeline::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<TokenText> tokens;
  std::string bytes;
  for (const int32_t id : ids) {
    const uint8_t flags = vocabulary_.flags(id);
    if ((flags & kTokenPresent) == 0 || (skip_special && (flags & kTokenSpecial) != 0)) continue;
    if (only_bytes_)
      bytes += vocabulary_.strings()[static_cast<size_t>(id)];
    else
      tokens.push_back({spelled(id), id});
  }
  if (only_bytes_) return replace_invalid_utf8(bytes);
  if (decoders_.empty()) {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].text.insert(tokens[i].text.begin(), ' ');
  }
  const size_t limit = growth_limit(total_bytes(tokens));
  for (const auto& decoder : decoders_) {
    if (!decoder->apply(tokens, limit).ok()) break;  // a pattern that gives up leaves the text as it is
  }
  fuse(tokens);
  return replace_invalid_utf8(tokens.front().text);
}

}  // namespace mote::tokenizer
