#include "runner/grammars/expression.h"

#include <algorithm>

#include "base/utf8.h"

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
  budget_->count(1 + expression.children.size() + expression.characters.size() + expression.bytes.size() / 16);
  if (budget_->is_spent() && !expressions_.empty()) return 0;  // nobody is going to use it
  budget_->hold(sizeof(Expression) + expression.children.capacity() * sizeof(ExpressionId) +
                expression.characters.capacity() * sizeof(CodePointRange) + expression.bytes.capacity());
  expressions_.push_back(std::move(expression));
  return static_cast<ExpressionId>(expressions_.size() - 1);
}

ExpressionId Rules::bytes(std::string text) { return add({.kind = ExpressionKind::kBytes, .bytes = std::move(text)}); }

ExpressionId Rules::texts(const std::vector<std::string>& texts) {
  Expression expression{.kind = ExpressionKind::kTexts};
  for (const std::string& text : texts) {
    expression.bytes += text;
    expression.children.push_back(static_cast<ExpressionId>(expression.bytes.size()));
  }
  return add(std::move(expression));
}

ExpressionId Rules::characters(std::vector<CodePointRange> ranges) {
  ranges = normalized(std::move(ranges));
  if (ranges.size() == 1 && ranges[0].low == ranges[0].high) {
    std::string text;
    append_utf8(text, ranges[0].low);
    return bytes(std::move(text));
  }
  return add({.kind = ExpressionKind::kCharacters, .characters = std::move(ranges)});
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

ExpressionId Rules::rule(RuleId rule) { return add({.kind = ExpressionKind::kRule, .index = rule}); }

ExpressionId Rules::intersection(ExpressionId a, ExpressionId b) {
  return add({.kind = ExpressionKind::kIntersection, .children = {a, b}});
}

ExpressionId Rules::difference(ExpressionId a, ExpressionId b) {
  return add({.kind = ExpressionKind::kDifference, .children = {a, b}});
}

ExpressionId Rules::keyed(std::vector<KeyPattern> keys, ExpressionId any, std::vector<ExpressionId> behind,
                          bool only_known) {
  Expression expression{.kind = ExpressionKind::kKeyed};
  expression.index = static_cast<uint32_t>(keys_.size());
  expression.low = static_cast<uint32_t>(behind.size() - (only_known ? 0 : 1));
  expression.children = std::move(behind);
  expression.children.push_back(any);
  budget_->count(keys.size());
  budget_->hold(keys.capacity() * sizeof(KeyPattern));
  keys_.push_back(std::move(keys));
  return add(std::move(expression));
}

bool Rules::append_bytes(ExpressionId before, ExpressionId part) {
  if (size_t{part} + 1 != expressions_.size() || before + 1 != part) return false;
  if (expressions_[before].kind != ExpressionKind::kBytes || expressions_[part].kind != ExpressionKind::kBytes)
    return false;
  budget_->release(sizeof(Expression));
  expressions_[before].bytes += expressions_[part].bytes;
  expressions_.pop_back();
  return true;
}

RuleId Rules::add_rule() {
  if (definitions_.empty()) undefined_ = never();
  budget_->count(1);
  budget_->hold(sizeof(ExpressionId));
  definitions_.push_back(undefined_);
  return static_cast<RuleId>(definitions_.size() - 1);
}

}  // namespace mote::constraints
