#include "tokenizer/segment/verify.h"

#include "base/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/segment/text.h"

namespace mote::tokenizer {
namespace {

constexpr size_t kMaxComponents = 256;

Status check_text(const flatbuffers::String* text, const char* name) {
  MOTE_REQUIRE(is_valid_utf8(text_of(text)), Code::kInvalidTokenizer, "%s: must be UTF-8", name);
  return {};
}

Status check_character(uint32_t c, const char* name) {
  MOTE_REQUIRE(c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF), Code::kInvalidTokenizer,
               "%s = %u: must be a Unicode character", name, c);
  return {};
}

Status check_trie(const fb::Trie* trie, const char* name) {
  if (trie == nullptr) return {};
  const size_t num_nodes = trie->first_edges()->size() == 0 ? 0 : trie->first_edges()->size() - 1;
  MOTE_REQUIRE(trie->values()->size() == num_nodes, Code::kInvalidTokenizer,
               "%s: %u values for %zu nodes: must be one each", name, trie->values()->size(), num_nodes);
  return {};
}

Status check_components(const fb::Segment& segment) {
  const size_t count = segment.normalizers()->size() + segment.pretokenizers()->size() + segment.processors()->size() +
                       segment.decoders()->size();
  MOTE_REQUIRE(count <= kMaxComponents, Code::kInvalidTokenizer, "the tokenizer has %zu components: at most %zu", count,
               kMaxComponents);
  for (const fb::Normalizer* normalizer : *segment.normalizers()) {
    MOTE_RETURN_IF_ERROR(check_text(normalizer->pattern(), "normalizers: pattern"));
    MOTE_RETURN_IF_ERROR(check_text(normalizer->content(), "normalizers: content"));
    MOTE_RETURN_IF_ERROR(check_trie(normalizer->user_defined(), "normalizers: user_defined"));
  }
  for (const fb::Pretokenizer* pretokenizer : *segment.pretokenizers()) {
    MOTE_RETURN_IF_ERROR(check_text(pretokenizer->pattern(), "pretokenizers: pattern"));
    MOTE_RETURN_IF_ERROR(check_character(pretokenizer->character(), "pretokenizers: character"));
    MOTE_REQUIRE(
        pretokenizer->behavior() <= fb::Behavior::MAX && pretokenizer->prepend_scheme() <= fb::PrependScheme::MAX,
        Code::kInvalidTokenizer, "pretokenizers: a behavior or prepend_scheme that is unknown");
  }
  for (const fb::Decoder* decoder : *segment.decoders()) {
    MOTE_RETURN_IF_ERROR(check_text(decoder->pattern(), "decoders: pattern"));
    MOTE_RETURN_IF_ERROR(check_text(decoder->content(), "decoders: content"));
    MOTE_RETURN_IF_ERROR(check_character(decoder->character(), "decoders: character"));
    MOTE_REQUIRE(decoder->prepend_scheme() <= fb::PrependScheme::MAX, Code::kInvalidTokenizer,
                 "decoders: a prepend_scheme that is unknown");
  }
  return {};
}

Status check_model(const fb::Model& model) {
  MOTE_RETURN_IF_ERROR(check_text(model.continuing_subword_prefix(), "model.continuing_subword_prefix"));
  MOTE_RETURN_IF_ERROR(check_text(model.end_of_word_suffix(), "model.end_of_word_suffix"));
  MOTE_RETURN_IF_ERROR(check_character(model.word_start(), "model.word_start"));
  MOTE_RETURN_IF_ERROR(check_trie(model.trie(), "model.trie"));
  return check_trie(model.user_defined(), "model.user_defined");
}

}  // namespace

Result<const fb::Segment*> verify_segment(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  MOTE_REQUIRE(bytes.size() >= 16 && fb::SegmentBufferHasIdentifier(data), Code::kInvalidTokenizer,
               "the tokenizer is not a compiled one of Mote; export the model again");
  MOTE_REQUIRE(reinterpret_cast<uintptr_t>(data) % 8 == 0, Code::kInvalidArgument,
               "a compiled tokenizer must start at a multiple of 8 bytes in memory");
  flatbuffers::Verifier verifier(data, bytes.size(), 16, 4 * kMaxComponents);
  MOTE_REQUIRE(fb::VerifySegmentBuffer(verifier), Code::kInvalidTokenizer, "the compiled tokenizer is damaged");
  const fb::Segment* segment = fb::GetSegment(data);
  MOTE_REQUIRE(segment->version() == kSegmentVersion, Code::kInvalidTokenizer,
               "the compiled tokenizer has version %u: must be %u; export the model again", segment->version(),
               kSegmentVersion);
  const size_t num_ids = segment->token_flags()->size();
  const size_t num_aliases = segment->alias_ids() == nullptr ? 0 : segment->alias_ids()->size();
  MOTE_REQUIRE(num_ids <= static_cast<size_t>(kMaxTokenId) + 1, Code::kInvalidTokenizer, "%zu ids: at most %d", num_ids,
               kMaxTokenId + 1);
  MOTE_REQUIRE(StringsView(*segment->tokens()).size() == num_ids + num_aliases, Code::kInvalidTokenizer,
               "%zu strings for %zu ids and %zu aliases", StringsView(*segment->tokens()).size(), num_ids, num_aliases);
  MOTE_RETURN_IF_ERROR(check_components(*segment));
  MOTE_RETURN_IF_ERROR(check_model(*segment->model()));
  MOTE_RETURN_IF_ERROR(check_trie(segment->raw_added(), "raw_added"));
  MOTE_RETURN_IF_ERROR(check_trie(segment->normalized_added(), "normalized_added"));
  return segment;
}

}  // namespace mote::tokenizer
