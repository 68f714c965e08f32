// Where the lines of a chat come from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/cli/chat/history.h"

namespace mote::cli {

enum class InputEvent { kLine, kEnd, kInterrupt };

struct InputLine {
  InputEvent event = InputEvent::kEnd;
  std::string text;  // without the line break at its end
};

class Input {
 public:
  virtual ~Input() = default;
  virtual InputLine read_line(const std::string& prompt) = 0;
  // What was entered is to be found again.
  virtual void remember(const std::string&) {}
};

// Reads a file descriptor; shows the prompt where `shows_prompt`.
std::unique_ptr<Input> make_plain_input(int descriptor, bool shows_prompt);
// Edits lines on the terminal; `completions` are what the Tab key completes at the start of a line. nullptr: this build
// has no line editing, or the terminal none.
std::unique_ptr<Input> make_line_editor(History history, const std::vector<std::string>& completions);

}  // namespace mote::cli
