#include "runner/grammars/masks.h"

#include <algorithm>
#include <map>

#include "runner/grammars/budget.h"

namespace mote::constraints {
namespace {

constexpr uint32_t kNoNodes = 0;   // the empty frontier
constexpr uint32_t kRootNode = 1;  // the frontier of the root alone
constexpr size_t kClassifyWork = 20'000'000;
constexpr size_t kMaxVisits = 20'000;

void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1U << (static_cast<uint32_t>(id) % 32);
}

uint64_t hash_of(const std::vector<uint32_t>& values) {
  uint64_t hash = values.size();
  for (const uint32_t value : values) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

// Collects the tokens below the nodes of a frontier that are allowed from one state on.
class Masks::Walk {
 public:
  Walk(const Automaton& automaton, const Vocabulary& vocabulary) : automaton_(automaton), vocabulary_(vocabulary) {}

  void run(const Frontier& nodes, uint32_t state, bool is_root) {
    const Configuration start = at_state(automaton_, state, bottom());
    exhausted |= start.exhausted;
    for (const uint32_t node : nodes) {
      if (start.may_end && !is_root) leaves.push_back(node);
      below(node, start);
    }
  }

  std::vector<int32_t> ids;
  Frontier leaves;  // nodes where the rule ended
  bool exhausted = false;

 private:
  bool is_plain(const Configuration& at) const {
    return at.items.size() == 1 && at.num_kernel == 1 && automaton_.state(at.items[0].state).num_calls == 0;
  }

  void below(uint32_t node, const Configuration& at) {
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
    exhausted |= at.exhausted;
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
};

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
  size_t num_classes = 2;
  size_t work = 0;
  std::vector<uint32_t> refined(count);
  std::vector<uint32_t> key;
  for (size_t round = 0; round <= vocabulary_.longest(); ++round) {
    std::unordered_map<uint64_t, std::vector<std::pair<std::vector<uint32_t>, uint32_t>>> classes;
    uint32_t num_refined = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const State& state = automaton_.state(i);
      key.assign(1, class_of_[i]);
      for (const ByteEdge& edge : automaton_.bytes(state))
        key.insert(key.end(), {edge.low * 256U + edge.high, class_of_[edge.target]});
      for (const CallEdge& call : automaton_.calls(state))
        key.insert(key.end(), {65536 + call.rule, class_of_[call.target]});
      work += 8 + key.size();
      auto& bucket = classes[hash_of(key)];
      const auto known =
          std::find_if(bucket.begin(), bucket.end(), [&](const auto& entry) { return entry.first == key; });
      refined[i] = known != bucket.end() ? known->second : num_refined++;
      if (known == bucket.end()) bucket.emplace_back(key, refined[i]);
    }
    class_of_.swap(refined);
    if (num_refined == num_classes) return;
    num_classes = num_refined;
    if (work > kClassifyWork) break;
    if (round == vocabulary_.longest()) return;
  }
  for (uint32_t i = 0; i < count; ++i) class_of_[i] = i;
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
  std::vector<Visit> visits;
  for (size_t i = 0; i < at.num_kernel; ++i)
    MOTE_RETURN_IF_ERROR(add(kRootNode, at.items[i].state, at.items[i].stack, visits, mask));
  return {};
}

Status Masks::add(uint32_t frontier, uint32_t state, const StackPointer& stack, std::vector<Visit>& visits,
                  std::span<uint32_t> mask) const {
  const Visit visit{frontier, state, stack.get()};
  if (frontier != kRootNode) {
    if (std::find(visits.begin(), visits.end(), visit) != visits.end()) return {};
    visits.push_back(visit);
  }
  const std::shared_ptr<const Tokens> tokens = tokens_of(frontier, state);
  MOTE_REQUIRE(!tokens->exhausted && visits.size() < kMaxVisits, Code::kInvalidArgument,
               "the grammar is too ambiguous: there are too many ways in which its text may go on here");
  for (const int32_t id : tokens->ids) set_bit(mask, id);
  for (size_t i = 0; i < tokens->words.size(); ++i) mask[i] |= tokens->words[i];
  if (tokens->frontier == kNoNodes) return {};
  for (const Return& entry : stack->returns)
    MOTE_RETURN_IF_ERROR(add(tokens->frontier, entry.state, entry.rest, visits, mask));
  return {};
}

std::shared_ptr<const Masks::Tokens> Masks::tokens_of(uint32_t frontier, uint32_t state) const {
  const uint64_t key = uint64_t{frontier} << 32 | class_of_[state];
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Walk walk(automaton_, vocabulary_);
  walk.run(*frontiers_[frontier], state, frontier == kRootNode);
  const auto tokens = std::make_shared<Tokens>();
  tokens->exhausted = walk.exhausted;
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
