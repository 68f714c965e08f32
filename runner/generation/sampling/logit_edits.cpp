#include "runner/generation/sampling/logit_edits.h"

#include <algorithm>
#include <limits>

namespace mote {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kLongestRepetition = 50;  // longer ones count as this long

// The end of `text`: at most `count` ids, 0: all.
std::span<const int32_t> last_ids(std::span<const int32_t> text, int32_t count) {
  const auto most = static_cast<size_t>(count);
  return count == 0 || text.size() <= most ? text : text.last(most);
}

float power(float base, int32_t exponent) {
  float result = 1.0f;
  for (int32_t i = 0; i < exponent; ++i) result *= base;
  return std::min(result, std::numeric_limits<float>::max());
}

}  // namespace

LogitEdits::LogitEdits(const SamplingOptions& options, int32_t vocab_size, std::span<const int32_t> eos_ids)
    : options_(options), vocab_size_(vocab_size), eos_ids_(eos_ids.begin(), eos_ids.end()) {
  counts_ = options.repetition_penalty != 1.0f || options.frequency_penalty != 0.0f || options.presence_penalty != 0.0f;
  for (const SequenceBias& entry : options.sequence_bias) {
    if (entry.ids.size() == 1) mark(entry.ids[0]).bias += entry.bias;
  }
  std::erase_if(options_.sequence_bias, [](const SequenceBias& entry) { return entry.ids.size() == 1; });
  std::sort(options_.dry_sequence_breakers.begin(), options_.dry_sequence_breakers.end());
}

bool LogitEdits::is_idle() const {
  return !counts_ && marks_.empty() && options_.sequence_bias.empty() && options_.dry_multiplier == 0.0f &&
         options_.no_repeat_ngram_size == 0 && options_.min_new_tokens == 0;
}

LogitEdits::Mark& LogitEdits::mark(int32_t id) {
  const auto place = std::lower_bound(marks_.begin(), marks_.end(), id,
                                      [](const Mark& mark, int32_t other) { return mark.id < other; });
  return place != marks_.end() && place->id == id ? *place : *marks_.insert(place, Mark{.id = id});
}

void LogitEdits::ban(int32_t id) { mark(id).step_penalty = kInfinity; }

void LogitEdits::observe(int32_t id, bool is_generated) {
  if (id < 0 || id >= vocab_size_) return;
  text_.push_back(id);
  num_prompt_ += is_generated ? 0 : 1;
}

// All at once: each mark that is inserted alone moves those behind it.
void LogitEdits::add_marks(std::span<const int32_t> ids) {
  std::vector<int32_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto known = static_cast<ptrdiff_t>(marks_.size());
  const auto by_id = [](const Mark& a, const Mark& b) { return a.id < b.id; };
  for (const int32_t id : sorted) {
    if (!std::binary_search(marks_.begin(), marks_.begin() + known, Mark{.id = id}, by_id))
      marks_.push_back({.id = id});
  }
  std::inplace_merge(marks_.begin(), marks_.begin() + known, marks_.end(), by_id);
}

void LogitEdits::count_new_ids() {
  if (!counts_) return;
  const std::span<const int32_t> added = std::span<const int32_t>(text_).subspan(num_counted_);
  if (added.size() > 1) add_marks(added);
  const auto window = static_cast<size_t>(options_.repetition_window);
  for (; num_counted_ < text_.size(); ++num_counted_) {
    Mark& found = mark(text_[num_counted_]);
    ++found.seen;
    found.generated += num_counted_ < num_prompt_ ? 0 : 1;
    if (window > 0 && num_counted_ >= window) --mark(text_[num_counted_ - window]).seen;
  }
}

std::span<const LogitEdit> LogitEdits::apply(std::span<const float> logits) {
  count_new_ids();
  add_sequence_biases();
  add_dry_penalties();
  ban_repeated_ngrams();
  if (text_.size() - num_prompt_ < static_cast<size_t>(options_.min_new_tokens)) {
    for (const int32_t id : eos_ids_) ban(id);
  }
  edits_.clear();
  for (Mark& mark : marks_) {
    if (static_cast<size_t>(mark.id) >= logits.size()) break;
    const float before = logits[static_cast<size_t>(mark.id)], after = edited(mark, before);
    if (after != before) edits_.push_back({mark.id, after});
    mark.step_bias = mark.step_penalty = 0.0f;
  }
  return edits_;
}

float LogitEdits::edited(const Mark& mark, float logit) const {
  logit += mark.bias + mark.step_bias;
  const float penalty = options_.repetition_penalty;
  if (mark.seen > 0 && penalty != 1.0f) logit = logit < 0.0f ? logit * penalty : logit / penalty;
  if (mark.generated > 0) {
    logit -= static_cast<float>(mark.generated) * options_.frequency_penalty + options_.presence_penalty;
  }
  return mark.step_penalty == kInfinity ? -kInfinity : logit - mark.step_penalty;
}

void LogitEdits::add_sequence_biases() {
  for (const SequenceBias& sequence : options_.sequence_bias) {
    const size_t before = sequence.ids.size() - 1;
    if (text_.size() < before) continue;
    if (std::equal(text_.end() - static_cast<ptrdiff_t>(before), text_.end(), sequence.ids.begin())) {
      mark(sequence.ids.back()).step_bias += sequence.bias;
    }
  }
}

void LogitEdits::ban_repeated_ngrams() {
  const auto size = static_cast<size_t>(options_.no_repeat_ngram_size);
  if (size == 0 || text_.size() < size) return;
  const std::span<const int32_t> text(text_), tail = text.last(size - 1);
  for (size_t begin = 0; begin + size <= text.size(); ++begin) {
    if (std::equal(tail.begin(), tail.end(), text.begin() + static_cast<ptrdiff_t>(begin))) ban(text[begin + size - 1]);
  }
}

bool LogitEdits::is_breaker(int32_t id) const {
  return std::binary_search(options_.dry_sequence_breakers.begin(), options_.dry_sequence_breakers.end(), id);
}

// How many ids before text[end] are the same as at the end of the text; at least the last one is.
int32_t LogitEdits::repeated_length(std::span<const int32_t> text, size_t end) const {
  int32_t length = 1;
  while (length < kLongestRepetition && static_cast<size_t>(length) < end) {
    const auto back = static_cast<size_t>(length) + 1;
    const int32_t id = text[text.size() - back];
    if (text[end - back] != id || is_breaker(id)) break;
    ++length;
  }
  return length;
}

void LogitEdits::add_dry_penalties() {
  const std::span<const int32_t> text = last_ids(text_, options_.dry_window);
  if (options_.dry_multiplier == 0.0f || text.size() < 2 || is_breaker(text.back())) return;
  for (size_t next = 1; next < text.size(); ++next) {
    if (text[next - 1] != text.back() || is_breaker(text[next])) continue;
    const int32_t length = repeated_length(text, next);
    if (length < options_.dry_allowed_length) continue;
    float& penalty = mark(text[next]).step_penalty;
    penalty =
        std::max(penalty, options_.dry_multiplier * power(options_.dry_base, length - options_.dry_allowed_length));
  }
}

}  // namespace mote
