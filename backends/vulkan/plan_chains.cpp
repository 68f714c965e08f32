// Small dispatches become steps of one: a GPU waits longer between dispatches than it computes them.
#include <algorithm>
#include <optional>
#include <utility>

#include "backends/vulkan/planner.h"

namespace mote::vulkan {
namespace {

// As in chain.comp.
constexpr Shader kSteps[] = {Shader::map,  Shader::reduce,  Shader::softmax, Shader::top,
                             Shader::pick, Shader::scatter, Shader::matmul,  Shader::norm};
constexpr size_t kStepWords = 48, kFirstConstant = 2, kFirstBinding = 5, kFirstWorkgroup = 9, kFirstPushed = 16;
constexpr size_t kMemories = 12, kMostPassed = 16;
constexpr int64_t kMostGroups = 128;  // of a step; where there is much to compute, a shader made for it is faster
constexpr int64_t kMostSerial = 8;    // of a step that a single workgroup does, where else as many would at once

int64_t groups_of(const Dispatch& dispatch) {
  return int64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
}

// What a dispatch does with one of its bindings. begin, end: elements. walk: by what invocation i finds its element,
// the only one that it reads or writes there; empty: otherwise.
struct Access {
  Bound bound{};
  bool is_written = false;
  int64_t begin = 0, end = int64_t{1} << 62;
  std::vector<uint32_t> walk{};
};

// sizes: 4, of invocations   place: an offset and 4 strides
void set_walk(const uint32_t* sizes, const uint32_t* place, Access* access) {
  int64_t count = 1, last = place[0];
  bool is_in_order = true;
  for (size_t i = 4; i-- > 0;) {
    if (sizes[i] > 1 && place[i + 1] != count) is_in_order = false;
    last += (int64_t{sizes[i]} - 1) * place[i + 1];
    count *= sizes[i];
  }
  access->begin = place[0];
  access->end = last + 1;
  access->walk.assign({word(count), place[0]});
  if (is_in_order) return;
  access->walk.insert(access->walk.end(), sizes, sizes + 4);
  access->walk.insert(access->walk.end(), place + 1, place + 5);
}

void set_in_order(int64_t count, Access* access) {
  access->end = count;
  access->walk.assign({word(count), 0});
}

std::vector<Access> accesses_of(const Dispatch& dispatch) {
  std::vector<Access> made;
  const auto element_count = [&] {
    int64_t count = 1;
    for (size_t i = 0; i < 4; ++i) count *= dispatch.push[i];
    return count;
  };
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    const uint32_t* words = dispatch.push.data();
    Access access{dispatch.bindings[i], (dispatch.writes >> i & 1) != 0};
    switch (dispatch.shader) {
      case Shader::map: set_walk(words, words + (i == 3 ? 4 : 9 + 5 * i), &access); break;
      case Shader::pick:
        if (i == 1) set_walk(words, words + 9, &access);
        if (i == 2) set_in_order(element_count(), &access);
        break;
      case Shader::scatter:
        if (i == 0) set_walk(words, words + 4, &access);
        if (i == 3) set_in_order(element_count(), &access);
        break;
      case Shader::matmul:
        if (i == 2) set_in_order(words[4], &access);
        break;
      default: break;
    }
    if (access.bound.kind != Bind::none) made.push_back(std::move(access));
  }
  return made;
}

// Workgroups that go through steps: each makes of every step what the others do not see, or a single one makes all.
struct Strand {
  int64_t groups = 0;
  bool is_serial = false, can_be_serial = false;
};

struct Step {
  Dispatch dispatch;
  std::vector<Access> accesses;
  size_t strand = 0;
};

class Chains {
 public:
  Chains(const Graph& graph, int64_t tokens, Plan* plan) : graph_(graph), tokens_(tokens), plan_(plan) {}

  void draw() {
    for (Dispatch& dispatch : std::exchange(plan_->dispatches, {})) {
      Step step{std::move(dispatch), {}};
      step.accesses = accesses_of(step.dispatch);
      const bool can_be_step = std::ranges::find(kSteps, step.dispatch.shader) != std::end(kSteps) &&
                               groups_of(step.dispatch) <= kMostGroups;
      if (!can_be_step) {
        if (passed_.size() == kMostPassed) end();
        passed_.push_back(std::move(step));
      } else if (!joins(&step)) {
        end();
        joins(&step);
      }
    }
    end();
  }

 private:
  bool is_scratch(const Bound& bound) const {
    return bound.kind == Bind::value && graph_.values[bound.index].kind == fb::ValueKind::scratch;
  }
  // Values in a slot begin where it does.
  bool is_same_memory(const Bound& a, const Bound& b) const {
    if (is_scratch(a) && is_scratch(b)) return graph_.values[a.index].slot == graph_.values[b.index].slot;
    return a.kind == b.kind && a.index == b.index && a.piece == b.piece;
  }
  bool conflict(const Access& a, const Access& b) const {
    return (a.is_written || b.is_written) && is_same_memory(a.bound, b.bound) && a.begin < b.end && b.begin < a.end;
  }
  bool conflict(const Step& a, const Step& b) const {
    return std::ranges::any_of(a.accesses, [&](const Access& one) {
      return std::ranges::any_of(b.accesses, [&](const Access& other) { return conflict(one, other); });
    });
  }
  // Of what they conflict in, an invocation of one sees what the same invocation of the other does.
  bool are_aligned(const Step& a, const Step& b) const {
    return std::ranges::all_of(a.accesses, [&](const Access& one) {
      return std::ranges::all_of(b.accesses, [&](const Access& other) {
        return !conflict(one, other) || (!one.walk.empty() && one.walk == other.walk);
      });
    });
  }

  // Whether it can be done before what was passed, as a step of the chain; or the chain after that, with the step.
  bool joins(Step* step) {
    const auto conflicts = [&](const Step& own) { return [&](const Step& other) { return conflict(own, other); }; };
    if (std::ranges::any_of(passed_, conflicts(*step))) {
      for (const Step& own : steps_) {
        if (std::ranges::any_of(passed_, conflicts(own))) return false;
      }
      for (Step& each : passed_) plan_->dispatches.push_back(std::move(each.dispatch));
      passed_.clear();
    }
    if (!has_room_for(*step) || !has_strand_for(step)) return false;
    for (const Access& access : step->accesses) {
      const auto known = find_memory(access.bound);
      if (known == memories_.end())
        memories_.push_back(access.bound);
      else if (is_scratch(access.bound) && bytes_of(access.bound) > bytes_of(*known))
        *known = access.bound;
    }
    steps_.push_back(std::move(*step));
    return true;
  }

  bool has_strand_for(Step* step) {
    const int64_t groups = groups_of(step->dispatch);
    Strand made{groups, false, groups <= kMostSerial};
    std::vector<size_t> joined;
    for (const Step& own : steps_) {
      if (!conflict(own, *step)) continue;
      const Strand& strand = strands_[own.strand];
      made.is_serial = made.is_serial || strand.is_serial || !are_aligned(own, *step);
      made.can_be_serial = made.can_be_serial && strand.can_be_serial;
      joined.push_back(own.strand);
    }
    if (made.is_serial && !made.can_be_serial) return false;
    step->strand = strands_.size();
    strands_.push_back(made);
    for (Step& own : steps_) {
      if (std::ranges::find(joined, own.strand) != joined.end()) own.strand = step->strand;
    }
    return true;
  }

  std::vector<Bound>::iterator find_memory(const Bound& bound) {
    return std::ranges::find_if(memories_, [&](const Bound& other) { return is_same_memory(bound, other); });
  }
  bool has_room_for(const Step& step) {
    size_t added = 0;
    for (const Access& access : step.accesses) added += find_memory(access.bound) == memories_.end() ? 1 : 0;
    return memories_.size() + added <= kMemories;
  }
  int64_t bytes_of(const Bound& bound) const { return graph_.values[bound.index].bytes.at(tokens_); }

  // Workgroups of strands that steps are in lie side by side. Returns how many there are, and the first of each strand.
  std::pair<int64_t, std::vector<int64_t>> place_strands() const {
    std::vector<int64_t> first(strands_.size(), -1);
    int64_t count = 0;
    for (const Step& step : steps_) {
      if (first[step.strand] >= 0) continue;
      const Strand& strand = strands_[step.strand];
      first[step.strand] = count;
      count += strand.is_serial ? 1 : strand.groups;
    }
    return {count, std::move(first)};
  }

  void add_words(const Step& step, int64_t first, Dispatch* chain) {
    const Dispatch& from = step.dispatch;
    const Strand& strand = strands_[step.strand];
    std::vector<uint32_t> words(kStepWords);
    const auto place = [&](size_t index) { return words.begin() + static_cast<ptrdiff_t>(index); };
    words[0] = word(std::ranges::find(kSteps, from.shader) - kSteps);
    chain->constants[0] |= 1u << words[0];
    words[1] = word(groups_of(from));
    std::ranges::copy(from.constants, place(kFirstConstant));
    words[kFirstWorkgroup] = word(first);
    words[kFirstWorkgroup + 1] = word(strand.is_serial ? 1 : strand.groups);
    std::ranges::copy(from.push, place(kFirstPushed));
    for (size_t i = 0; i < from.bindings.size(); ++i) {
      if (from.bindings[i].kind == Bind::none) continue;
      const auto memory = find_memory(from.bindings[i]) - memories_.begin();
      words[kFirstBinding + i] = word(memory);
      if ((from.writes >> i & 1) != 0) chain->writes |= 2u << memory;
    }
    plan_->steps.insert(plan_->steps.end(), words.begin(), words.end());
    chain->cost.bytes += from.cost.bytes;
    chain->cost.macs += from.cost.macs;
  }

  void end() {
    if (steps_.size() == 1) plan_->dispatches.push_back(std::move(steps_.front().dispatch));
    if (steps_.size() > 1) {
      const auto [count, first] = place_strands();
      Dispatch chain{.shader = Shader::chain, .groups = spread(count), .origin = steps_.front().dispatch.origin};
      chain.constants = {0, word(memories_.size())};  // of which the first grows with the steps
      chain.bindings.assign(1, {Bind::steps});
      chain.bindings.insert(chain.bindings.end(), memories_.begin(), memories_.end());
      chain.bindings.resize(1 + kMemories);
      chain.push = {word(plan_->steps.size() / kStepWords), word(steps_.size())};
      for (const Step& step : steps_) add_words(step, first[step.strand], &chain);
      plan_->dispatches.push_back(std::move(chain));
    }
    for (Step& each : passed_) plan_->dispatches.push_back(std::move(each.dispatch));
    steps_.clear();
    passed_.clear();
    strands_.clear();
    memories_.clear();
  }

  const Graph& graph_;
  const int64_t tokens_;
  Plan* plan_;
  std::vector<Step> steps_;   // of the chain that is drawn
  std::vector<Step> passed_;  // what comes behind it so far
  std::vector<Strand> strands_;
  std::vector<Bound> memories_;
};

}  // namespace

void draw_chains(const Graph& graph, int64_t tokens, Plan* plan) { Chains(graph, tokens, plan).draw(); }

}  // namespace mote::vulkan
