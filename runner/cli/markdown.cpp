#include "runner/cli/markdown.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

namespace mote::cli {
namespace {

constexpr size_t kLeastWidth = 20;  // a terminal that is narrower wraps itself

size_t run_of(std::string_view text, char c) { return std::min(text.find_first_not_of(c), text.size()); }

// Bytes of the UTF-8 character that begins with `first`.
size_t bytes_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

size_t columns_of(std::string_view character) {
  if (character.size() == 1) return 1;
  utf8proc_int32_t code = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()),
                   static_cast<utf8proc_ssize_t>(character.size()), &code);
  return code < 0 ? 1 : static_cast<size_t>(std::max(utf8proc_charwidth(code), 0));
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

// What a line begins with; nothing as long as more of it may change that.
std::optional<MarkdownView::Prefix> MarkdownView::prefix_of(std::string_view begin, bool is_whole) {
  const size_t spaces = run_of(begin, ' ');
  const std::string_view text = begin.substr(spaces);
  const auto open = [&](bool may_change) -> std::optional<Prefix> {
    if (may_change && !is_whole) return std::nullopt;
    return Prefix{Line::kText, spaces, false};
  };
  if (text.empty()) return open(true);
  const char first = text[0];
  const size_t run = run_of(text, first);
  switch (first) {
    case '`':
    case '~':
      if (run < 3) return open(run == text.size());
      return Prefix{Line::kFenceInfo, spaces + run, false};
    case '#':
      if (run == text.size()) return open(true);
      return run <= 6 && text[run] == ' ' ? Prefix{Line::kText, spaces + run + 1, true} : open(false);
    case '-':
    case '*':
    case '+':
      if (text.size() == 1) return open(true);
      return text[1] == ' ' ? Prefix{Line::kText, spaces + 2, false} : open(false);
    case '>':
      if (text.size() == 1) return open(true);
      return Prefix{Line::kText, spaces + (text[1] == ' ' ? 2u : 1u), false};
    case '|': return Prefix{Line::kTable, spaces, false};
    default: break;
  }
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 9) return open(false);
  if (digits == text.size()) return open(true);
  if (text[digits] != '.' && text[digits] != ')') return open(false);
  if (digits + 1 == text.size()) return open(true);
  return text[digits + 1] == ' ' ? Prefix{Line::kText, spaces + digits + 2, false} : open(false);
}

std::string MarkdownView::feed(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = std::min(bytes_of(text[i]), text.size() - i);
    put(text.substr(i, bytes));
    i += bytes;
  }
  return std::exchange(out_, "");
}

std::string MarkdownView::finish() {
  if (line_ == Line::kBegins) { fence_.empty() ? begin_line(true) : begin_code_line(true); }
  if (line_ == Line::kCode) out_ += code_.finish();
  end_line();
  fence_.clear();
  line_ = Line::kBegins;
  return std::exchange(out_, "");
}

void MarkdownView::put(std::string_view character) {
  if (line_ == Line::kBegins) {
    if (character != "\n") begin_ += character;
    fence_.empty() ? begin_line(character == "\n") : begin_code_line(character == "\n");
    if (character != "\n") return;
  }
  switch (line_) {
    case Line::kBegins: break;
    case Line::kCode: out_ += code_.feed(character); break;
    case Line::kFenceInfo:
      if (character != "\n") info_ += character;
      out_ += character;
      break;
    case Line::kText:
    case Line::kTable:
      if (character == "\n") {
        end_line();
        out_ += '\n';
      } else {
        put_inline(character);
      }
      break;
  }
  if (character != "\n") return;
  if (line_ == Line::kFenceInfo) {
    const size_t first = std::min(info_.find_first_not_of(' '), info_.size());
    code_.begin(std::string_view(info_).substr(first), has_colour_);
  }
  line_ = Line::kBegins;
  column_ = 0;
}

void MarkdownView::begin_line(bool is_whole) {
  const std::optional<Prefix> prefix = prefix_of(begin_, is_whole);
  if (!prefix.has_value()) return;
  const std::string text = std::exchange(begin_, "");
  line_ = prefix->line;
  is_heading_ = prefix->is_heading;
  num_spaces_ = 0;
  last_ = ' ';
  restyle();
  if (has_colour_ && is_heading_) out_ += std::exchange(word_, "");
  out_.append(text, 0, prefix->bytes);
  column_ = prefix->bytes;  // marks are ASCII
  indent_ = width_ > 0 && column_ < width_ / 2 ? column_ : 0;
  if (line_ == Line::kFenceInfo) {
    const std::string_view mark = std::string_view(text).substr(0, prefix->bytes);
    fence_ = mark.substr(mark.find_last_of(' ') + 1);
    info_.clear();
  }
  for (size_t i = prefix->bytes; i < text.size();) {
    const size_t bytes = std::min(bytes_of(text[i]), text.size() - i);
    put(std::string_view(text).substr(i, bytes));
    i += bytes;
  }
}

// A line of code, unless it is the fence that ends it.
void MarkdownView::begin_code_line(bool is_whole) {
  const std::string_view text = std::string_view(begin_).substr(run_of(begin_, ' '));
  const size_t run = text.empty() ? 0 : run_of(text, fence_[0]);
  const bool may_be_fence = run_of(text.substr(run), ' ') == text.size() - run;
  if (may_be_fence && !is_whole) return;
  const std::string line = std::exchange(begin_, "");
  line_ = Line::kCode;
  if (may_be_fence && run >= fence_.size()) {
    out_ += code_.finish() + line;
    code_.begin("", false);  // for the end of this line
    fence_.clear();
  } else {
    out_ += code_.feed(line);
  }
}

void MarkdownView::end_line() {
  if (num_stars_ > 0) toggle(std::exchange(num_stars_, 0), '\n');
  end_ticks();
  flush_word();
  out_.append(num_spaces_, ' ');
  const bool is_styled = is_bold_ || is_italic_ || code_ticks_ > 0 || is_heading_;
  is_bold_ = is_italic_ = is_heading_ = false;
  code_ticks_ = num_spaces_ = 0;
  if (is_styled && has_colour_) out_ += kStyleOff;
}

void MarkdownView::put_inline(std::string_view character) {
  const char c = character[0];
  if (c != '`') end_ticks();
  if (c == '*' && code_ticks_ == 0) {
    ++num_stars_;
    return;
  }
  if (num_stars_ > 0) toggle(std::exchange(num_stars_, 0), c);
  if (c == '`') {
    ++num_ticks_;
    return;
  }
  if (c == ' ') {
    flush_word();
    ++num_spaces_;
  } else {
    put_in_word(character);
  }
  last_ = c;
}

void MarkdownView::put_in_word(std::string_view character) {
  const size_t columns = columns_of(character);
  if (columns > 1) flush_word();  // between ideographs a line may end
  word_ += character;
  word_width_ += columns;
  if (columns > 1) flush_word();
}

// Stars open emphasis before a letter and close it behind one; elsewhere they are stars.
void MarkdownView::toggle(size_t num_stars, char next) {
  bool& style = num_stars == 1 ? is_italic_ : is_bold_;
  const bool next_is_space = next == ' ' || next == '\n';
  const bool closes = style && last_ != ' ';
  const bool opens = !style && num_stars <= 3 && !next_is_space && !is_alphanumeric(last_);
  if (opens) {
    style = true;
    restyle();
  }
  for (size_t i = 0; i < num_stars; ++i) put_in_word("*");
  if (closes) {
    style = false;
    restyle();
  }
  last_ = '*';
}

void MarkdownView::end_ticks() {
  if (num_ticks_ == 0) return;
  const size_t ticks = std::exchange(num_ticks_, 0);
  const bool opens = code_ticks_ == 0;
  const bool closes = code_ticks_ == ticks;
  if (opens) {
    code_ticks_ = ticks;
    restyle();
  }
  for (size_t i = 0; i < ticks; ++i) put_in_word("`");
  if (closes) {
    code_ticks_ = 0;
    restyle();
  }
  last_ = '`';
}

void MarkdownView::restyle() {
  if (!has_colour_ || line_ == Line::kFenceInfo) return;
  if (!is_heading_ && !is_bold_ && !is_italic_ && code_ticks_ == 0 && word_.empty() && column_ == 0) return;
  word_ += kStyleOff;
  if (is_heading_ || is_bold_) word_ += "\x1b[1m";
  if (is_italic_) word_ += "\x1b[3m";
  if (code_ticks_ > 0) word_ += "\x1b[36m";
}

void MarkdownView::flush_word() {
  if (word_.empty()) return;
  const bool wraps = width_ >= kLeastWidth && line_ != Line::kTable;
  if (wraps && column_ + num_spaces_ + word_width_ > width_ && column_ > indent_) {
    out_ += '\n';
    out_.append(indent_, ' ');
    column_ = indent_;
  } else {
    out_.append(num_spaces_, ' ');
    column_ += num_spaces_;
  }
  num_spaces_ = 0;
  column_ += word_width_;
  word_width_ = 0;
  out_ += std::exchange(word_, "");
}

}  // namespace mote::cli
