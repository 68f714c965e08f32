#include "runner/generation/speculation/prompt_lookup.h"

#include <algorithm>

namespace mote {
namespace {

size_t grade_of(size_t length) {
  constexpr size_t kBounds[] = {3, 4, 6, 9, 13, 20, 32};  // the first length of grades 1, 2, ...
  return static_cast<size_t>(std::upper_bound(std::begin(kBounds), std::end(kBounds), length) - std::begin(kBounds));
}

}  // namespace

Status PromptLookup::propose(const DraftContext& context, Draft& draft) {
  const std::span<const int32_t> text = context.text;
  index_.update(text, is_same_text_);
  is_same_text_ = true;
  const std::optional<NgramIndex::Match> match = index_.find();
  if (!match.has_value()) return {};
  // Where the earlier place reaches the end of the text, the draft goes on with itself: a loop.
  for (size_t i = 0; draft.wants(grade_of(match->length + i)); ++i) {
    const size_t from = match->end + i;
    draft.add(from < text.size() ? text[from] : draft.ids()[from - text.size()], grade_of(match->length + i));
  }
  return {};
}

}  // namespace mote
