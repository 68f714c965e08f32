// Tables and lists that fit a line of 80 columns.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace mote::cli {

inline constexpr size_t kLineWidth = 80;

// As Table, with what would be too wide wrapped: long cells take several lines, and where there are too many columns,
// further tables repeat the first. A heading of several words may take several lines too.
class FittedTable {
 public:
  struct Line {
    std::string text;
    bool is_heading = false;
  };

  explicit FittedTable(std::vector<std::string> heading) : heading_(std::move(heading)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(FILE* stream, size_t width = kLineWidth) const;
  std::vector<Line> lines(size_t width = kLineWidth) const;

 private:
  struct Part {  // columns that stand side by side, the first of the table among them
    std::vector<size_t> columns;
    std::vector<size_t> widths;
  };

  enum class Headings { kWhole, kBroken };

  Part part(size_t begin, size_t width) const;
  size_t width_of(size_t column, Headings headings) const;
  Headings headings(size_t width) const;

  std::vector<std::string> heading_;
  std::vector<std::vector<std::string>> rows_;
};

// Lines of at most `width`, broken behind a space, comma, dot or plus; a longer word is cut.
std::vector<std::string> wrapped(const std::string& text, size_t width);
// The parts with two spaces between them, as many in a line as fit; later lines begin with `indent` spaces.
std::string joined_in_lines(const std::vector<std::string>& parts, size_t indent, size_t width = kLineWidth);

}  // namespace mote::cli
