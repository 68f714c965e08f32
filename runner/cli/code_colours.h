// Colours for source code while it comes: comments, strings, numbers and the keywords of common languages.
#pragma once

#include <string>
#include <string_view>

namespace mote::cli {

inline constexpr std::string_view kStyleOff = "\x1b[0m";

class CodeColours {
 public:
  // language: as a Markdown fence names it. Of one that is not known nothing is coloured.
  void begin(std::string_view language, bool has_colour);
  // Returns what can be shown by now; a word that may go on is held back.
  std::string feed(std::string_view text);
  std::string finish();

 private:
  void put(char c);
  void flush_word();

  bool is_known_ = false;
  std::string_view comment_;  // what begins one, to the end of the line; "": nothing
  std::string out_;
  std::string word_;
  char quote_ = 0;  // of the string that is open
  bool is_escaped_ = false;
  bool is_comment_ = false;
};

}  // namespace mote::cli
