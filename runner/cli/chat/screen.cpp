#include "runner/cli/chat/screen.h"

#include "runner/cli/output.h"
#include "runner/cli/system.h"
#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

std::string for_stream(std::string_view text, FILE* stream) {
  return is_terminal(stream) ? without_controls(text) : std::string(text);
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1) {
      result += "\xef\xbf\xbd";  // U+FFFD
      ++i;
    } else if (byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      result += '^';
      result += static_cast<char>(byte ^ 0x40);
    } else {
      result += text[i];
    }
  }
  return result;
}

Screen::Screen(FILE* out, FILE* err, bool is_markdown)
    : out_(out), err_(err), is_markdown_(is_markdown && is_terminal(out)) {}

void Screen::show(const mote_chat_event& event) {
  if (event.kind == MOTE_CHAT_NONE || event.kind == MOTE_CHAT_DONE) return;
  const std::string_view text(event.text, event.text_bytes);
  if (event.kind == MOTE_CHAT_REASONING) {
    std::fputs(dim(for_stream(text, err_), err_).c_str(), err_);
    std::fflush(err_);
    is_reasoning_ = true;
    return;
  }
  end_reasoning();
  if (event.kind != MOTE_CHAT_CONTENT) end_content();
  switch (event.kind) {
    case MOTE_CHAT_CONTENT: show_text(text); break;
    case MOTE_CHAT_CALL_BEGIN:
      new_line();
      write(std::string(text) + "(", cyan);
      break;
    case MOTE_CHAT_CALL_ARGUMENTS: write(text, cyan); break;
    case MOTE_CHAT_CALL_END:
      write(")", cyan);
      new_line();
      break;
    case MOTE_CHAT_CALL_DISCARDED:
      write(" is no call:", yellow);
      new_line();
      break;
    default: break;
  }
}

void Screen::show_text(std::string_view text) {
  if (text.empty()) return;
  if (!is_markdown_) return write(text);
  if (!markdown_.has_value()) markdown_.emplace(terminal_columns(out_), has_colour(out_));
  write_shown(markdown_->feed(without_controls(text)));
  is_in_line_ = text.back() != '\n';
}

void Screen::end_content() {
  if (!markdown_.has_value()) return;
  write_shown(markdown_->finish());
  markdown_.reset();
}

void Screen::end_reply(bool is_stopped) {
  end_reasoning();
  end_content();
  if (is_stopped) std::fputs(dim(" [stopped]", err_).c_str(), err_);
  std::fflush(err_);
  if (is_in_line_ || !has_written_) write("\n");
  is_in_line_ = has_written_ = false;
}

void Screen::blank_line() {
  write("\n");
  has_written_ = false;
}

void Screen::note(const std::string& text) const { message(dim(for_stream(text, err_), err_)); }
void Screen::warn(const std::string& text) const { message(yellow(for_stream(text, err_), err_)); }

void Screen::message(const std::string& text) const {
  std::fprintf(err_, "%s\n", text.c_str());
  std::fflush(err_);
}

void Screen::write(std::string_view text, Style style) {
  if (text.empty()) return;
  const std::string shown = for_stream(text, out_);
  write_shown(style == nullptr ? shown : style(shown, out_));
  is_in_line_ = text.back() != '\n';
}

void Screen::write_shown(const std::string& text) {
  if (text.empty()) return;
  is_gone_ = is_gone_ || !write_now(text, out_);
  has_written_ = true;
}

void Screen::new_line() {
  if (is_in_line_) write("\n");
}

void Screen::end_reasoning() {
  if (!is_reasoning_) return;
  std::fputs("\n\n", err_);
  std::fflush(err_);
  is_reasoning_ = false;
}

}  // namespace mote::cli
