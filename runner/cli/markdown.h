// Markdown for a terminal while it comes: words are wrapped, headings, emphasis and code are coloured. Every character
// of the text stays, its marks too, so that what is copied from the terminal is Markdown again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "runner/cli/code_colours.h"

namespace mote::cli {

class MarkdownView {
 public:
  // width: columns of the terminal; 0: lines are not wrapped.
  MarkdownView(size_t width, bool has_colour) : width_(width), has_colour_(has_colour) {}

  // text: whole UTF-8 characters without control characters. Returns what can be shown by now; a word that may go on is
  // held back.
  std::string feed(std::string_view text);
  // Returns the rest. The next text begins a line.
  std::string finish();

 private:
  enum class Line { kBegins, kText, kTable, kFenceInfo, kCode };
  struct Prefix {
    Line line = Line::kText;
    size_t bytes = 0;  // of the mark
    bool is_heading = false;
  };

  static std::optional<Prefix> prefix_of(std::string_view begin, bool is_whole);
  void begin_line(bool is_whole);
  void begin_code_line(bool is_whole);
  void end_line();
  void put(std::string_view character);
  void put_inline(std::string_view character);
  void put_in_word(std::string_view character);
  void toggle(size_t num_stars, char next);
  void end_ticks();
  void flush_word();
  void restyle();

  const size_t width_;
  const bool has_colour_;
  std::string out_;
  Line line_ = Line::kBegins;
  std::string begin_;  // of a line, as long as it is not known what it is
  bool is_heading_ = false;
  size_t indent_ = 0;  // of what is wrapped
  size_t column_ = 0;
  size_t num_spaces_ = 0;  // before the word
  std::string word_;
  size_t word_width_ = 0;
  char last_ = ' ';       // before the marks that wait
  size_t num_stars_ = 0;  // that wait for the next character
  size_t num_ticks_ = 0;
  size_t code_ticks_ = 0;  // that opened the code which is open; 0: none is
  bool is_bold_ = false;
  bool is_italic_ = false;
  std::string fence_;  // that closes the code; "": none is open
  std::string info_;
  CodeColours code_;
};

}  // namespace mote::cli
