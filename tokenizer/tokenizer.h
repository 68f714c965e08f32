// Text to token ids and back, as a compiled tokenizer says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/encoding.h"

namespace mote {

namespace tokenizer {
class Pipeline;
}  // namespace tokenizer

struct EncodeOptions {
  bool add_special = true;             // special tokens around the text, such as BOS, as the post-processor asks
  bool parse_special = true;           // special tokens spelled in the text become their ids
  std::span<const TextRange> plain{};  // ascending; ranges in which the spellings of added tokens are ordinary text
};

enum class OffsetUnit { kBytes, kCharacters };

// A tokenizer. Thread safety: immutable.
class Tokenizer {
 public:
  // Uses a compiled segment where it lies; it must outlive the tokenizer and start at a multiple of 8 bytes.
  // Errors: kInvalidTokenizer naming the field. Cost: reads a few pages.
  static Result<Tokenizer> open(std::span<const std::byte> segment);
  // The same, but the tokenizer owns the bytes.
  static Result<Tokenizer> open(std::vector<std::byte> segment);

  // Ill-formed UTF-8 in `text` is read as U+FFFD.
  // Errors: kInvalidArgument if the text is 2 GiB or longer, makes a regular expression give up, or needs an unknown
  // token where there is none.
  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const;
  // The same with places and type ids. Places count in the text as it is after ill-formed UTF-8 was replaced.
  Result<Encoding> encode_with_offsets(std::string_view text, const EncodeOptions& options, OffsetUnit unit) const;
  // Two texts that belong together, as the post-processor joins them. `plain` counts in the first text; places count in
  // the text that a token is from.
  Result<Encoding> encode_pair(std::string_view text, std::string_view pair, const EncodeOptions& options,
                               OffsetUnit unit) const;

  // The text of ids. Ids that no token has are left out.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;
  std::string decode(std::initializer_list<int32_t> ids, bool skip_special) const {
    return decode(std::span<const int32_t>(ids.begin(), ids.size()), skip_special);
  }

  // Whether some token has this id.
  bool has_token(int32_t id) const;
  // How the file spells a token; empty for an id that no token has.
  std::string token_text(int32_t id) const;
  // The id of a spelling, -1: none.
  int32_t token_id(std::string_view text) const;
  // The bytes of one token of a byte-level tokenizer, which need not be whole characters, else its spelling; empty for
  // an id that no token has.
  std::string_view token_bytes(int32_t id) const;
  bool is_special(int32_t id) const;
  // For each id, the bytes that its token adds to a text that is not empty; they need not be whole characters. Empty
  // for special and unknown tokens and for ids that no token has. Errors: kInvalidArgument if the bytes depend on the
  // tokens beside it. Cost: the whole vocabulary.
  Result<std::vector<std::string>> token_texts() const;
  // One more than the largest id.
  int32_t num_ids() const;
  // Whether a text is the bytes of its tokens, joined.
  bool is_byte_level() const;
  // The kind of tokenizer as text for people, such as "byte-level BPE".
  std::string_view kind() const;

 private:
  explicit Tokenizer(std::shared_ptr<const tokenizer::Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const tokenizer::Pipeline> pipeline_;
};

}  // namespace mote
