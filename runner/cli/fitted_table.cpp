#include "runner/cli/fitted_table.h"

#include <algorithm>

#include "runner/cli/terminal.h"

namespace mote::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastFirst = 24;  // the first column is not made narrower for the others
constexpr size_t kMostOther = 44;

using Lines = std::vector<std::string>;

std::string without_last_spaces(std::string text) {
  const size_t last = text.find_last_not_of(' ');
  text.erase(last == std::string::npos ? 0 : last + 1);
  return text;
}

size_t longest(const Lines& texts) {
  size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, text.size());
  return width;
}

// The words of a heading, joined again where they are no wider than the cells below.
Lines heading_lines(const std::string& heading, size_t width) {
  Lines lines;
  for (size_t begin = 0; begin <= heading.size();) {
    const size_t end = std::min(heading.find(' ', begin), heading.size());
    const std::string word = heading.substr(begin, end - begin);
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
    begin = end + 1;
  }
  return lines;
}

std::string cell_of(const std::vector<std::string>& row, size_t column) {
  return column < row.size() ? row[column] : "";
}

// A line of a table from the line-th of each cell's lines. top: cells stand at the top of their row, else at the foot.
void add_lines(const std::vector<Lines>& cells, const std::vector<size_t>& widths, bool top, Lines& to) {
  size_t height = 0;
  for (const Lines& cell : cells) height = std::max(height, cell.size());
  for (size_t line = 0; line < height; ++line) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t skipped = top ? 0 : height - cells[i].size();
      const std::string part = line >= skipped && line - skipped < cells[i].size() ? cells[i][line - skipped] : "";
      const std::string padding(widths[i] - std::min(widths[i], part.size()), ' ');
      text += i == 0 ? part + padding : std::string(kGap, ' ') + padding + part;
    }
    to.push_back(without_last_spaces(text));
  }
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  Lines lines;
  std::string rest = text;
  while (rest.size() > width) {
    size_t end = rest.rfind(' ', width - 1);
    if (end == std::string::npos || end < width / 2) end = rest.find_last_of(" ,.+", width - 1);
    const size_t length = end == std::string::npos || end < width / 3 ? width : end + 1;
    lines.push_back(without_last_spaces(rest.substr(0, length)));
    rest.erase(0, length);
  }
  lines.push_back(rest);
  return lines;
}

std::string joined_in_lines(const std::vector<std::string>& parts, size_t indent, size_t width) {
  std::string text;
  size_t used = 0;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (used > 0 && used + kGap + part.size() <= width) {
      text += std::string(kGap, ' ') + part;
      used += kGap + part.size();
      continue;
    }
    const Lines lines = wrapped(part, width - indent);
    for (const std::string& line : lines) {
      if (used > 0) text += "\n" + std::string(indent, ' ');
      used = (used > 0 ? indent : 0) + line.size();
      text += line;
    }
  }
  return text;
}

FittedTable::Part FittedTable::part(size_t begin, size_t width) const {
  const Headings headings = this->headings(width);
  const size_t least_first = std::min(width_of(0, headings), kLeastFirst);
  Part part{{0}, {0}};
  size_t others = 0;
  for (size_t column = begin; column < heading_.size(); ++column) {
    const size_t more = kGap + width_of(column, headings);
    if (column > begin && least_first + others + more > width) break;
    others += more;
    part.columns.push_back(column);
    part.widths.push_back(more - kGap);
  }
  const size_t left = width > others ? width - others : 1;
  part.widths[0] = std::min(width_of(0, headings), std::max(left, least_first));
  return part;
}

size_t FittedTable::width_of(size_t column, Headings headings) const {
  size_t width = 0;
  for (const auto& row : rows_) width = std::max(width, cell_of(row, column).size());
  if (headings == Headings::kWhole)
    width = std::max(width, heading_[column].size());
  else
    width = std::max(width, longest(heading_lines(heading_[column], width)));
  return column == 0 ? width : std::min(width, kMostOther);
}

// Broken where the table would be too wide.
FittedTable::Headings FittedTable::headings(size_t width) const {
  size_t total = width_of(0, Headings::kWhole);
  for (size_t column = 1; column < heading_.size(); ++column) total += kGap + width_of(column, Headings::kWhole);
  return total <= width ? Headings::kWhole : Headings::kBroken;
}

std::vector<FittedTable::Line> FittedTable::lines(size_t width) const {
  std::vector<Line> result;
  for (size_t begin = 1; begin == 1 || begin < heading_.size();) {
    const Part part = this->part(begin, width);
    const auto add = [&](const std::vector<std::string>& row, bool is_heading) {
      std::vector<Lines> cells;
      for (size_t i = 0; i < part.columns.size(); ++i) {
        const std::string text = cell_of(row, part.columns[i]);
        cells.push_back(is_heading ? heading_lines(text, part.widths[i]) : wrapped(text, part.widths[i]));
      }
      Lines lines;
      add_lines(cells, part.widths, !is_heading, lines);
      for (const std::string& line : lines) result.push_back({line, is_heading});
    };
    if (!result.empty()) result.emplace_back();
    add(heading_, true);
    for (const auto& row : rows_) add(row, false);
    begin += std::max<size_t>(part.columns.size() - 1, 1);
  }
  return result;
}

void FittedTable::print(FILE* stream, size_t width) const {
  for (const Line& line : lines(width))
    std::fprintf(stream, "%s\n", (line.is_heading ? bold(line.text, stream) : line.text).c_str());
}

}  // namespace mote::cli
