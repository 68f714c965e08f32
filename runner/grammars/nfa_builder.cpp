#include "runner/grammars/nfa_builder.h"

#include <algorithm>
#include <bit>

#include "runner/grammars/dfa_product.h"
#include "runner/grammars/utf8_ranges.h"

namespace mote::constraints {
namespace {

constexpr size_t kMaxKnownGraphs = 256;

CharacterGraph make_graph(const std::vector<CodePointRange>& ranges, WorkBudget& budget) {
  CharacterGraph graph;
  std::unordered_map<uint64_t, uint32_t> before;  // of a byte and the state behind it
  std::vector<ByteSequence> sequences;
  for (const CodePointRange& range : ranges) {
    sequences.clear();
    append_utf8_sequences(range, sequences);
    budget.count(8 * sequences.size());
    for (const ByteSequence& sequence : sequences) {
      uint32_t target = 1;
      for (size_t i = sequence.size() - 1; i > 0; --i) {
        const auto [low, high] = sequence[i];
        const uint64_t key = uint64_t{target} << 16 | uint64_t{low} << 8 | high;
        const auto [found, is_new] = before.try_emplace(key, graph.num_states);
        if (is_new) graph.edges.push_back({graph.num_states++, target, low, high});
        target = found->second;
      }
      graph.edges.push_back({0, target, sequence[0].low, sequence[0].high});
    }
    if (budget.is_spent()) break;
  }
  return graph;
}

// Builds the automaton of one rule. `inlines`: calls are replaced by the called rules, as intersection and difference
// need.
class NfaBuilder {
 public:
  NfaBuilder(Building& building, const std::vector<bool>& is_nullable, bool inlines)
      : rules_(building.rules),
        building_(building),
        budget_(building.determinizing.budget),
        is_nullable_(is_nullable),
        inlines_(inlines),
        held_(budget_) {}

  Result<Nfa> build(ExpressionId id) {
    MOTE_ASSIGN(nfa_.start, add_state());
    MOTE_ASSIGN(const uint32_t end, append(id, nfa_.start));
    nfa_.set_final(end);
    return std::move(nfa_);
  }

 private:
  Result<uint32_t> add_state() {
    MOTE_RETURN_IF_ERROR(budget_.spend(1));
    if (nfa_.num_states() % 256 == 0) held_.set(nfa_.num_bytes());
    return nfa_.add_state();
  }

  // Appends an expression behind `from` and returns the state in which its texts end. Adds no edge into `from`. What it
  // calls is not inlined, because it is as deep as expressions are nested, in threads with little room.
  [[gnu::noinline]] Result<uint32_t> append(ExpressionId id, uint32_t from) {
    MOTE_RETURN_IF_ERROR(enter());
    Result<uint32_t> end = append_kind(rules_.expression(id), from);
    --depth_;
    return end;
  }

  [[gnu::noinline]] Status enter() {
    MOTE_REQUIRE(++depth_ <= 4 * kMaxNesting, Code::kInvalidArgument, "the grammar is nested deeper than %zu levels",
                 kMaxNesting);
    return budget_.spend(1);  // for nothing, too
  }

  [[gnu::always_inline]] Result<uint32_t> append_kind(const Expression& e, uint32_t from) {
    switch (e.kind) {
      case ExpressionKind::kBytes: return append_bytes(e.bytes, from);
      case ExpressionKind::kTexts: return append_texts_of(e, from);
      case ExpressionKind::kCharacters: return append_characters(e.characters, from);
      case ExpressionKind::kSequence: return append_sequence(e.children, from);
      case ExpressionKind::kChoice: return append_choice(e.children, from);
      case ExpressionKind::kRepeat: return append_repeat(e, from);
      case ExpressionKind::kRule: return append_rule(e.index, from);
      case ExpressionKind::kIntersection:
      case ExpressionKind::kDifference: return append_product(e, from);
      case ExpressionKind::kKeyed: return append_keyed(e, from);
    }
    return Status(Code::kInternal, "an expression of an unknown kind");
  }

  [[gnu::noinline]] Result<uint32_t> append_sequence(const std::vector<ExpressionId>& parts, uint32_t from) {
    for (const ExpressionId part : parts) { MOTE_ASSIGN(from, append(part, from)); }
    return from;
  }

  Result<uint32_t> append_byte(uint32_t from, uint8_t byte) {
    MOTE_ASSIGN(const uint32_t next, add_state());
    nfa_.add_bytes(from, byte, byte, next);
    return next;
  }

  [[gnu::noinline]] Result<uint32_t> append_bytes(const std::string& text, uint32_t from) {
    for (const char c : text) { MOTE_ASSIGN(from, append_byte(from, static_cast<uint8_t>(c))); }
    return from;
  }

  static void add_texts(const Expression& e, std::vector<std::string_view>& texts) {
    uint32_t begin = 0;
    for (const uint32_t end : e.children) {
      texts.push_back(std::string_view(e.bytes).substr(begin, end - begin));
      begin = end;
    }
  }

  [[gnu::noinline]] Result<uint32_t> append_texts_of(const Expression& e, uint32_t from) {
    std::vector<std::string_view> texts;
    add_texts(e, texts);
    MOTE_ASSIGN(const uint32_t end, add_state());
    MOTE_RETURN_IF_ERROR(append_texts(std::move(texts), from, end));
    return end;
  }

  // A tree: texts that begin alike share their beginning.
  [[gnu::noinline]] Status append_texts(std::vector<std::string_view> texts, uint32_t from, uint32_t to) {
    HeldBytes held(budget_);
    held.add(texts.capacity() * sizeof(std::string_view));
    MOTE_RETURN_IF_ERROR(budget_.spend(texts.size() * static_cast<size_t>(std::bit_width(texts.size())) / 2));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    std::vector<uint32_t> path = {from};
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string_view text = texts[i];
      const std::string_view before = i > 0 ? texts[i - 1] : std::string_view();
      const auto shared = static_cast<size_t>(
          std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
      path.resize(shared + 1);
      const bool goes_on = i + 1 < texts.size() && texts[i + 1].starts_with(text);
      const size_t num_states = text.size() - (goes_on || text.empty() ? 0 : 1);
      for (size_t j = shared; j < num_states; ++j) {
        MOTE_ASSIGN(const uint32_t next, append_byte(path.back(), static_cast<uint8_t>(text[j])));
        path.push_back(next);
      }
      if (num_states == text.size()) {
        nfa_.add_empty(path[text.size()], to);
      } else {
        const auto last = static_cast<uint8_t>(text.back());
        nfa_.add_bytes(path[num_states], last, last, to);
      }
    }
    return {};
  }

  [[gnu::noinline]] Result<uint32_t> append_characters(const std::vector<CodePointRange>& ranges, uint32_t from) {
    const CharacterGraph& graph = building_.characters.of(ranges, budget_);
    MOTE_RETURN_IF_ERROR(budget_.spend(graph.edges.size() / 2));
    const auto base = static_cast<uint32_t>(nfa_.num_states());
    for (uint32_t i = 1; i < graph.num_states; ++i) MOTE_RETURN_IF_ERROR(add_state().status());
    for (const CharacterGraph::Edge& edge : graph.edges)
      nfa_.add_bytes(edge.from == 0 ? from : base + edge.from - 1, edge.low, edge.high, base + edge.to - 1);
    return base;
  }

  [[gnu::noinline]] Result<uint32_t> append_choice(const std::vector<ExpressionId>& branches, uint32_t from) {
    MOTE_ASSIGN(const uint32_t end, append_texts_among(branches, from));
    for (const ExpressionId branch : branches) {
      if (is_text(branch)) continue;
      MOTE_ASSIGN(const uint32_t start, add_state());
      nfa_.add_empty(from, start);
      MOTE_ASSIGN(const uint32_t branch_end, append(branch, start));
      nfa_.add_empty(branch_end, end);
    }
    return end;
  }

  bool is_text(ExpressionId id) const {
    const ExpressionKind kind = rules_.expression(id).kind;
    return kind == ExpressionKind::kBytes || kind == ExpressionKind::kTexts;
  }

  [[gnu::noinline]] Result<uint32_t> append_texts_among(const std::vector<ExpressionId>& branches, uint32_t from) {
    MOTE_RETURN_IF_ERROR(budget_.spend(branches.size()));
    MOTE_ASSIGN(const uint32_t end, add_state());
    std::vector<std::string_view> texts;
    for (const ExpressionId branch : branches) {
      if (!is_text(branch)) continue;
      const Expression& e = rules_.expression(branch);
      if (e.kind == ExpressionKind::kBytes)
        texts.push_back(e.bytes);
      else
        add_texts(e, texts);
    }
    MOTE_RETURN_IF_ERROR(append_texts(std::move(texts), from, end));
    return end;
  }

  [[gnu::noinline]] Result<uint32_t> append_repeat(const Expression& e, uint32_t from) {
    for (uint32_t i = 0; i < e.low; ++i) { MOTE_ASSIGN(from, append(e.children[0], from)); }
    MOTE_ASSIGN(const uint32_t end, add_state());
    if (e.high == kUnbounded) {
      MOTE_ASSIGN(const uint32_t loop, add_state());
      nfa_.add_empty(from, loop);
      MOTE_ASSIGN(const uint32_t again, append(e.children[0], loop));
      nfa_.add_empty(again, loop);
      nfa_.add_empty(loop, end);
      return end;
    }
    for (uint32_t i = e.low; i < e.high; ++i) {
      nfa_.add_empty(from, end);
      MOTE_ASSIGN(const uint32_t part, add_state());
      nfa_.add_empty(from, part);
      MOTE_ASSIGN(from, append(e.children[0], part));
    }
    nfa_.add_empty(from, end);
    return end;
  }

  [[gnu::noinline]] Result<uint32_t> append_rule(RuleId rule, uint32_t from) {
    if (!inlines_) {
      MOTE_ASSIGN(const uint32_t next, add_state());
      nfa_.add_call(from, rule, next);
      if (is_nullable_[rule]) nfa_.add_empty(from, next);
      return next;
    }
    MOTE_REQUIRE(std::find(inlined_.begin(), inlined_.end(), rule) == inlined_.end(), Code::kInvalidArgument,
                 "a part that is intersected with another refers to itself, which only regular parts may not");
    inlined_.push_back(rule);
    Result<uint32_t> end = append(rules_.definition(rule), from);
    inlined_.pop_back();
    return end;
  }

  [[gnu::noinline]] Result<uint32_t> append_product(const Expression& e, uint32_t from) {
    MOTE_ASSIGN(const Dfa dfa, product(e));
    MOTE_ASSIGN(const uint32_t end, add_state());
    MOTE_RETURN_IF_ERROR(append_dfa(dfa, from, {&end, 1}));
    return end;
  }

  // A chain of intersections is as deep as it is long, so it is followed without recursion.
  Result<Dfa> product(const Expression& e) {
    Determinizing& shared = building_.determinizing;
    std::vector<ExpressionId> others;
    ExpressionId innermost = e.children[0];
    for (; rules_.expression(innermost).kind == e.kind && e.kind == ExpressionKind::kIntersection;
         innermost = rules_.expression(innermost).children[0])
      others.push_back(rules_.expression(innermost).children[1]);
    MOTE_ASSIGN(Dfa dfa, determinized(innermost));
    for (; !others.empty(); others.pop_back()) {
      MOTE_ASSIGN(const Dfa other, determinized(others.back()));
      MOTE_ASSIGN(dfa, intersect(dfa, other, shared));
    }
    MOTE_ASSIGN(const Dfa last, determinized(e.children[1]));
    return e.kind == ExpressionKind::kIntersection ? intersect(dfa, last, shared) : subtract(dfa, last, shared);
  }

  Result<Dfa> determinized(ExpressionId id) {
    NfaBuilder builder(building_, is_nullable_, true);
    builder.depth_ = depth_;
    builder.inlined_ = inlined_;
    MOTE_ASSIGN(const Nfa nfa, builder.build(id));
    return determinize(nfa, building_.determinizing);
  }

  // ends: where the texts of each group end; of the last, those of none
  Status append_dfa(const Dfa& dfa, uint32_t from, std::span<const uint32_t> ends) {
    const auto base = static_cast<uint32_t>(nfa_.num_states());
    MOTE_RETURN_IF_ERROR(budget_.spend(dfa.bytes.size() / 2));
    for (size_t i = 0; i < dfa.states.size(); ++i) MOTE_RETURN_IF_ERROR(add_state().status());
    for (uint32_t i = 0; i < dfa.states.size(); ++i) {
      const DfaState& state = dfa.states[i];
      for (const ByteEdge& edge : dfa.bytes_of(state))
        nfa_.add_bytes(base + i, edge.low, edge.high, base + edge.target);
      if (state.is_final) nfa_.add_empty(base + i, ends[std::min<size_t>(state.group, ends.size() - 1)]);
    }
    if (!dfa.states.empty()) nfa_.add_empty(from, base);
    return {};
  }

  [[gnu::noinline]] Result<uint32_t> append_keyed(const Expression& e, uint32_t from) {
    NfaBuilder builder(building_, is_nullable_, true);
    builder.depth_ = depth_;
    const size_t num_behind = e.children.size() - 1;
    KeyGroups groups;
    groups.only_known = num_behind == e.low;
    MOTE_ASSIGN(const Nfa keys, builder.build_keys(rules_.keys(e), e.children.back(), groups));
    MOTE_ASSIGN(Dfa dfa, determinize(keys, building_.determinizing, &groups));
    trim(dfa, {});
    MOTE_ASSIGN(const uint32_t end, add_state());
    std::vector<uint32_t> ends(num_behind);
    for (size_t i = 0; i < num_behind; ++i) {
      MOTE_ASSIGN(ends[i], add_state());
      MOTE_ASSIGN(const uint32_t last, append(e.children[i], ends[i]));
      nfa_.add_empty(last, end);
    }
    MOTE_RETURN_IF_ERROR(append_dfa(dfa, from, ends));
    return end;
  }

  // All patterns side by side. Those that may begin anywhere share the characters in front of them.
  Result<Nfa> build_keys(std::span<const KeyPattern> patterns, ExpressionId any, KeyGroups& groups) {
    const auto mark = [&](uint32_t group) { groups.of_state.resize(nfa_.num_states(), group); };
    const auto loop_behind = [&](uint32_t state) -> Status {
      MOTE_ASSIGN(const uint32_t again, append(any, state));
      nfa_.add_empty(again, state);
      return {};
    };
    MOTE_ASSIGN(nfa_.start, add_state());
    MOTE_ASSIGN(const uint32_t anywhere, add_state());
    nfa_.add_empty(nfa_.start, anywhere);
    if (!groups.only_known) nfa_.set_final(anywhere);
    MOTE_RETURN_IF_ERROR(loop_behind(anywhere));
    mark(KeyGroups::kNone);
    for (const KeyPattern& pattern : patterns) {
      MOTE_ASSIGN(const uint32_t start, add_state());
      nfa_.add_empty(pattern.is_open_before ? anywhere : nfa_.start, start);
      MOTE_ASSIGN(const uint32_t end, append(pattern.body, start));
      MOTE_ASSIGN(const uint32_t last, add_state());
      nfa_.add_empty(end, last);
      nfa_.set_final(last);
      groups.end_of.resize(last, KeyGroups::kNone);
      if (pattern.is_open_behind) MOTE_RETURN_IF_ERROR(loop_behind(last));
      groups.end_of.resize(nfa_.num_states(), pattern.is_open_behind ? last : KeyGroups::kNone);
      mark(pattern.group);
    }
    held_.add(nfa_.num_states() * 2 * sizeof(uint32_t));
    groups.end_of.resize(nfa_.num_states(), KeyGroups::kNone);
    return std::move(nfa_);
  }

  const Rules& rules_;
  Building& building_;
  WorkBudget& budget_;
  const std::vector<bool>& is_nullable_;
  const bool inlines_;
  HeldBytes held_;
  Nfa nfa_;
  std::vector<RuleId> inlined_;
  size_t depth_ = 0;
};

}  // namespace

size_t CharacterGraphs::Hash::operator()(const std::vector<CodePointRange>& ranges) const {
  uint64_t hash = ranges.size();
  for (const CodePointRange& range : ranges) {
    hash = (hash ^ (uint64_t{range.low} << 32 | range.high)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

const CharacterGraph& CharacterGraphs::of(const std::vector<CodePointRange>& ranges, WorkBudget& budget) {
  budget.count(ranges.size() / 2);
  const auto found = known_.find(ranges);
  if (found != known_.end()) return found->second;
  if (known_.size() >= kMaxKnownGraphs) known_.clear();
  return known_.emplace(ranges, make_graph(ranges, budget)).first->second;
}

Result<Nfa> make_nfa(RuleId rule, const std::vector<bool>& is_nullable, Building& building) {
  return NfaBuilder(building, is_nullable, false).build(building.rules.definition(rule));
}

}  // namespace mote::constraints
