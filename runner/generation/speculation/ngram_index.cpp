#include "runner/generation/speculation/ngram_index.h"

#include <algorithm>
#include <bit>

namespace mote {
namespace {

constexpr size_t kFewestBuckets = 256;

// How many ids before `end` are those at the end of the text.
size_t same_ids(std::span<const int32_t> text, size_t end) {
  const size_t most = std::min(NgramIndex::kLongest, end);
  size_t length = 0;
  while (length < most && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
  return length;
}

}  // namespace

size_t NgramChains::bucket(std::span<const int32_t> text, size_t end) const {
  uint64_t hash = 0;
  for (size_t i = end - size_; i < end; ++i) hash = (hash + static_cast<uint32_t>(text[i]) + 1) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(hash >> 32) & (newest_.size() - 1);
}

void NgramChains::append(std::span<const int32_t> text, size_t first) {
  if (text.size() > newest_.size()) {
    rebuild(text, std::bit_ceil(std::max(kFewestBuckets, 2 * text.size())));
    return;
  }
  previous_.resize(text.size() + 1, 0);
  for (size_t end = std::max(first + 1, size_); end <= text.size(); ++end) {
    int32_t& newest = newest_[bucket(text, end)];
    previous_[end] = newest;
    newest = static_cast<int32_t>(end);
  }
}

void NgramChains::rebuild(std::span<const int32_t> text, size_t num_buckets) {
  newest_.assign(num_buckets, 0);
  append(text, 0);
}

void NgramChains::truncate(std::span<const int32_t> text, size_t length) {
  for (size_t end = text.size(); end > length && end >= size_; --end) newest_[bucket(text, end)] = previous_[end];
}

template <typename Body>
void NgramChains::for_each_candidate(std::span<const int32_t> text, const Body& body) const {
  if (text.size() <= size_) return;
  int32_t end = previous_[text.size()];
  for (int i = 0; i < NgramIndex::kMostCandidates && end > 0; ++i) {
    if (!body(static_cast<size_t>(end))) return;
    end = previous_[static_cast<size_t>(end)];
  }
}

void NgramIndex::update(std::span<const int32_t> text, bool is_same) {
  size_t kept = std::min(text_.size(), text.size());
  if (!is_same)
    kept = static_cast<size_t>(
        std::mismatch(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(kept), text.begin()).first - text_.begin());
  if (kept < text_.size()) {
    long_.truncate(text_, kept);
    short_.truncate(text_, kept);
    text_.resize(kept);
  }
  try {
    text_.insert(text_.end(), text.begin() + static_cast<ptrdiff_t>(kept), text.end());
    long_.append(text_, kept);
    short_.append(text_, kept);
  } catch (...) {
    *this = NgramIndex();
    throw;
  }
}

void NgramIndex::look_through(const NgramChains& chains, Match& best) const {
  chains.for_each_candidate(text_, [&](size_t end) {
    const size_t length = same_ids(text_, end);
    if (length >= kShortest && length > best.length) best = {end, length};
    return best.length < kLongest;
  });
}

std::optional<NgramIndex::Match> NgramIndex::find() const {
  Match best;
  look_through(long_, best);
  if (best.length == 0) look_through(short_, best);
  return best.length == 0 ? std::nullopt : std::optional<Match>(best);
}

}  // namespace mote
