#include "tokenizer/model/merge.h"

#include <algorithm>
#include <array>
#include <span>

namespace mote::tokenizer {
namespace {

constexpr size_t kFewSymbols = 40;

// Looks through all pairs for each merge, which beats a queue while they fit into a few cache lines.
void merge_few(const MergesView& merges, std::vector<Symbol>& symbols) {
  std::array<MergesView::Found, kFewSymbols> pairs;
  const auto look_up = [&](size_t i) {
    pairs[i] = merges.find(static_cast<uint32_t>(symbols[i].id), static_cast<uint32_t>(symbols[i + 1].id));
    if (pairs[i].id < 0) pairs[i].rank = UINT32_MAX;
  };
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].id < 0) break;
    symbols[best].id = pairs[best].id;
    symbols[best].length += symbols[best + 1].length;
    std::copy(symbols.begin() + static_cast<ptrdiff_t>(best) + 2, symbols.begin() + static_cast<ptrdiff_t>(count),
              symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    if (best + 2 < count) { std::copy(pairs.begin() + best + 2, pairs.begin() + count - 1, pairs.begin() + best + 1); }
    --count;
    if (best + 1 < count) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  symbols.resize(count);
}

struct Link {
  int32_t previous = -1;
  int32_t next = -1;
};

struct Candidate {
  uint32_t rank = 0;
  int32_t position = 0;  // of the left symbol
  int32_t id = 0;        // that the pair becomes

  bool operator<(const Candidate& other) const {  // the largest comes first
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

class QueueMerger {
 public:
  QueueMerger(const MergesView& merges, std::vector<Symbol>& symbols)
      : merges_(merges), symbols_(symbols), links_(symbols.size()) {
    for (size_t i = 0; i < links_.size(); ++i) {
      links_[i] = {static_cast<int32_t>(i) - 1, i + 1 < links_.size() ? static_cast<int32_t>(i) + 1 : -1};
    }
    for (size_t i = 0; i + 1 < links_.size(); ++i) add(static_cast<int32_t>(i));
    std::make_heap(queue_.begin(), queue_.end());
  }

  void run() {
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Candidate candidate = queue_.back();
      queue_.pop_back();
      apply(candidate);
    }
    std::erase_if(symbols_, [](const Symbol& symbol) { return symbol.length == 0; });
  }

 private:
  Symbol& symbol(int32_t index) { return symbols_[static_cast<size_t>(index)]; }
  Link& link(int32_t index) { return links_[static_cast<size_t>(index)]; }

  MergesView::Found pair_at(int32_t left) {
    if (left < 0 || link(left).next < 0) return {};
    return merges_.find(static_cast<uint32_t>(symbol(left).id), static_cast<uint32_t>(symbol(link(left).next).id));
  }

  bool add(int32_t left) {
    const MergesView::Found found = pair_at(left);
    if (found.id >= 0) queue_.push_back({found.rank, left, found.id});
    return found.id >= 0;
  }
  void push(int32_t left) {
    if (add(left)) std::push_heap(queue_.begin(), queue_.end());
  }

  // A candidate is stale when a side has merged since it was queued.
  void apply(const Candidate& candidate) {
    const int32_t left = candidate.position;
    if (symbol(left).length == 0 || pair_at(left).id != candidate.id) return;
    const int32_t right = link(left).next;
    symbol(left).id = candidate.id;
    symbol(left).length += symbol(right).length;
    symbol(right).length = 0;
    link(left).next = link(right).next;
    if (link(right).next >= 0) link(link(right).next).previous = left;
    push(link(left).previous);
    push(left);
  }

  const MergesView& merges_;
  std::vector<Symbol>& symbols_;
  std::vector<Link> links_;
  std::vector<Candidate> queue_;
};

}  // namespace

void merge_symbols(const MergesView& merges, std::vector<Symbol>& symbols) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kFewSymbols)
    merge_few(merges, symbols);
  else
    QueueMerger(merges, symbols).run();
}

}  // namespace mote::tokenizer
