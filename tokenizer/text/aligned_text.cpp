#include "tokenizer/text/aligned_text.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/text/growth.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {

AlignedText::AlignedText(std::string_view original, size_t begin, size_t end, bool tracked)
    : text_(original.substr(begin, end - begin)),
      limit_(growth_limit(end - begin)),
      origin_begin_(static_cast<uint32_t>(begin)),
      tracked_(tracked) {
  if (!tracked) return;
  origins_.reserve(text_.size());
  for (size_t at = 0; at < text_.size();) {
    const size_t length = first_character(std::string_view(text_).substr(at)).length;
    const Origin origin{static_cast<uint32_t>(begin + at), static_cast<uint32_t>(begin + at + length)};
    origins_.insert(origins_.end(), length, origin);
    at += length;
  }
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText part;
  part.text_ = text_.substr(begin, end - begin);
  part.limit_ = limit_;
  part.tracked_ = tracked_;
  part.origin_begin_ = origin_begin_ + static_cast<uint32_t>(begin);
  if (!tracked_) return part;
  part.origins_.assign(origins_.begin() + static_cast<ptrdiff_t>(begin),
                       origins_.begin() + static_cast<ptrdiff_t>(end));
  if (begin < end) part.origin_begin_ = origins_[begin].begin;
  return part;
}

void AlignedText::forget_first_origin() {
  if (text_.empty() || !tracked_) return;
  const size_t length = std::min(first_character(text_).length, origins_.size());
  std::fill_n(origins_.begin(), length, Origin{origin_begin_, origin_begin_});
}

void AlignedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  text_.insert(0, prefix);
  if (tracked_) origins_.insert(origins_.begin(), prefix.size(), origins_.front());
}

void AlignedText::append(const AlignedText& other) {
  text_ += other.text_;
  origins_.insert(origins_.end(), other.origins_.begin(), other.origins_.end());
}

TextEditor::TextEditor(AlignedText& text) : source_(text) {
  text_.reserve(text.size() + text.size() / 8);
  if (text.tracked_) origins_.reserve(text_.capacity());
}

Origin TextEditor::previous_origin() const {
  if (position_ == 0) return {source_.origin_begin_, source_.origin_begin_};
  return source_.origins_[position_ - 1];
}

void TextEditor::append(char32_t c, Origin origin) {
  const size_t before = text_.size();
  append_utf8(text_, c);
  if (source_.tracked_) origins_.insert(origins_.end(), text_.size() - before, origin);
}

void TextEditor::replace(char32_t c) {
  append(c, source_.tracked_ ? source_.origins_[position_] : Origin{});
  skip_character();
}

void TextEditor::insert(char32_t c) { append(c, source_.tracked_ ? previous_origin() : Origin{}); }

void TextEditor::insert(std::string_view text) {
  text_ += text;
  if (source_.tracked_) origins_.insert(origins_.end(), text.size(), previous_origin());
}

void TextEditor::skip_character() { position_ += first_character(rest()).length; }

void TextEditor::copy(size_t bytes) {
  text_ += rest().substr(0, bytes);
  if (source_.tracked_) {
    const auto first = source_.origins_.begin() + static_cast<ptrdiff_t>(position_);
    origins_.insert(origins_.end(), first, first + static_cast<ptrdiff_t>(bytes));
  }
  position_ += bytes;
}

void TextEditor::apply(char32_t c, int change) {
  if (change > 0 || at_end()) {
    insert(c);
    return;
  }
  replace(c);
  for (; change < 0 && !at_end(); ++change) skip_character();
}

void TextEditor::finish() {
  source_.text_ = std::move(text_);
  source_.origins_ = std::move(origins_);
}

void AlignedWriter::append(std::string_view text, size_t from) {
  text_ += text;
  if (source_.tracked_) from_.insert(from_.end(), text.size(), from);
}

void AlignedWriter::drop(size_t bytes) {
  text_.resize(text_.size() - bytes);
  if (!source_.tracked_) return;
  dropped_from_ = from_[text_.size()];
  from_.resize(text_.size());
}

void AlignedWriter::finish(size_t end) {
  std::vector<Origin> origins;
  if (source_.tracked_) {
    const auto position = [&](size_t from) {
      if (from < source_.size()) return source_.origins_[from].begin;
      return source_.origins_.empty() ? source_.origin_begin_ : source_.origins_.back().end;
    };
    from_.push_back(end);
    origins.reserve(text_.size());
    for (size_t i = 0; i < text_.size(); ++i) origins.push_back({position(from_[i]), position(from_[i + 1])});
  }
  source_.text_ = std::move(text_);
  source_.origins_ = std::move(origins);
}

}  // namespace mote::tokenizer
