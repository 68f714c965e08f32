// Messages and commands out of lines.
#pragma once

#include <string>

#include "runner/cli/chat/input.h"

namespace mote::cli {

struct Entry {
  InputEvent event = InputEvent::kEnd;
  std::string text;
  bool is_block = false;  // it stood between """ and is no command
};

// A line that ends in a backslash goes on in the next; lines between """ and """ are one message.
class EntryReader {
 public:
  explicit EntryReader(Input& input) : input_(input) {}
  Entry read();

 private:
  Entry read_block(const std::string& opening);

  Input& input_;
};

// What follows the slash of a command and what follows that; a text that is no command has no name.
struct Command {
  std::string name;
  std::string argument;
};
Command parse_command(const std::string& text);

std::string trimmed(const std::string& text);

}  // namespace mote::cli
