// Text that still knows which bytes of the original each of its bytes came from.
// Source: tokenizers tokenizer/normalizer.rs (NormalizedString)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mote::tokenizer {

// Bytes [begin, end) of the original text.
struct Origin {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class AlignedText {
 public:
  AlignedText() = default;
  // A copy of original[begin, end). Without `tracked` origins are not kept and must not be asked for.
  AlignedText(std::string_view original, size_t begin, size_t end, bool tracked);

  const std::string& text() const { return text_; }
  bool tracked() const { return tracked_; }
  // Where this text began in the original, whatever was removed from it since.
  uint32_t origin_begin() const { return origin_begin_; }
  Origin origin(size_t index) const { return origins_[index]; }
  size_t size() const { return text_.size(); }
  // The most bytes that the text may grow to.
  size_t limit() const { return limit_; }

  // A copy of the bytes [begin, end) with their origins. Source: NormalizedString::slice
  AlignedText slice(size_t begin, size_t end) const;
  // Puts `prefix` in front, with the origin of the first character. Does nothing to an empty text.
  void prepend(std::string_view prefix);
  // Does what Hugging Face's `Prepend` does with an empty prefix: the first character counts as one that was put in
  // front.
  void forget_first_origin();
  void append(const AlignedText& other);

 private:
  friend class TextEditor;
  friend class AlignedWriter;
  std::string text_;
  std::vector<Origin> origins_;  // one a byte
  size_t limit_ = 0;
  uint32_t origin_begin_ = 0;
  bool tracked_ = false;
};

// Writes a text anew from the front, each character with the origin that Hugging Face gives it. finish() puts it in
// place.
class TextEditor {
 public:
  explicit TextEditor(AlignedText& text);

  bool at_end() const { return position_ >= source_.size(); }
  std::string_view rest() const { return std::string_view(source_.text_).substr(position_); }

  // Writes `c` for the next character.
  void replace(char32_t c);
  // Writes `c` behind what was read so far, whose origin it shares.
  void insert(char32_t c);
  void insert(std::string_view text);
  // Passes over bytes without writing.
  void skip(size_t bytes) { position_ += bytes; }
  void skip_character();
  // Copies bytes as they are.
  void copy(size_t bytes);
  // As the transformations of tokenizers: 0 replaces, 1 inserts, -n replaces and drops n more characters.
  void apply(char32_t c, int change);

  void finish();

 private:
  void append(char32_t c, Origin origin);
  Origin previous_origin() const;

  AlignedText& source_;
  std::string text_;
  std::vector<Origin> origins_;
  size_t position_ = 0;
};

// Writes a text anew where every byte knows only where in the old text it came from: it ends where the next one came
// from.
class AlignedWriter {
 public:
  explicit AlignedWriter(AlignedText& text) : source_(text) {}

  const std::string& text() const { return text_; }
  void append(std::string_view text, size_t from);
  // Drops bytes at the end; the text then ends where the first of them came from.
  void drop(size_t bytes);
  // `end`: where in the old text the last byte ends.
  void finish(size_t end);
  // Where the last dropped byte came from.
  size_t dropped_from() const { return dropped_from_; }

 private:
  AlignedText& source_;
  std::string text_;
  std::vector<size_t> from_;
  size_t dropped_from_ = 0;
};

// A part of a text that is encoded on its own.
struct Piece {
  uint32_t begin = 0;
  uint32_t end = 0;
};

}  // namespace mote::tokenizer
