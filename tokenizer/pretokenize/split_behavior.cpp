#include "tokenizer/pretokenize/split_behavior.h"

#include <algorithm>

namespace mote::tokenizer {
namespace {

Piece piece_of(const Span& span) { return {static_cast<uint32_t>(span.begin), static_cast<uint32_t>(span.end)}; }

// Joins every match that does not follow a match to the span before it.
void merged_with_previous(const std::vector<Span>& spans, std::vector<Piece>& parts) {
  const size_t first = parts.size();
  bool previous_match = false;
  for (const Span& span : spans) {
    if (span.is_match && !previous_match && parts.size() > first)
      parts.back().end = static_cast<uint32_t>(span.end);
    else
      parts.push_back(piece_of(span));
    previous_match = span.is_match;
  }
}

void merged_with_next(const std::vector<Span>& spans, std::vector<Piece>& parts) {
  const size_t first = parts.size();
  bool previous_match = false;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (span->is_match && !previous_match && parts.size() > first)
      parts.back().begin = static_cast<uint32_t>(span->begin);
    else
      parts.push_back(piece_of(*span));
    previous_match = span->is_match;
  }
  std::reverse(parts.begin() + static_cast<ptrdiff_t>(first), parts.end());
}

// Joins neighbours of the same kind.
void contiguous(const std::vector<Span>& spans, std::vector<Piece>& parts) {
  const size_t first = parts.size();
  bool previous_match = false;
  for (const Span& span : spans) {
    if (span.is_match == previous_match && parts.size() > first)
      parts.back().end = static_cast<uint32_t>(span.end);
    else
      parts.push_back(piece_of(span));
    previous_match = span.is_match;
  }
}

}  // namespace

void append_parts(fb::Behavior behavior, const std::vector<Span>& spans, std::vector<Piece>& parts) {
  switch (behavior) {
    case fb::Behavior::removed:
      for (const Span& span : spans) {
        if (!span.is_match) parts.push_back(piece_of(span));
      }
      return;
    case fb::Behavior::merged_with_previous: return merged_with_previous(spans, parts);
    case fb::Behavior::merged_with_next: return merged_with_next(spans, parts);
    case fb::Behavior::contiguous: return contiguous(spans, parts);
    case fb::Behavior::isolated: break;
  }
  for (const Span& span : spans) parts.push_back(piece_of(span));
}

}  // namespace mote::tokenizer
