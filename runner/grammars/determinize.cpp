#include <algorithm>
#include <array>
#include <bitset>

#include "runner/grammars/nfa.h"

namespace mote::constraints {
namespace {

uint32_t hash_of_states(std::span<const uint32_t> set) {
  uint64_t hash = set.size();
  for (const uint32_t state : set) {
    hash = (hash ^ state) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

// The subset construction: a state of the deterministic automaton stands for a set of states of `nfa`.
class Subsets {
 public:
  Subsets(const Nfa& nfa, Determinizing& shared, const KeyGroups* groups)
      : nfa_(nfa), shared_(shared), budget_(shared.budget), groups_(groups), held_(budget_) {
    held_.add(nfa.num_states() * sizeof(uint32_t));
    last_seen_.resize(nfa.num_states());
  }

  Result<Dfa> run() {
    if (nfa_.num_states() == 0) return Dfa();
    targets_.assign(1, nfa_.start);
    MOTE_RETURN_IF_ERROR(index_of_targets().status());
    for (uint32_t i = 0; i < dfa_.states.size(); ++i) MOTE_RETURN_IF_ERROR(expand(i));
    return std::move(dfa_);
  }

 private:
  std::span<const uint32_t> set(uint32_t index) const {
    return {pool_.data() + begins_[index], begins_[index + 1] - begins_[index]};
  }

  // Adds all states that empty edges lead to from the targets, and leaves those that are more than ways, ascending.
  void close_targets() {
    ++round_;
    size_t count = 0;
    for (const uint32_t state : targets_) {
      if (last_seen_[state] == round_) continue;
      last_seen_[state] = round_;
      targets_[count++] = state;
    }
    targets_.resize(count);
    for (size_t i = 0; i < targets_.size(); ++i) {
      nfa_.for_each_empty(targets_[i], [&](uint32_t next) {
        if (last_seen_[next] == round_) return;
        last_seen_[next] = round_;
        targets_.push_back(next);
      });
    }
    budget_.count(targets_.size());
    std::erase_if(targets_, [&](uint32_t state) { return !nfa_.is_useful(state); });
    std::sort(targets_.begin(), targets_.end());
  }

  // Once a key of a group has ended for good, its other states tell nothing more; if keys of two have, no text is
  // left. False: that is so.
  bool leave_out_settled_groups() {
    uint32_t settled = KeyGroups::kNone;
    uint32_t end = KeyGroups::kNone;
    for (const uint32_t state : targets_) {
      if (groups_->end_of[state] == KeyGroups::kNone) continue;
      const uint32_t group = groups_->of_state[state];
      if (group == Rules::kLeftOut || (settled != KeyGroups::kNone && settled != group)) return false;
      settled = group;
      end = std::min(end, groups_->end_of[state]);
    }
    if (settled == KeyGroups::kNone) return true;
    std::erase_if(targets_,
                  [&](uint32_t state) { return groups_->of_state[state] == settled && groups_->end_of[state] != end; });
    return true;
  }

  // The state that stands for the targets; kNoState: no text goes on from them.
  Result<uint32_t> index_of_targets() {
    close_targets();
    if (groups_ != nullptr && !leave_out_settled_groups()) return kNoState;
    const uint32_t hash = hash_of_states(targets_);
    if (2 * (dfa_.states.size() + 1) > slots_.size()) grow_slots();
    size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != kNoState; slot = (slot + 1) & (slots_.size() - 1)) {
      const uint32_t known = slots_[slot];
      if (hashes_[known] == hash && std::ranges::equal(set(known), targets_)) return known;
    }
    MOTE_RETURN_IF_ERROR(budget_.spend(1));
    MOTE_REQUIRE(++shared_.num_states <= kMaxStates, Code::kInvalidArgument,
                 "the grammar is too large: more than %zu states; give fewer or shorter alternatives, repetitions and "
                 "lengths",
                 kMaxStates);
    const auto index = static_cast<uint32_t>(dfa_.states.size());
    slots_[slot] = index;
    hashes_.push_back(hash);
    if (begins_.empty()) begins_.push_back(0);
    pool_.insert(pool_.end(), targets_.begin(), targets_.end());
    begins_.push_back(pool_.size());
    dfa_.states.emplace_back();
    if (index % 256 == 0) hold();
    return index;
  }

  void hold() {
    // Twice what is there: a list that grows is there twice.
    held_.set(last_seen_.size() * sizeof(uint32_t) + slots_.size() * sizeof(uint32_t) +
              2 * (pool_.size() * sizeof(uint32_t) + begins_.size() * (sizeof(size_t) + sizeof(uint32_t)) +
                   dfa_.states.size() * sizeof(DfaState) + dfa_.bytes.size() * sizeof(ByteEdge) +
                   dfa_.calls.size() * sizeof(CallEdge)));
  }

  void grow_slots() {
    slots_.assign(std::max<size_t>(16, 4 * dfa_.states.size()), kNoState);
    size_t size = 16;
    while (size < slots_.size()) size *= 2;
    slots_.resize(size, kNoState);
    for (uint32_t i = 0; i < dfa_.states.size(); ++i) {
      size_t slot = hashes_[i] & (size - 1);
      while (slots_[slot] != kNoState) slot = (slot + 1) & (size - 1);
      slots_[slot] = i;
    }
  }

  Status expand(uint32_t index) {
    edges_.clear();
    calls_.clear();
    for (const uint32_t state : set(index)) {
      nfa_.for_each_byte(state, [&](const ByteEdge& edge) { edges_.push_back(edge); });
      nfa_.for_each_call(state, [&](const CallEdge& call) { calls_.push_back(call); });
    }
    MOTE_RETURN_IF_ERROR(budget_.spend(1 + (edges_.size() + calls_.size()) / 2));
    mark_end(index);
    dfa_.states[index].first_byte = static_cast<uint32_t>(dfa_.bytes.size());
    MOTE_RETURN_IF_ERROR(add_byte_edges());
    dfa_.states[index].num_bytes = static_cast<uint32_t>(dfa_.bytes.size()) - dfa_.states[index].first_byte;
    dfa_.states[index].first_call = static_cast<uint32_t>(dfa_.calls.size());
    std::sort(calls_.begin(), calls_.end(), [](const CallEdge& a, const CallEdge& b) { return a.rule < b.rule; });
    for (size_t i = 0; i < calls_.size();) {
      const RuleId rule = calls_[i].rule;
      targets_.clear();
      for (; i < calls_.size() && calls_[i].rule == rule; ++i) targets_.push_back(calls_[i].target);
      MOTE_ASSIGN(const uint32_t target, index_of_targets());
      dfa_.calls.push_back({rule, target});
    }
    dfa_.states[index].num_calls = static_cast<uint32_t>(dfa_.calls.size()) - dfa_.states[index].first_call;
    return {};
  }

  void mark_end(uint32_t index) {
    DfaState& to = dfa_.states[index];
    if (groups_ == nullptr) {
      to.is_final = std::ranges::any_of(set(index), [&](uint32_t state) { return nfa_.is_final(state); });
      return;
    }
    bool is_key = false;
    uint32_t group = KeyGroups::kNone;
    for (const uint32_t state : set(index)) {
      if (!nfa_.is_final(state)) continue;
      const uint32_t own = groups_->of_state[state];
      if (own == Rules::kLeftOut || (own != KeyGroups::kNone && group != KeyGroups::kNone && own != group)) return;
      if (own != KeyGroups::kNone) group = own;
      is_key = true;
    }
    to.is_final = is_key && (group != KeyGroups::kNone || !groups_->only_known);
    to.group = group;
  }

  // Goes over the bytes in ascending order, with the edges that the byte may take.
  Status add_byte_edges() {
    std::array<uint32_t, 257> begins{};  // of the edges from each byte on, once sorted
    std::bitset<257> is_border;          // where the set of edges changes
    for (const ByteEdge& edge : edges_) {
      ++begins[edge.low];
      is_border[edge.low] = is_border[edge.high + 1U] = true;
    }
    uint32_t sum = 0;
    for (uint32_t& begin : begins) begin = std::exchange(sum, sum + begin);
    sorted_.resize(edges_.size());
    for (const ByteEdge& edge : edges_) sorted_[begins[edge.low]++] = edge;  // begins[b]: now of b + 1
    active_.clear();
    const size_t first = dfa_.bytes.size();
    size_t next = 0;
    const auto border_from = [&](size_t byte) {
      while (byte < 256 && !is_border[byte]) ++byte;
      return byte;
    };
    for (size_t low = border_from(0); low < 256;) {
      std::erase_if(active_, [&](const ByteEdge& edge) { return edge.high < low; });
      for (; next < begins[low]; ++next) active_.push_back(sorted_[next]);
      const size_t end = border_from(low + 1);
      MOTE_RETURN_IF_ERROR(budget_.spend(1 + active_.size() / 2));
      if (!active_.empty()) {
        targets_.clear();
        for (const ByteEdge& edge : active_) targets_.push_back(edge.target);
        MOTE_ASSIGN(const uint32_t target, index_of_targets());
        if (target != kNoState) append(first, static_cast<uint8_t>(low), static_cast<uint8_t>(end - 1), target);
      }
      low = end;
    }
    return {};
  }

  void append(size_t first, uint8_t low, uint8_t high, uint32_t target) {
    std::vector<ByteEdge>& to = dfa_.bytes;
    if (to.size() > first && to.back().target == target && to.back().high + 1 == low)
      to.back().high = high;
    else
      to.push_back({low, high, target});
  }

  const Nfa& nfa_;
  Determinizing& shared_;
  WorkBudget& budget_;
  const KeyGroups* groups_;
  HeldBytes held_;
  std::vector<uint32_t> last_seen_;  // of each state of nfa_: the round in which it was met
  uint32_t round_ = 0;
  std::vector<uint32_t> pool_;  // the sets, one behind the other
  std::vector<size_t> begins_;  // of each set, and the end of the last
  std::vector<uint32_t> hashes_;
  std::vector<uint32_t> slots_;  // of a table with open addressing
  std::vector<uint32_t> targets_;
  std::vector<ByteEdge> edges_;
  std::vector<ByteEdge> sorted_;
  std::vector<ByteEdge> active_;
  std::vector<CallEdge> calls_;
  Dfa dfa_;
};

}  // namespace

Result<Dfa> determinize(const Nfa& nfa, Determinizing& shared, const KeyGroups* groups) {
  MOTE_ASSIGN(Dfa dfa, Subsets(nfa, shared, groups).run());
  dfa.states.shrink_to_fit();
  dfa.bytes.shrink_to_fit();
  dfa.calls.shrink_to_fit();
  return dfa;
}

void trim(Dfa& dfa, const std::vector<bool>& is_productive) {
  const size_t count = dfa.states.size();
  std::vector<uint32_t> reached;
  std::vector<bool> is_live(count);
  std::vector<uint32_t> lists(count);  // of the states with an edge into each
  EdgeLists<uint32_t> sources;
  for (uint32_t i = 0; i < count; ++i) {
    const DfaState& state = dfa.states[i];
    for (const ByteEdge& edge : dfa.bytes_of(state)) sources.push(lists[edge.target], i);
    for (const CallEdge& call : dfa.calls_of(state)) {
      if (is_productive[call.rule]) sources.push(lists[call.target], i);
    }
    if (!state.is_final) continue;
    is_live[i] = true;
    reached.push_back(i);
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    sources.for_each(lists[reached[i]], [&](uint32_t source) {
      if (!is_live[source]) reached.push_back(source);
      is_live[source] = true;
    });
  }
  if (count == 0 || !is_live[0]) {
    dfa = Dfa();
    return;
  }
  std::vector<uint32_t> place(count);
  uint32_t num_live = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_live[i]) place[i] = num_live++;
  }
  Dfa kept;
  kept.states.reserve(num_live);
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_live[i]) continue;
    DfaState state = dfa.states[i];
    const auto bytes = dfa.bytes_of(state);
    const auto calls = dfa.calls_of(state);
    state.first_byte = static_cast<uint32_t>(kept.bytes.size());
    for (const ByteEdge& edge : bytes) {
      if (is_live[edge.target]) kept.bytes.push_back({edge.low, edge.high, place[edge.target]});
    }
    state.num_bytes = static_cast<uint32_t>(kept.bytes.size()) - state.first_byte;
    state.first_call = static_cast<uint32_t>(kept.calls.size());
    for (const CallEdge& call : calls) {
      if (is_productive[call.rule] && is_live[call.target]) kept.calls.push_back({call.rule, place[call.target]});
    }
    state.num_calls = static_cast<uint32_t>(kept.calls.size()) - state.first_call;
    kept.states.push_back(state);
  }
  dfa = std::move(kept);
}

}  // namespace mote::constraints
