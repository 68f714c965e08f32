// Automata of one rule while a grammar is compiled: edges are bytes or calls of rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runner/grammars/expression.h"

namespace mote::constraints {

inline constexpr uint32_t kNoState = kUnbounded;

struct ByteEdge {
  uint8_t low = 0;
  uint8_t high = 0;  // included
  uint32_t target = 0;
};

struct CallEdge {
  RuleId rule = 0;
  uint32_t target = 0;
};

// Edges of one kind of all states, as a list for each state.
template <typename Edge>
class EdgeLists {
 public:
  static constexpr uint32_t kEnd = 0;

  void push(uint32_t& list, const Edge& edge) {
    edges_.push_back({edge, list});
    list = static_cast<uint32_t>(edges_.size());
  }
  template <typename Visit>
  void for_each(uint32_t list, Visit visit) const {
    for (; list != kEnd; list = edges_[list - 1].next) visit(edges_[list - 1].edge);
  }
  size_t num_bytes() const { return 2 * edges_.size() * sizeof(Link); }  // while it grows

 private:
  struct Link {
    Edge edge;
    uint32_t next;
  };
  std::vector<Link> edges_;
};

// Edges are bytes, calls, and empty ones, which take nothing.
class Nfa {
 public:
  static constexpr uint32_t kNotKeyed = 0;

  uint32_t add_state() {
    states_.emplace_back();
    return static_cast<uint32_t>(states_.size() - 1);
  }
  void add_bytes(uint32_t from, uint8_t low, uint8_t high, uint32_t to) {
    bytes_.push(states_[from].bytes, {low, high, to});
  }
  void add_call(uint32_t from, RuleId rule, uint32_t to) { calls_.push(states_[from].calls, {rule, to}); }
  void add_empty(uint32_t from, uint32_t to) { empties_.push(states_[from].empties, to); }
  void set_final(uint32_t state) { states_[state].is_final = true; }

  size_t num_states() const { return states_.size(); }
  bool is_final(uint32_t state) const { return states_[state].is_final; }
  bool is_useful(uint32_t state) const {  // more than a way to other states
    const State& s = states_[state];
    return s.is_final || s.bytes != 0 || s.calls != 0;
  }
  template <typename Visit>
  void for_each_byte(uint32_t state, Visit visit) const {
    bytes_.for_each(states_[state].bytes, visit);
  }
  template <typename Visit>
  void for_each_call(uint32_t state, Visit visit) const {
    calls_.for_each(states_[state].calls, visit);
  }
  template <typename Visit>
  void for_each_empty(uint32_t state, Visit visit) const {
    empties_.for_each(states_[state].empties, visit);
  }
  size_t num_bytes() const {
    return 2 * states_.size() * sizeof(State) + bytes_.num_bytes() + calls_.num_bytes() + empties_.num_bytes();
  }

  uint32_t start = 0;

 private:
  struct State {
    uint32_t bytes = 0;
    uint32_t calls = 0;
    uint32_t empties = 0;
    bool is_final = false;
  };
  std::vector<State> states_;
  EdgeLists<ByteEdge> bytes_;
  EdgeLists<CallEdge> calls_;
  EdgeLists<uint32_t> empties_;
};

struct DfaState {
  uint32_t first_byte = 0;  // into the list of byte edges
  uint32_t num_bytes = 0;
  uint32_t first_call = 0;
  uint32_t num_calls = 0;
  bool is_final = false;
  uint32_t group = 0;  // of the keys that end here; only in automata of keys
};

// State 0 is the start. Without states there is no text at all. The byte edges of a state are ascending and disjoint,
// its calls ascending by rule, at most one for each rule.
struct Dfa {
  std::vector<DfaState> states;
  std::vector<ByteEdge> bytes;
  std::vector<CallEdge> calls;

  std::span<const ByteEdge> bytes_of(const DfaState& state) const {
    return {bytes.data() + state.first_byte, state.num_bytes};
  }
  std::span<const CallEdge> calls_of(const DfaState& state) const {
    return {calls.data() + state.first_call, state.num_calls};
  }
  size_t num_bytes() const {
    return states.capacity() * sizeof(DfaState) + bytes.capacity() * sizeof(ByteEdge) +
           calls.capacity() * sizeof(CallEdge);
  }
};

// What the states of an automaton of keys belong to.
struct KeyGroups {
  static constexpr uint32_t kNone = kUnbounded - 1;  // of no keys

  std::vector<uint32_t> of_state{};  // a group, Rules::kLeftOut or kNone
  std::vector<uint32_t> end_of{};    // where a key ends for good, before whatever follows; kNone: it may still differ
  bool only_known = false;           // a key of no group is none
};

// Shared by all rules of a grammar while it is compiled.
struct Determinizing {
  explicit Determinizing(WorkBudget& b) : budget(b), held(b) {}

  WorkBudget& budget;
  HeldBytes held;  // by automata that are kept
  size_t num_states = 0;
};

// Errors: kInvalidArgument if the budget is spent or there are too many states.
Result<Dfa> determinize(const Nfa& nfa, Determinizing& shared, const KeyGroups* groups = nullptr);
// Removes the states that no text leads through. `is_productive`: which rules match any text; unused without calls.
void trim(Dfa& dfa, const std::vector<bool>& is_productive);

}  // namespace mote::constraints
