// A text that grows in an arena and keeps which of its parts came from the input.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/templates/characters.h"
#include "runner/templates/value.h"

namespace mote::jinja {

// Calls use(piece, is_marked) for the pieces of `text`, in order; all of a piece is marked or none of it.
template <typename Use>
void for_each_piece(const Text& text, Use use) {
  if (text.size == 0) return;
  if (text.marks == nullptr || text.marks == &kAllMarked) return use(text.view(), text.marks != nullptr);
  const char* position = text.data;
  const char* end = text.data + text.size;
  for (size_t i = 0; i < text.marks->count && position < end; ++i) {
    const MarkRange& range = text.marks->ranges[i];
    if (range.end <= position) continue;
    if (range.begin >= end) break;
    const char* begin = range.begin < position ? position : range.begin;
    const char* stop = range.end < end ? range.end : end;
    if (begin > position) use(std::string_view(position, static_cast<size_t>(begin - position)), false);
    use(std::string_view(begin, static_cast<size_t>(stop - begin)), true);
    position = stop;
  }
  if (position < end) use(std::string_view(position, static_cast<size_t>(end - position)), false);
}

class TextBuilder {
 public:
  explicit TextBuilder(Arena& arena) : arena_(arena) {}

  void add(const Text& text) {
    if (text.marks == nullptr) return add(text.view(), false);
    for_each_piece(text, [this](std::string_view piece, bool is_marked) { add(piece, is_marked); });
  }
  void add(std::string_view text, bool is_marked);
  void add(char c) { add(std::string_view(&c, 1), false); }

  // Calls map(buffer, c) for each character of `text` and adds what it appended to the buffer, marked as the character
  // was.
  template <typename Map>
  void add_mapped(const Text& text, Map map);

  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }
  // The text; the builder must not be used again.
  Text finish();

 private:
  Arena& arena_;
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  std::vector<std::pair<size_t, size_t>> marked_;  // [begin, end), ascending
};

template <typename Map>
void TextBuilder::add_mapped(const Text& text, Map map) {
  arena_.budget().scan_slowly(text.size);
  std::string buffer;
  for_each_piece(text, [&](std::string_view piece, bool is_marked) {
    for (size_t i = 0; i < piece.size();) {
      const Character character = character_at(piece, i);
      map(buffer, character.code);
      i += character.length;
      if (buffer.size() > 512 || i >= piece.size()) {
        add(buffer, is_marked);
        buffer.clear();
      }
    }
  });
}

}  // namespace mote::jinja
