#include "runner/cli/chat/screen.h"

#include <unistd.h>

#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

bool is_terminal(FILE* stream) { return isatty(fileno(stream)) != 0; }

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

Screen::Screen(FILE* out, FILE* err) : out_(out), err_(err) {}

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
  switch (event.kind) {
    case MOTE_CHAT_CONTENT: write(text); break;
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

void Screen::end_reply(bool is_stopped) {
  end_reasoning();
  if (is_stopped) std::fputs(dim(" [stopped]", err_).c_str(), err_);
  std::fflush(err_);
  if (is_in_line_ || !has_written_) write("\n");
  is_in_line_ = has_written_ = false;
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
  const std::string styled = style == nullptr ? shown : style(shown, out_);
  const bool written = std::fwrite(styled.data(), 1, styled.size(), out_) == styled.size() && std::fflush(out_) == 0;
  is_gone_ = is_gone_ || !written;
  is_in_line_ = text.back() != '\n';
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
