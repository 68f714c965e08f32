#include "runner/grammars/configuration.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "runner/grammars/budget.h"

namespace mote::constraints {
namespace {

constexpr int kMaxSortedLevels = 32;
constexpr size_t kMaxPlainItems = 24;  // of a list in which states are looked for one by one

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  return hash ^ (hash >> 29);
}

StackPointer make_stack(std::vector<Return> returns, bool may_end) {
  auto stack = std::make_shared<Stack>();
  uint64_t hash = may_end ? 1 : 2;
  uint32_t depth = 0;
  for (const Return& entry : returns) {
    hash = mix(mix(hash, entry.state), entry.rest->hash);
    depth = std::max(depth, entry.rest->depth + 1);
  }
  stack->returns = std::move(returns);
  stack->may_end = may_end;
  stack->depth = depth;
  stack->hash = hash;
  return stack;
}

// Compares what lies below the first level by a 64-bit hash only: a full comparison would dominate the cost of a step.
bool equal(const StackPointer& a, const StackPointer& b) {
  return a == b || (a->hash == b->hash && a->depth == b->depth && a->may_end == b->may_end &&
                    a->returns.size() == b->returns.size());
}

// Builds a Configuration from the items that a byte leads to.
class Closure {
 public:
  explicit Closure(const Automaton& automaton) : automaton_(automaton) {}

  bool spend(size_t work) {
    work_ += work;
    exhausted_ |= work_ > kMaxStepWork;
    return !exhausted_;
  }

  // Adds an item. Where its rule may end, also adds the items that the rule returns to.
  void add(uint32_t state, const StackPointer& stack) {
    waiting_.push_back({state, stack});
    while (!waiting_.empty() && spend(1)) {
      Item item = std::move(waiting_.back());
      waiting_.pop_back();
      if (!insert(item)) continue;
      if (!automaton_.state(item.state).is_final) continue;
      result_.may_end |= item.stack->may_end;
      for (const Return& entry : item.stack->returns) waiting_.push_back({entry.state, entry.rest});
    }
  }

  Configuration finish() {
    Configuration result = complete();
    result.work = static_cast<uint32_t>(work_);
    return result;
  }

 private:
  Configuration complete() {
    if (exhausted_) return {{}, 0, false, true};
    std::erase_if(result_.items, [&](const Item& item) {
      const State& state = automaton_.state(item.state);
      return state.num_bytes == 0 && state.num_calls == 0;
    });
    result_.num_kernel = result_.items.size();
    call_rules();
    if (exhausted_) return {{}, 0, false, true};
    // No item has a byte edge if every call was left out because its stack was too deep.
    const auto has_bytes = [&](const Item& item) { return automaton_.state(item.state).num_bytes > 0; };
    if (std::none_of(result_.items.begin(), result_.items.end(), has_bytes)) {
      result_.items.clear();
      result_.num_kernel = 0;
    }
    return std::move(result_);
  }

  // Returns false if the item adds nothing. Items of one state are merged into one item.
  bool insert(const Item& item) {
    if (Item* known = find(item.state); known != nullptr) {
      StackPointer merged = merge(known->stack, item.stack);
      if (merged == known->stack) return false;
      known->stack = std::move(merged);
      return true;
    }
    result_.items.push_back(item);
    if (!places_.empty()) places_.emplace(item.state, result_.items.size() - 1);
    return spend(1);
  }

  Item* find(uint32_t state) {
    if (result_.items.size() <= kMaxPlainItems) {
      const auto found = std::find_if(result_.items.begin(), result_.items.end(),
                                      [&](const Item& item) { return item.state == state; });
      return found == result_.items.end() ? nullptr : &*found;
    }
    if (places_.empty()) {
      for (size_t i = 0; i < result_.items.size(); ++i) places_.emplace(result_.items[i].state, i);
    }
    const auto found = places_.find(state);
    return found == places_.end() ? nullptr : &result_.items[found->second];
  }

  // The union of two stacks; `a` itself if `b` adds nothing.
  StackPointer merge(const StackPointer& a, const StackPointer& b) {
    if (equal(a, b)) return a;
    if (!spend(a->returns.size() + b->returns.size())) return a;
    std::vector<Return> returns;
    bool is_new = b->may_end && !a->may_end;
    auto left = a->returns.begin();
    for (const Return& entry : b->returns) {
      while (left != a->returns.end() && left->state < entry.state) returns.push_back(*left++);
      if (left == a->returns.end() || left->state != entry.state) {
        returns.push_back(entry);
        is_new = true;
        continue;
      }
      StackPointer rest = merge(left->rest, entry.rest);
      is_new |= rest != left->rest;
      returns.push_back({entry.state, std::move(rest)});
      ++left;
    }
    returns.insert(returns.end(), left, a->returns.end());
    return is_new ? make_stack(std::move(returns), a->may_end || b->may_end) : a;
  }

  // The union of all. Cost: of many, that of sorting their returns. Below a level they are merged one after the other,
  // which takes less room for calls.
  StackPointer unite(std::vector<StackPointer> stacks, int level = 0) {
    if (stacks.size() <= 2 || level > kMaxSortedLevels) {
      StackPointer result = std::move(stacks[0]);
      for (size_t i = 1; i < stacks.size(); ++i) result = merge(result, stacks[i]);
      return result;
    }
    std::vector<Return> all;
    bool may_end = false;
    bool are_equal = true;
    for (const StackPointer& stack : stacks) {
      may_end |= stack->may_end;
      are_equal = are_equal && equal(stack, stacks[0]);
      if (!spend(1 + stack->returns.size())) return stacks[0];
      all.insert(all.end(), stack->returns.begin(), stack->returns.end());
    }
    if (are_equal) return std::move(stacks[0]);
    std::stable_sort(all.begin(), all.end(), [](const Return& a, const Return& b) { return a.state < b.state; });
    std::vector<Return> returns;
    for (size_t begin = 0; begin < all.size();) {
      std::vector<StackPointer> rests;
      const uint32_t state = all[begin].state;
      for (; begin < all.size() && all[begin].state == state; ++begin) rests.push_back(std::move(all[begin].rest));
      returns.push_back({state, unite(std::move(rests), level + 1)});
    }
    return make_stack(std::move(returns), may_end);
  }

  // Opens called rules in ascending number: every rule that calls another before its first byte has a lower number, so
  // all callers of a rule are merged before the rule is opened.
  void call_rules() {
    for (size_t i = 0; i < result_.num_kernel; ++i) add_calls(Item(result_.items[i]));
    while (!pending_.empty() && !exhausted_) {
      const auto first = pending_.begin();
      Item item{automaton_.rule_start(first->first), unite(std::move(first->second))};
      pending_.erase(first);
      add_calls(item);
      result_.items.push_back(std::move(item));
      if (!spend(1)) return;
    }
  }

  void add_calls(const Item& item) {
    for (const CallEdge& call : automaton_.calls(automaton_.state(item.state))) {
      // A call at the very end of a rule returns to where that rule returns to, so the stack does not grow.
      const bool is_tail = automaton_.state(call.target).is_tail();
      if (!is_tail && item.stack->depth >= kMaxStackDepth) continue;
      StackPointer after = is_tail ? item.stack : make_stack({{call.target, item.stack}}, false);
      pending_[call.rule].push_back(std::move(after));
    }
  }

  const Automaton& automaton_;
  Configuration result_;
  std::unordered_map<uint32_t, size_t> places_;  // of the items by state, once there are many
  std::vector<Item> waiting_;
  std::map<RuleId, std::vector<StackPointer>> pending_;  // of each called rule: what follows its calls
  size_t work_ = 0;
  bool exhausted_ = false;
};

}  // namespace

StackPointer bottom() {
  static const StackPointer& end =
      *new StackPointer(make_stack({}, true));  // threads may need it while the process exits
  return end;
}

Configuration begin(const Automaton& automaton) {
  Configuration result;
  if (automaton.has_texts()) result = at_state(automaton, automaton.rule_start(automaton.root()), bottom());
  result.may_end |= automaton.accepts_empty();
  return result;
}

Configuration at_state(const Automaton& automaton, uint32_t state, const StackPointer& stack) {
  Closure closure(automaton);
  closure.add(state, stack);
  return closure.finish();
}

bool find_edge(const Automaton& automaton, const State& state, uint8_t byte, uint32_t* target) {
  const std::span<const ByteEdge> edges = automaton.bytes(state);
  const auto edge =
      std::lower_bound(edges.begin(), edges.end(), byte, [](const ByteEdge& e, uint8_t b) { return e.high < b; });
  if (edge == edges.end() || edge->low > byte) return false;
  *target = edge->target;
  return true;
}

Configuration step(const Automaton& automaton, const Configuration& from, uint8_t byte) {
  uint32_t target = 0;
  if (from.items.size() == 1) {  // the common case, which mostly stays inside of one rule
    const Item& item = from.items[0];
    if (!find_edge(automaton, automaton.state(item.state), byte, &target)) return {};
    const State& next = automaton.state(target);
    if (!next.is_final && next.num_calls == 0) return {{{target, item.stack}}, 1, false, false, 1};
    return at_state(automaton, target, item.stack);
  }
  Closure closure(automaton);
  closure.spend(from.items.size() / 4);
  for (const Item& item : from.items) {
    if (find_edge(automaton, automaton.state(item.state), byte, &target)) closure.add(target, item.stack);
  }
  return closure.finish();
}

int only_byte(const Automaton& automaton, const Configuration& from) {
  if (from.may_end) return -1;
  int only = -1;
  for (const Item& item : from.items) {
    for (const ByteEdge& edge : automaton.bytes(automaton.state(item.state))) {
      if (edge.low != edge.high || (only >= 0 && only != edge.low)) return -1;
      only = edge.low;
    }
  }
  return only;
}

}  // namespace mote::constraints
