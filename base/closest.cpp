#include "base/closest.h"

#include <algorithm>
#include <vector>

namespace mote {
namespace {

constexpr size_t kLongestName = 60;
constexpr size_t kShortestBeginning = 3;

std::string folded(std::string_view name) {
  std::string text(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return text;
}

// Of optimal string alignment: Damerau 1964, with no text between two that are swapped.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view closest(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string wanted = folded(name);
  if (wanted.empty() || name.size() > kLongestName) return "";
  size_t least = wanted.size() / 3 + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const std::string text = folded(candidate);
    const size_t letters = distance(wanted, text);
    if (letters >= least) continue;
    least = letters;
    found = candidate;
  }
  if (!found.empty() || wanted.size() < kShortestBeginning) return found;
  const auto begun =
      std::ranges::find_if(candidates, [&](std::string_view c) { return folded(c).starts_with(wanted); });
  return begun == candidates.end() ? "" : *begun;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view found = closest(name, candidates);
  return found.empty() ? "" : ": did you mean '" + std::string(found) + "'?";
}

}  // namespace mote
