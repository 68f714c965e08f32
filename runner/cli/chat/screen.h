// What a chat shows: content and calls on the standard output, reasoning, dimmed, and notes on the error output.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "runner/capi/mote.h"
#include "runner/cli/markdown.h"

namespace mote::cli {

// Text as a terminal may have it: control characters, with which a reply could steer it, become visible.
std::string without_controls(std::string_view text);

class Screen {
 public:
  // is_markdown: what is shown on a terminal is wrapped and coloured as Markdown.
  Screen(FILE* out, FILE* err, bool is_markdown = true);

  void show(const mote_chat_event& event);
  // A part of what was generated, where that is no reply.
  void show_text(std::string_view text);
  // The reply is over.
  void end_reply(bool is_stopped);

  // Between two replies.
  void blank_line();

  void note(const std::string& text) const;     // dimmed
  void warn(const std::string& text) const;     // yellow
  void message(const std::string& text) const;  // as it is

  // Whoever read the standard output has gone.
  bool is_gone() const { return is_gone_; }

 private:
  using Style = std::string (*)(const std::string&, FILE*);

  void write(std::string_view text, Style style = nullptr);
  void write_shown(const std::string& text);  // as it is
  void new_line();
  void end_reasoning();

  void end_content();

  FILE* out_;
  FILE* err_;
  const bool is_markdown_;                // and out_ is a terminal
  std::optional<MarkdownView> markdown_;  // of the reply
  bool is_reasoning_ = false;
  bool is_in_line_ = false;
  bool has_written_ = false;
  bool is_gone_ = false;
};

}  // namespace mote::cli
