#include "runner/templates/search.h"

#include <cstdint>
#include <vector>

namespace mote::jinja {
namespace {

constexpr size_t kShort = 16;  // up to this many bytes are compared at every place

// Knuth, Morris and Pratt.
size_t find_long(std::string_view text, std::string_view wanted, size_t from) {
  std::vector<uint32_t> borders(wanted.size());
  for (size_t i = 1, length = 0; i < wanted.size(); ++i) {
    while (length > 0 && wanted[i] != wanted[length]) length = borders[length - 1];
    if (wanted[i] == wanted[length]) ++length;
    borders[i] = static_cast<uint32_t>(length);
  }
  for (size_t i = from, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != wanted[length]) length = borders[length - 1];
    if (text[i] == wanted[length]) ++length;
    if (length == wanted.size()) return i + 1 - length;
  }
  return text.npos;
}

}  // namespace

size_t find_text(Budget& budget, std::string_view text, std::string_view wanted, size_t from) {
  budget.step();
  if (from > text.size() || wanted.size() > text.size() - from) return text.npos;
  if (wanted.size() > kShort) budget.scan_slowly(wanted.size());
  const size_t found = wanted.size() <= kShort ? text.find(wanted, from) : find_long(text, wanted, from);
  budget.scan((found == text.npos ? text.size() : found) - from);
  return found;
}

size_t find_last_text(Budget& budget, std::string_view text, std::string_view wanted) {
  budget.step();
  if (wanted.size() > text.size()) return text.npos;
  if (wanted.size() > kShort) budget.step(text.size() / 64 * (wanted.size() / 64 + 1));
  const size_t found = text.rfind(wanted);
  budget.scan(text.size() - (found == text.npos ? 0 : found));
  return found;
}

}  // namespace mote::jinja
