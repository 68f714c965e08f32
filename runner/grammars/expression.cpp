#include "runner/grammars/expression.h"

#include <algorithm>

namespace mote::constraints {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

}  // namespace

std::vector<CodePointRange> normalized(std::vector<CodePointRange> ranges) {
  std::vector<CodePointRange> parts;
  for (const CodePointRange& range : ranges) {
    const char32_t high = std::min(range.high, kLastCodePoint);
    if (range.low < kFirstSurrogate) parts.push_back({range.low, std::min<char32_t>(high, kFirstSurrogate - 1)});
    if (high > kLastSurrogate) parts.push_back({std::max<char32_t>(range.low, kLastSurrogate + 1), high});
  }
  std::erase_if(parts, [](const CodePointRange& range) { return range.low > range.high; });
  std::sort(parts.begin(), parts.end(), [](const CodePointRange& a, const CodePointRange& b) { return a.low < b.low; });
  std::vector<CodePointRange> result;
  for (const CodePointRange& range : parts) {
    if (!result.empty() && range.low <= result.back().high + 1)
      result.back().high = std::max(result.back().high, range.high);
    else
      result.push_back(range);
  }
  return result;
}

std::vector<CodePointRange> complement(std::span<const CodePointRange> ranges) {
  std::vector<CodePointRange> result;
  char32_t next = 0;
  for (const CodePointRange& range : ranges) {
    if (range.low > next) result.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLastCodePoint) result.push_back({next, kLastCodePoint});
  return normalized(std::move(result));
}

ExpressionId Rules::add(Expression expression) {
  expressions_.push_back(std::move(expression));
  return static_cast<ExpressionId>(expressions_.size() - 1);
}

ExpressionId Rules::bytes(std::string text) { return add({.kind = ExpressionKind::kBytes, .bytes = std::move(text)}); }

ExpressionId Rules::characters(std::vector<CodePointRange> ranges) {
  return add({.kind = ExpressionKind::kCharacters, .characters = normalized(std::move(ranges))});
}

ExpressionId Rules::sequence(std::vector<ExpressionId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = ExpressionKind::kSequence, .children = std::move(parts)});
}

ExpressionId Rules::choice(std::vector<ExpressionId> branches) {
  if (branches.size() == 1) return branches[0];
  return add({.kind = ExpressionKind::kChoice, .children = std::move(branches)});
}

ExpressionId Rules::repeat(ExpressionId part, uint32_t low, uint32_t high) {
  return add({.kind = ExpressionKind::kRepeat, .children = {part}, .low = low, .high = high});
}

ExpressionId Rules::rule(RuleId rule) { return add({.kind = ExpressionKind::kRule, .rule = rule}); }

ExpressionId Rules::intersection(ExpressionId a, ExpressionId b) {
  return add({.kind = ExpressionKind::kIntersection, .children = {a, b}});
}

ExpressionId Rules::difference(ExpressionId a, ExpressionId b) {
  return add({.kind = ExpressionKind::kDifference, .children = {a, b}});
}

RuleId Rules::add_rule() {
  definitions_.push_back(never());
  return static_cast<RuleId>(definitions_.size() - 1);
}

}  // namespace mote::constraints
