// Colours, numbers for people, aligned tables.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace mote::cli {

// Escape sequences are sent only to a terminal, and not where NO_COLOR is set.
bool has_colour(FILE* stream);
std::string bold(const std::string& text, FILE* stream);
std::string dim(const std::string& text, FILE* stream);
std::string red(const std::string& text, FILE* stream);
std::string green(const std::string& text, FILE* stream);
std::string yellow(const std::string& text, FILE* stream);
std::string cyan(const std::string& text, FILE* stream);

std::string bytes_text(uint64_t bytes);     // "9.2 MB"
std::string number_text(double value);      // three or more significant digits
std::string duration_text(double seconds);  // "3.2 ms"

// Rows of cells; the first row is the heading. The first column is left-aligned, the others right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(FILE* stream) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mote::cli
