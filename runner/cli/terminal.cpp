#include "runner/cli/terminal.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runner/cli/system.h"

namespace mote::cli {
namespace {

std::string styled(const char* code, const std::string& text, FILE* stream) {
  return has_colour(stream) ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

std::string with_precision(double value, int digits, const char* unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f%s", digits, value, unit);
  return text.data();
}

}  // namespace

bool has_colour(FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(stream) && (no_colour == nullptr || *no_colour == '\0');
}

std::string bold(const std::string& text, FILE* stream) { return styled("1", text, stream); }
std::string dim(const std::string& text, FILE* stream) { return styled("2", text, stream); }
std::string red(const std::string& text, FILE* stream) { return styled("31", text, stream); }
std::string green(const std::string& text, FILE* stream) { return styled("32", text, stream); }
std::string yellow(const std::string& text, FILE* stream) { return styled("33", text, stream); }
std::string cyan(const std::string& text, FILE* stream) { return styled("36", text, stream); }

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {" B", " kB", " MB", " GB", " TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000.0 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return with_precision(value, unit == 0 || value >= 100.0 ? 0 : 1, kUnits[unit]);
}

std::string number_text(double value) { return with_precision(value, value >= 100.0 ? 0 : value >= 10.0 ? 1 : 2, ""); }

std::string duration_text(double seconds) {
  if (seconds >= 1.0) return with_precision(seconds, 2, " s");
  if (seconds >= 1e-3) return with_precision(seconds * 1e3, 1, " ms");
  return with_precision(seconds * 1e6, 0, " us");
}

void Table::print(FILE* stream) const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string padding(widths[i] - rows_[r][i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i == 0 ? rows_[r][i] + padding : padding + rows_[r][i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::fprintf(stream, "%s\n", (r == 0 ? bold(line, stream) : line).c_str());
  }
}

}  // namespace mote::cli
