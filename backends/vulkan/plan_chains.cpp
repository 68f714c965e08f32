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
constexpr size_t kKinds = 18;  // of the constants of shaders of chains: kinds of steps, then how many memories
constexpr int64_t kSharedOfSteps = 2048;  // bytes, at most
// quantize.comp, and the shaders that do the same behind a chain.
constexpr size_t kFirstOfRow = 2, kRoundedAt = 8, kRoundedWords = 5, kNumOutputs = 3;
// float_product.comp, and the shader that does a chain behind it.
constexpr size_t kCodebook = 12, kPairs = 13, kEnded = 12, kMadeByProduct = 4;
// Buffers that these two see.
constexpr uint32_t kSeenOfRounding = 19, kSeenOfProduct = 18;
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
  Chains(const Graph& graph, int64_t tokens, const VkPhysicalDeviceLimits& limits, Plan* plan)
      : graph_(graph), tokens_(tokens), limits_(limits), plan_(plan) {}

  void draw() {
    for (Dispatch& dispatch : std::exchange(plan_->dispatches, {})) {
      Step step{std::move(dispatch), {}};
      step.accesses = accesses_of(step.dispatch);
      const bool can_be_step = std::ranges::find(kSteps, step.dispatch.shader) != std::end(kSteps) &&
                               groups_of(step.dispatch) <= kMostGroups;
      if (step.dispatch.shader == Shader::quantize && is_rounded_by_last(step)) {
        end(&step.dispatch);
      } else if (!can_be_step) {
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

  // Whether it can be done before what was passed, or the chain after that.
  bool comes_before_others(const Step& step) {
    const auto conflicts = [&](const Step& own) { return [&](const Step& other) { return conflict(own, other); }; };
    if (std::ranges::none_of(passed_, conflicts(step))) return true;
    for (const Step& own : steps_) {
      if (std::ranges::any_of(passed_, conflicts(own))) return false;
    }
    for (Step& each : passed_) plan_->dispatches.push_back(std::move(each.dispatch));
    passed_.clear();
    return true;
  }

  // Whether shared memory has room for the row too.
  bool can_keep(const Dispatch& rounding) const {
    const int64_t words = int64_t{rounding.constants[kKept]} + 2 * kLanes;
    return 4 * words + kSharedOfSteps <= int64_t{limits_.maxComputeSharedMemorySize};
  }

  // Whether the last workgroup of the chain can round the row that a step made: its codes go to other memory.
  bool is_rounded_by_last(const Step& step) {
    const Dispatch& dispatch = step.dispatch;
    const bool is_of_one = dispatch.push[0] == 1 && groups_of(dispatch) == 1 && dispatch.constants[0] == 0;
    const bool fits = can_keep(dispatch) || dispatch.constants[kIsRotated] == 0;
    if (!is_of_one || !fits || limits_.maxPerStageDescriptorStorageBuffers < kSeenOfRounding) return false;
    const auto is_known = [&](const Bound& bound) { return find_memory(bound) != memories_.end(); };
    const auto& bindings = dispatch.bindings;
    const auto makes_row = [&](const Step& own) {
      return std::ranges::any_of(own.accesses, [&](const Access& access) {
        return access.is_written && is_same_memory(access.bound, bindings[0]);
      });
    };
    return std::ranges::any_of(steps_, makes_row) && std::none_of(bindings.begin() + 1, bindings.end(), is_known) &&
           comes_before_others(step);
  }

  // Whether the last workgroup of the product before the chain can do all of it.
  bool is_done_by_product() {
    if (plan_->dispatches.empty() || limits_.maxPerStageDescriptorStorageBuffers < kSeenOfProduct) return false;
    const Dispatch& product = plan_->dispatches.back();
    if (product.shader != Shader::float_product) return false;
    const std::vector<uint32_t>& push = product.push;
    const bool is_of_one = push[1] == 1 && push[3] == 0 && push[2] == push[4];
    if (!is_of_one || product.constants[kCodebook] != 0 || product.constants[kPairs] != 0) return false;
    if (std::ranges::any_of(strands_, [](const Strand& strand) { return !strand.can_be_serial; })) return false;
    const auto y = find_memory(product.bindings[kMadeByProduct]);
    if (y == memories_.end()) return false;
    const auto is_read_alone = [&](const Bound& bound) { return find_memory(bound) == memories_.end(); };
    if (!std::all_of(product.bindings.begin(), product.bindings.begin() + kMadeByProduct, is_read_alone)) return false;
    if (bytes_of(product.bindings[kMadeByProduct]) > bytes_of(*y)) *y = product.bindings[kMadeByProduct];
    std::iter_swap(y, memories_.begin());
    return true;
  }

  // Whether it becomes a step of the chain.
  bool joins(Step* step) {
    if (!comes_before_others(*step)) return false;
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

  // workgroups: the first one that does the step, and how many do
  void add_words(const Step& step, std::pair<int64_t, int64_t> workgroups, Dispatch* chain) {
    const Dispatch& from = step.dispatch;
    std::vector<uint32_t> words(kStepWords);
    const auto place = [&](size_t index) { return words.begin() + static_cast<ptrdiff_t>(index); };
    words[0] = word(std::ranges::find(kSteps, from.shader) - kSteps);
    chain->constants[kKinds] |= 1u << words[0];
    words[1] = word(groups_of(from));
    std::ranges::copy(from.constants, place(kFirstConstant));
    words[kFirstWorkgroup] = word(workgroups.first);
    words[kFirstWorkgroup + 1] = word(workgroups.second);
    std::ranges::copy(from.push, place(kFirstPushed));
    const size_t first = chain->bindings.size() - kMemories;
    for (size_t i = 0; i < from.bindings.size(); ++i) {
      if (from.bindings[i].kind == Bind::none) continue;
      const auto memory = find_memory(from.bindings[i]) - memories_.begin();
      words[kFirstBinding + i] = word(memory);
      if ((from.writes >> i & 1) != 0) chain->writes |= 1u << (first + static_cast<size_t>(memory));
    }
    plan_->steps.insert(plan_->steps.end(), words.begin(), words.end());
    chain->cost.bytes += from.cost.bytes;
    chain->cost.macs += from.cost.macs;
  }

  // What a shader sees of a chain, and its steps.
  void add_steps(Dispatch* chain, bool is_alone) {
    const auto [count, first] = place_strands();
    chain->constants.resize(kKinds + 2);
    chain->constants[kKinds + 1] = word(memories_.size());
    for (const uint32_t each : {word(plan_->steps.size() / kStepWords), word(steps_.size())})
      chain->push.push_back(each);
    chain->bindings.push_back({Bind::steps});
    chain->bindings.insert(chain->bindings.end(), memories_.begin(), memories_.end());
    chain->bindings.resize(chain->bindings.size() + kMemories - memories_.size());
    for (const Step& step : steps_) {
      const Strand& strand = strands_[step.strand];
      const int64_t groups = strand.is_serial ? 1 : strand.groups;
      add_words(step, is_alone ? std::pair<int64_t, int64_t>(0, 1) : std::pair(first[step.strand], groups), chain);
    }
    if (!is_alone) chain->groups = spread(count);
  }

  // As is_rounded_by_last() found that it can be.
  void add_rounding(const Dispatch& rounding, Dispatch* chain) {
    chain->shader = Shader::chain_rounds;
    chain->constants.insert(chain->constants.end(), rounding.constants.begin() + kRoundingConstants,
                            rounding.constants.end());
    uint32_t* const constants = chain->constants.data();
    constants[kLanesOfRounding] = kLanes;
    if (!can_keep(rounding)) constants[kKept] = 0;
    chain->push.push_back(chain->groups[0] * chain->groups[1]);
    chain->push.push_back(word(find_memory(rounding.bindings[0]) - memories_.begin()));
    chain->push.push_back(rounding.push[kFirstOfRow]);
    const auto words = rounding.push.begin() + kRoundedAt;
    chain->push.insert(chain->push.end(), words, words + kRoundedWords);
    constexpr size_t kWeightAndOutputs = 1 + kNumOutputs + 1;  // and memory for a turned row
    for (size_t i = 1; i <= kWeightAndOutputs; ++i) {
      if (i > 1) chain->writes |= 1u << chain->bindings.size();
      chain->bindings.push_back(rounding.bindings[i]);
    }
    chain->writes |= 1u << chain->bindings.size();
    chain->bindings.push_back(counters(1, plan_));
    chain->cost.bytes += rounding.cost.bytes;
  }

  void add_to_product() {
    Dispatch& product = plan_->dispatches.back();
    product.shader = Shader::float_product_chain;
    product.bindings.resize(kMadeByProduct);
    product.bindings.push_back(counters(1, plan_));
    product.push.resize(kEnded);
    product.push.push_back(product.groups[0]);
    add_steps(&product, true);
    product.writes |= 1u << (product.bindings.size() - kMemories);  // the first memory is what the product makes
  }

  // rounding: of a row, by the last workgroup; nullptr: there is none
  void add_chain(const Dispatch* rounding) {
    Dispatch chain{.shader = Shader::chain, .origin = steps_.front().dispatch.origin};
    add_steps(&chain, false);
    if (rounding != nullptr) add_rounding(*rounding, &chain);
    plan_->dispatches.push_back(std::move(chain));
  }

  void end(const Dispatch* rounding = nullptr) {
    if (!steps_.empty() && rounding == nullptr && is_done_by_product()) {
      add_to_product();
    } else if (steps_.size() == 1 && rounding == nullptr) {
      plan_->dispatches.push_back(std::move(steps_.front().dispatch));
    } else if (!steps_.empty()) {
      add_chain(rounding);
    }
    for (Step& each : passed_) plan_->dispatches.push_back(std::move(each.dispatch));
    steps_.clear();
    passed_.clear();
    strands_.clear();
    memories_.clear();
  }

  const Graph& graph_;
  const int64_t tokens_;
  const VkPhysicalDeviceLimits& limits_;
  Plan* plan_;
  std::vector<Step> steps_;   // of the chain that is drawn
  std::vector<Step> passed_;  // what comes behind it so far
  std::vector<Strand> strands_;
  std::vector<Bound> memories_;
};

}  // namespace

void draw_chains(const Graph& graph, int64_t tokens, const VkPhysicalDeviceLimits& limits, Plan* plan) {
  Chains(graph, tokens, limits, plan).draw();
}

}  // namespace mote::vulkan
