// What a chat shows: content and calls on the standard output, reasoning, dimmed, and notes on the error output.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "runner/capi/mote.h"

namespace mote::cli {

// Text as a terminal may have it: control characters, with which a reply could steer it, become visible.
std::string without_controls(std::string_view text);

class Screen {
 public:
  Screen(FILE* out, FILE* err);

  void show(const mote_chat_event& event);
  // The reply is over.
  void end_reply(bool is_stopped);

  void note(const std::string& text) const;     // dimmed
  void warn(const std::string& text) const;     // yellow
  void message(const std::string& text) const;  // as it is

  // Whoever read the standard output has gone.
  bool is_gone() const { return is_gone_; }

 private:
  using Style = std::string (*)(const std::string&, FILE*);

  void write(std::string_view text, Style style = nullptr);
  void new_line();
  void end_reasoning();

  FILE* out_;
  FILE* err_;
  bool is_reasoning_ = false;
  bool is_in_line_ = false;
  bool has_written_ = false;
  bool is_gone_ = false;
};

}  // namespace mote::cli
