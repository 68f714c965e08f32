#include "runner/grammars/nfa.h"

#include <algorithm>
#include <map>

#include "runner/grammars/budget.h"
#include "runner/grammars/dfa_product.h"
#include "runner/grammars/utf8_ranges.h"

namespace mote::constraints {
namespace {

Status too_large(const char* what, size_t limit) {
  return {Code::kInvalidArgument,
          format("the grammar is too large: more than %zu %s; give smaller repetitions, lengths or fewer alternatives",
                 limit, what)};
}

// Builds the automaton of one rule. `inlines`: calls are replaced by the called rules, as intersection and difference
// need.
class NfaBuilder {
 public:
  NfaBuilder(const Rules& rules, Budget& budget, bool inlines) : rules_(rules), budget_(budget), inlines_(inlines) {}

  Result<Nfa> build(ExpressionId id) {
    MOTE_ASSIGN(nfa_.start, add_state());
    MOTE_ASSIGN(const uint32_t end, append(id, nfa_.start));
    nfa_.states[end].is_final = true;
    return std::move(nfa_);
  }

 private:
  Result<uint32_t> add_state() {
    MOTE_RETURN_IF_ERROR(budget_.spend_nfa_states(1));
    return nfa_.add_state();
  }

  // Appends an expression behind `from` and returns the state in which its texts end. Adds no edge into `from`.
  Result<uint32_t> append(ExpressionId id, uint32_t from) {
    MOTE_REQUIRE(++depth_ <= 4 * kMaxNesting, Code::kInvalidArgument, "the grammar is nested deeper than %zu levels",
                 kMaxNesting);
    Result<uint32_t> end = append_kind(rules_.expression(id), from);
    --depth_;
    return end;
  }

  Result<uint32_t> append_kind(const Expression& e, uint32_t from) {
    switch (e.kind) {
      case ExpressionKind::kBytes: return append_bytes(e.bytes, from);
      case ExpressionKind::kCharacters: return append_characters(e.characters, from);
      case ExpressionKind::kSequence:
        for (const ExpressionId child : e.children) { MOTE_ASSIGN(from, append(child, from)); }
        return from;
      case ExpressionKind::kChoice: return append_choice(e.children, from);
      case ExpressionKind::kRepeat: return append_repeat(e, from);
      case ExpressionKind::kRule: return append_rule(e.rule, from);
      case ExpressionKind::kIntersection:
      case ExpressionKind::kDifference: return append_product(e, from);
    }
    return Status(Code::kInternal, "an expression of an unknown kind");
  }

  Result<uint32_t> append_bytes(const std::string& text, uint32_t from) {
    for (const char c : text) {
      MOTE_ASSIGN(const uint32_t next, add_state());
      const auto byte = static_cast<uint8_t>(c);
      nfa_.states[from].bytes.push_back({byte, byte, next});
      from = next;
    }
    return from;
  }

  // Sequences that end alike share their last states.
  Result<uint32_t> append_characters(const std::vector<CodePointRange>& ranges, uint32_t from) {
    std::vector<ByteSequence> sequences;
    for (const CodePointRange& range : ranges) append_utf8_sequences(range, sequences);
    MOTE_ASSIGN(const uint32_t end, add_state());
    std::map<std::vector<std::pair<uint8_t, uint8_t>>, uint32_t> before;  // a rest -> the state in front of it
    for (const ByteSequence& sequence : sequences) {
      uint32_t target = end;
      std::vector<std::pair<uint8_t, uint8_t>> rest;
      for (size_t i = sequence.size() - 1; i > 0; --i) {
        rest.emplace_back(sequence[i].low, sequence[i].high);
        const auto [found, is_new] = before.try_emplace(rest, 0);
        if (is_new) {
          MOTE_ASSIGN(found->second, add_state());
          nfa_.states[found->second].bytes.push_back({sequence[i].low, sequence[i].high, target});
        }
        target = found->second;
      }
      nfa_.states[from].bytes.push_back({sequence[0].low, sequence[0].high, target});
    }
    return end;
  }

  Result<uint32_t> append_choice(const std::vector<ExpressionId>& branches, uint32_t from) {
    MOTE_ASSIGN(const uint32_t end, add_state());
    for (const ExpressionId branch : branches) {
      MOTE_ASSIGN(const uint32_t start, add_state());
      nfa_.states[from].empties.push_back(start);
      MOTE_ASSIGN(const uint32_t branch_end, append(branch, start));
      nfa_.states[branch_end].empties.push_back(end);
    }
    return end;
  }

  Result<uint32_t> append_repeat(const Expression& e, uint32_t from) {
    for (uint32_t i = 0; i < e.low; ++i) {
      MOTE_ASSIGN(from, append(e.children[0], from));
      MOTE_RETURN_IF_ERROR(budget_.spend_nfa_states(1));  // a repeated empty text costs too
    }
    MOTE_ASSIGN(const uint32_t end, add_state());
    if (e.high == kUnbounded) {
      MOTE_ASSIGN(const uint32_t loop, add_state());
      nfa_.states[from].empties.push_back(loop);
      MOTE_ASSIGN(const uint32_t again, append(e.children[0], loop));
      nfa_.states[again].empties.push_back(loop);
      nfa_.states[loop].empties.push_back(end);
      return end;
    }
    for (uint32_t i = e.low; i < e.high; ++i) {
      nfa_.states[from].empties.push_back(end);
      MOTE_ASSIGN(const uint32_t part, add_state());
      nfa_.states[from].empties.push_back(part);
      MOTE_ASSIGN(from, append(e.children[0], part));
    }
    nfa_.states[from].empties.push_back(end);
    return end;
  }

  Result<uint32_t> append_rule(RuleId rule, uint32_t from) {
    if (!inlines_) {
      MOTE_ASSIGN(const uint32_t next, add_state());
      nfa_.states[from].calls.push_back({rule, next});
      return next;
    }
    MOTE_REQUIRE(std::find(inlined_.begin(), inlined_.end(), rule) == inlined_.end(), Code::kInvalidArgument,
                 "a part that is intersected with another refers to itself, which only regular parts may not");
    inlined_.push_back(rule);
    Result<uint32_t> end = append(rules_.definition(rule), from);
    inlined_.pop_back();
    return end;
  }

  Result<uint32_t> append_product(const Expression& e, uint32_t from) {
    MOTE_ASSIGN(const Dfa first, determinized(e.children[0]));
    MOTE_ASSIGN(const Dfa second, determinized(e.children[1]));
    const bool is_intersection = e.kind == ExpressionKind::kIntersection;
    MOTE_ASSIGN(const Dfa product,
                is_intersection ? intersect(first, second, budget_) : subtract(first, second, budget_));
    return append_dfa(product, from);
  }

  Result<Dfa> determinized(ExpressionId id) {
    NfaBuilder builder(rules_, budget_, true);
    builder.depth_ = depth_;
    builder.inlined_ = inlined_;
    MOTE_ASSIGN(const Nfa nfa, builder.build(id));
    return determinize(nfa, budget_);
  }

  Result<uint32_t> append_dfa(const Dfa& dfa, uint32_t from) {
    MOTE_ASSIGN(const uint32_t end, add_state());
    MOTE_RETURN_IF_ERROR(budget_.spend_nfa_states(dfa.states.size()));
    const auto base = static_cast<uint32_t>(nfa_.states.size());
    for (const DfaState& state : dfa.states) {
      NfaState& copy = nfa_.states.emplace_back();
      for (const ByteEdge& edge : state.bytes) copy.bytes.push_back({edge.low, edge.high, edge.target + base});
      if (state.is_final) copy.empties.push_back(end);
    }
    if (!dfa.states.empty()) nfa_.states[from].empties.push_back(base);
    return end;
  }

  const Rules& rules_;
  Budget& budget_;
  const bool inlines_;
  Nfa nfa_;
  std::vector<RuleId> inlined_;
  size_t depth_ = 0;
};

// The subset construction: a state of the deterministic automaton stands for a set of states of `nfa`.
class Subsets {
 public:
  Subsets(const Nfa& nfa, Budget& budget) : nfa_(nfa), budget_(budget), is_inside_(nfa.states.size()) {}

  Result<Dfa> run() {
    if (nfa_.states.empty()) return Dfa();
    MOTE_RETURN_IF_ERROR(index_of({nfa_.start}).status());
    for (size_t i = 0; i < sets_.size(); ++i) MOTE_RETURN_IF_ERROR(expand(i));
    return std::move(dfa_);
  }

 private:
  // The states and all others that empty edges lead to from them, ascending.
  std::vector<uint32_t> closure(std::vector<uint32_t> states) {
    for (const uint32_t state : states) is_inside_[state] = true;
    for (size_t i = 0; i < states.size(); ++i) {
      for (const uint32_t next : nfa_.states[states[i]].empties) {
        if (is_inside_[next]) continue;
        is_inside_[next] = true;
        states.push_back(next);
      }
    }
    for (const uint32_t state : states) is_inside_[state] = false;
    std::sort(states.begin(), states.end());
    return states;
  }

  Result<uint32_t> index_of(std::vector<uint32_t> targets) {
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    std::vector<uint32_t> all = closure(std::move(targets));
    MOTE_RETURN_IF_ERROR(budget_.spend_work(all.size()));
    std::erase_if(all, [&](uint32_t state) {  // states with only empty edges add nothing
      const NfaState& from = nfa_.states[state];
      return from.bytes.empty() && from.calls.empty() && !from.is_final;
    });
    const auto [found, is_new] = indices_.try_emplace(std::move(all), static_cast<uint32_t>(sets_.size()));
    if (is_new) {
      MOTE_RETURN_IF_ERROR(budget_.spend_states(1));
      sets_.push_back(&found->first);
      dfa_.states.emplace_back();
    }
    return found->second;
  }

  Status expand(size_t index) {
    const std::vector<uint32_t>& set = *sets_[index];
    std::vector<ByteEdge> edges;
    std::map<RuleId, std::vector<uint32_t>> calls;
    for (const uint32_t state : set) {
      const NfaState& from = nfa_.states[state];
      edges.insert(edges.end(), from.bytes.begin(), from.bytes.end());
      for (const CallEdge& call : from.calls) calls[call.rule].push_back(call.target);
      if (from.is_final) dfa_.states[index].is_final = true;
    }
    MOTE_RETURN_IF_ERROR(add_byte_edges(index, edges));
    for (auto& [rule, targets] : calls) {
      MOTE_ASSIGN(const uint32_t target, index_of(std::move(targets)));
      dfa_.states[index].calls.push_back({rule, target});
    }
    return {};
  }

  Status add_byte_edges(size_t index, const std::vector<ByteEdge>& edges) {
    std::vector<uint32_t> borders;  // where the set of edges changes
    for (const ByteEdge& edge : edges) {
      borders.push_back(edge.low);
      borders.push_back(edge.high + 1U);
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      std::vector<uint32_t> targets;
      for (const ByteEdge& edge : edges) {
        if (edge.low <= borders[i] && edge.high >= borders[i]) targets.push_back(edge.target);
      }
      MOTE_RETURN_IF_ERROR(budget_.spend_work(1 + edges.size() / 8));
      if (targets.empty()) continue;
      MOTE_ASSIGN(const uint32_t target, index_of(std::move(targets)));
      const auto low = static_cast<uint8_t>(borders[i]);
      const auto high = static_cast<uint8_t>(borders[i + 1] - 1);
      std::vector<ByteEdge>& to = dfa_.states[index].bytes;
      if (!to.empty() && to.back().target == target && to.back().high + 1 == low)
        to.back().high = high;
      else
        to.push_back({low, high, target});
    }
    return {};
  }

  const Nfa& nfa_;
  Budget& budget_;
  std::vector<bool> is_inside_;
  std::map<std::vector<uint32_t>, uint32_t> indices_;
  std::vector<const std::vector<uint32_t>*> sets_;
  Dfa dfa_;
};

}  // namespace

uint32_t Nfa::add_state() {
  states.emplace_back();
  return static_cast<uint32_t>(states.size() - 1);
}

Status Budget::spend_nfa_states(size_t count) {
  nfa_states_ += count;
  return nfa_states_ <= kMaxNfaStates ? Status() : too_large("places in its rules", kMaxNfaStates);
}

Status Budget::spend_states(size_t count) {
  states_ += count;
  return states_ <= kMaxStates ? Status() : too_large("states", kMaxStates);
}

Status Budget::spend_work(size_t count) {
  work_ += count;
  return work_ <= kMaxWork ? Status() : too_large("steps of compiling", kMaxWork);
}

Result<Nfa> make_nfa(const Rules& rules, RuleId rule, Budget& budget) {
  return NfaBuilder(rules, budget, false).build(rules.definition(rule));
}

Result<Dfa> determinize(const Nfa& nfa, Budget& budget) { return Subsets(nfa, budget).run(); }

void trim(Dfa& dfa, const std::vector<bool>& is_productive) {
  const size_t count = dfa.states.size();
  std::vector<std::vector<uint32_t>> sources(count);
  std::vector<uint32_t> reached;
  std::vector<bool> is_live(count);
  for (uint32_t i = 0; i < count; ++i) {
    DfaState& state = dfa.states[i];
    std::erase_if(state.calls, [&](const CallEdge& call) { return !is_productive[call.rule]; });
    for (const ByteEdge& edge : state.bytes) sources[edge.target].push_back(i);
    for (const CallEdge& call : state.calls) sources[call.target].push_back(i);
    if (state.is_final) {
      is_live[i] = true;
      reached.push_back(i);
    }
  }
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const uint32_t source : sources[reached[i]]) {
      if (!is_live[source]) reached.push_back(source);
      is_live[source] = true;
    }
  }
  if (count == 0 || !is_live[0]) {
    dfa.states.clear();
    return;
  }
  std::vector<uint32_t> place(count);
  std::vector<DfaState> kept;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_live[i]) continue;
    place[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(dfa.states[i]));
  }
  for (DfaState& state : kept) {
    std::erase_if(state.bytes, [&](const ByteEdge& edge) { return !is_live[edge.target]; });
    std::erase_if(state.calls, [&](const CallEdge& call) { return !is_live[call.target]; });
    for (ByteEdge& edge : state.bytes) edge.target = place[edge.target];
    for (CallEdge& call : state.calls) call.target = place[call.target];
  }
  dfa.states = std::move(kept);
}

}  // namespace mote::constraints
