#include "tokenizer/pretokenize/split.h"

#include <algorithm>

namespace mote::tokenizer {
namespace {

// Joins every match that does not follow a match to the span before it.
std::vector<Span> merged_with_previous(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool previous_match = false;
  for (const Span& span : spans) {
    if (span.is_match && !previous_match && !merged.empty()) merged.back().end = span.end;
    else merged.push_back(span);
    previous_match = span.is_match;
  }
  return merged;
}

std::vector<Span> merged_with_next(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool previous_match = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->is_match && !previous_match && !merged.empty()) merged.back().begin = span->begin;
    else merged.push_back(*span);
    previous_match = span->is_match;
  }
  std::reverse(merged.begin(), merged.end());
  return merged;
}

// Joins neighbours of the same kind.
std::vector<Span> contiguous(const std::vector<Span>& spans) {
  std::vector<Span> merged;
  bool previous_match = false;
  for (const Span& span : spans) {
    if (span.is_match == previous_match && !merged.empty()) merged.back().end = span.end;
    else merged.push_back(span);
    previous_match = span.is_match;
  }
  return merged;
}

std::vector<Span> apply(SplitBehavior behavior, std::vector<Span> spans) {
  switch (behavior) {
    case SplitBehavior::kIsolated: return spans;
    case SplitBehavior::kRemoved: std::erase_if(spans, [](const Span& span) { return span.is_match; }); return spans;
    case SplitBehavior::kMergedWithPrevious: return merged_with_previous(spans);
    case SplitBehavior::kMergedWithNext: return merged_with_next(spans);
    case SplitBehavior::kContiguous: return contiguous(spans);
  }
  return spans;
}

Result<SplitBehavior> parse_behavior(const Field& field) {
  MOTE_ASSIGN(const std::string name, field.text());
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return field.error("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

Result<Regex> parse_pattern(const Field& field) {
  if (!field["String"].is_null()) {
    MOTE_ASSIGN(const std::string literal, field["String"].text());
    return Regex::literal(literal);
  }
  MOTE_ASSIGN(const std::string pattern, field["Regex"].text());
  return Regex::compile(pattern);
}

}  // namespace

Result<std::unique_ptr<Pretokenizer>> Split::make(const Field& field) {
  MOTE_ASSIGN(Regex regex, parse_pattern(field["pattern"]));
  MOTE_ASSIGN(const SplitBehavior behavior, parse_behavior(field["behavior"]));
  MOTE_ASSIGN(const bool invert, field["invert"].boolean(false));
  return std::unique_ptr<Pretokenizer>(std::make_unique<Split>(std::move(regex), behavior, invert));
}

Status Split::split(std::string text, std::vector<std::string>& pieces) const {
  MOTE_ASSIGN(std::vector<Span> spans, regex_.spans(text));
  if (invert_) {
    for (Span& span : spans) span.is_match = !span.is_match;
  }
  for (const Span& span : apply(behavior_, std::move(spans))) {
    if (span.end > span.begin) pieces.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return {};
}

}  // namespace mote::tokenizer
