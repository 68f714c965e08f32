#include "runner/grammars/masks.h"

#include <algorithm>
#include <bit>

#include "runner/grammars/budget.h"

namespace mote::constraints {
namespace {

constexpr uint32_t kNoNodes = 0;   // the empty frontier
constexpr uint32_t kRootNode = 1;  // the frontier of the root alone
constexpr size_t kMaxVisits = 20'000;
constexpr size_t kPlainNodesOfStep = 8;  // of the token tree, where only one state is followed

void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1U << (static_cast<uint32_t>(id) % 32);
}

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(std::span<const uint32_t> values) {
  uint64_t hash = values.size();
  for (const uint32_t value : values) hash = mixed(hash, value);
  return hash;
}

}  // namespace

// Collects the tokens below the nodes of a frontier that are allowed from one state on.
class Masks::Walk {
 public:
  Walk(const Automaton& automaton, const Vocabulary& vocabulary) : automaton_(automaton), vocabulary_(vocabulary) {}

  void run(const Frontier& nodes, uint32_t state, bool is_root) {
    const Configuration start = at_state(automaton_, state, bottom());
    work += start.work;
    exhausted |= start.exhausted;
    for (const uint32_t node : nodes) {
      if (start.may_end && !is_root) leaves.push_back(node);
      below(node, start);
    }
    work += plain_work_ / kPlainNodesOfStep;
  }

  std::vector<int32_t> ids;
  Frontier leaves;  // nodes where the rule ended
  size_t work = 0;
  bool exhausted = false;

 private:
  bool is_plain(const Configuration& at) const {
    return at.items.size() == 1 && at.num_kernel == 1 && automaton_.state(at.items[0].state).num_calls == 0;
  }

  void below(uint32_t node, const Configuration& at) {
    if (exhausted) return;
    if (is_plain(at)) return below_plain(node, at.items[0]);
    for (uint32_t child = node + 1; child < vocabulary_.end(node); child = vocabulary_.end(child)) {
      enter(child, step(automaton_, at, vocabulary_.byte(child)));
    }
  }

  // The same for one state without calls: children and edges are both in the order of bytes.
  void below_plain(uint32_t node, const Item& item) {
    const std::span<const ByteEdge> edges = automaton_.bytes(automaton_.state(item.state));
    auto edge = edges.begin();
    const uint32_t end = vocabulary_.end(node);
    for (uint32_t child = node + 1; child < end; child = vocabulary_.end(child)) {
      const uint8_t byte = vocabulary_.byte(child);
      plain_work_ += 1;
      while (edge != edges.end() && edge->high < byte) ++edge;
      if (edge == edges.end()) return;
      if (edge->low > byte) continue;
      const State& next = automaton_.state(edge->target);
      if (next.num_calls != 0 || next.is_final) {
        enter(child, at_state(automaton_, edge->target, item.stack));
        continue;
      }
      take(child);
      if (vocabulary_.has_children(child)) below_plain(child, {edge->target, item.stack});
    }
  }

  void enter(uint32_t node, const Configuration& at) {
    work += 1 + at.work;
    exhausted |= at.exhausted || work + plain_work_ / kPlainNodesOfStep > kMaxMaskSteps;
    if (at.is_empty()) return;
    take(node);
    if (!vocabulary_.has_children(node)) return;
    if (at.may_end) leaves.push_back(node);
    if (!at.items.empty()) below(node, at);
  }

  void take(uint32_t node) {
    const std::span<const int32_t> found = vocabulary_.ids(node);
    ids.insert(ids.end(), found.begin(), found.end());
  }

  const Automaton& automaton_;
  const Vocabulary& vocabulary_;
  size_t plain_work_ = 0;
};

size_t Masks::VisitHash::operator()(const Visit& visit) const {
  return mixed(mixed(visit.frontier, visit.state), reinterpret_cast<uintptr_t>(visit.stack));
}

Masks::Masks(const Automaton& automaton, const Vocabulary& vocabulary)
    : automaton_(automaton), vocabulary_(vocabulary) {
  classify_states();
}

// Two states allow the same tokens if no text as long as a token tells them apart. Refines the classes of states once
// for every byte of the longest token; where that would cost too much every state has a class of its own.
void Masks::classify_states() {
  const auto count = static_cast<uint32_t>(automaton_.num_states());
  class_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) class_of_[i] = automaton_.state(i).is_final ? 1 : 0;
  uint32_t num_classes = 2;
  size_t work = 0;
  std::vector<uint32_t> refined(count);
  std::vector<uint32_t> slots(std::bit_ceil(2 * size_t{count} + 2));  // a table of the first state of each class
  for (size_t round = 0; round <= vocabulary_.longest(); ++round) {
    std::fill(slots.begin(), slots.end(), kNoState);
    uint32_t num_refined = 0;
    for (uint32_t i = 0; i < count; ++i) {
      work += 1 + automaton_.state(i).num_bytes + automaton_.state(i).num_calls;
      size_t slot = hash_of_edges(i) & (slots.size() - 1);
      while (slots[slot] != kNoState && !have_equal_edges(slots[slot], i)) slot = (slot + 1) & (slots.size() - 1);
      refined[i] = slots[slot] != kNoState ? refined[slots[slot]] : num_refined++;
      if (slots[slot] == kNoState) slots[slot] = i;
      if (work > kMaxClassifySteps) return use_own_classes();
    }
    class_of_.swap(refined);
    if (num_refined == num_classes) return;
    num_classes = num_refined;
  }
}

void Masks::use_own_classes() {
  for (uint32_t i = 0; i < class_of_.size(); ++i) class_of_[i] = i;
}

uint64_t Masks::hash_of_edges(uint32_t index) const {
  const State& state = automaton_.state(index);
  uint64_t hash = class_of_[index];
  for (const ByteEdge& edge : automaton_.bytes(state))
    hash = mixed(mixed(hash, edge.low * 256U + edge.high), class_of_[edge.target]);
  for (const CallEdge& call : automaton_.calls(state)) hash = mixed(mixed(hash, call.rule), class_of_[call.target]);
  return hash;
}

bool Masks::have_equal_edges(uint32_t a, uint32_t b) const {
  if (class_of_[a] != class_of_[b]) return false;
  const auto bytes = [&](const ByteEdge& x, const ByteEdge& y) {
    return x.low == y.low && x.high == y.high && class_of_[x.target] == class_of_[y.target];
  };
  const auto calls = [&](const CallEdge& x, const CallEdge& y) {
    return x.rule == y.rule && class_of_[x.target] == class_of_[y.target];
  };
  return std::ranges::equal(automaton_.bytes(automaton_.state(a)), automaton_.bytes(automaton_.state(b)), bytes) &&
         std::ranges::equal(automaton_.calls(automaton_.state(a)), automaton_.calls(automaton_.state(b)), calls);
}

Status Masks::fill(const Configuration& at, std::span<uint32_t> mask) const {
  const std::lock_guard lock(mutex_);
  if (bytes_ > kMaxMaskBytes || frontiers_.empty()) {
    known_.clear();
    frontiers_.clear();
    frontier_ids_.clear();
    bytes_ = 0;
    intern({});
    intern({0});
  }
  Filling filling{mask};
  for (size_t i = 0; i < at.num_kernel; ++i)
    MOTE_RETURN_IF_ERROR(add(kRootNode, at.items[i].state, at.items[i].stack, filling));
  return {};
}

Status Masks::add(uint32_t frontier, uint32_t state, const StackPointer& stack, Filling& filling) const {
  if (frontier != kRootNode && !filling.visits.insert({frontier, state, stack.get()}).second) return {};
  const std::shared_ptr<const Tokens> tokens = tokens_of(frontier, state);
  // What was kept counts too, or whether a mask is refused would depend on the masks before it.
  filling.work += 1 + tokens->work;
  MOTE_REQUIRE(!tokens->exhausted && filling.visits.size() < kMaxVisits && filling.work <= kMaxMaskSteps,
               Code::kInvalidArgument,
               "the grammar is too ambiguous: there are too many ways in which its text may go on here");
  for (const int32_t id : tokens->ids) set_bit(filling.mask, id);
  for (size_t i = 0; i < tokens->words.size(); ++i) filling.mask[i] |= tokens->words[i];
  if (tokens->frontier == kNoNodes) return {};
  for (const Return& entry : stack->returns)
    MOTE_RETURN_IF_ERROR(add(tokens->frontier, entry.state, entry.rest, filling));
  return {};
}

std::shared_ptr<const Masks::Tokens> Masks::tokens_of(uint32_t frontier, uint32_t state) const {
  const uint64_t key = uint64_t{frontier} << 32 | class_of_[state];
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Walk walk(automaton_, vocabulary_);
  walk.run(*frontiers_[frontier], state, frontier == kRootNode);
  const auto tokens = std::make_shared<Tokens>();
  tokens->exhausted = walk.exhausted;
  tokens->work = walk.work;
  if (walk.ids.size() > vocabulary_.mask_words()) {
    tokens->words.resize(vocabulary_.mask_words());
    for (const int32_t id : walk.ids) set_bit(tokens->words, id);
  } else {
    tokens->ids.assign(walk.ids.begin(), walk.ids.end());
  }
  tokens->frontier = intern(std::move(walk.leaves));
  bytes_ += sizeof(Tokens) + 64 + 4 * (tokens->ids.size() + tokens->words.size());
  known_.emplace(key, tokens);
  return tokens;
}

uint32_t Masks::intern(Frontier frontier) const {
  std::sort(frontier.begin(), frontier.end());
  frontier.erase(std::unique(frontier.begin(), frontier.end()), frontier.end());
  const uint64_t hash = hash_of(frontier);
  const auto [first, last] = frontier_ids_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    if (*frontiers_[entry->second] == frontier) return entry->second;
  }
  bytes_ += 128 + 4 * frontier.size();
  const auto id = static_cast<uint32_t>(frontiers_.size());
  frontiers_.push_back(std::make_shared<const Frontier>(std::move(frontier)));
  frontier_ids_.emplace(hash, id);
  return id;
}

}  // namespace mote::constraints
