#include "kernels/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "base/parts.h"
#include "kernels/trial.h"

namespace mote {

namespace {

// Constructed on first use: registrations run in no particular order before main. Never destroyed: threads may compute
// while the process exits.
std::vector<const Kernel*>& registry() {
  static std::vector<const Kernel*>& kernels = *new std::vector<const Kernel*>;
  return kernels;
}

// Does the list of names hold this one?
bool holds(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    if (entry == name) return true;
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return false;
}

Status check_pin(std::string_view name, CpuFeatures features) {
  const auto found =
      std::find_if(registry().begin(), registry().end(), [&](const Kernel* k) { return k->name == name; });
  MOTE_REQUIRE(found != registry().end(), Code::kInvalidArgument,
               "MOTE_KERNEL holds '%.*s', which is no kernel of this build: `mote run --kernels` lists them",
               static_cast<int>(name.size()), name.data());
  MOTE_REQUIRE(features.has_all((*found)->needs), Code::kInvalidArgument,
               "MOTE_KERNEL holds '%.*s', which needs %s: this CPU offers %s", static_cast<int>(name.size()),
               name.data(), to_string((*found)->needs).c_str(), to_string(features).c_str());
  return Status();
}

// An error if the build leaves out what would take the format.
Status left_out_kernel(std::string_view role, const WeightKind& format) {
  for (const std::string& part : {std::string(role), "weights." + std::to_string(format.bits)}) {
    if (was_left_out(part)) return left_out(part, Code::kUnsupportedOp);
  }
  return {};
}

std::string_view pinned_kernels() {
  const char* names = std::getenv("MOTE_KERNEL");
  return names == nullptr ? std::string_view() : std::string_view(names);
}

std::mutex choices_mutex;
std::vector<KernelChoice>& choices() {
  static std::vector<KernelChoice>& list = *new std::vector<KernelChoice>;
  return list;
}

// Notes the choice. Returns the reason for it if it is new, else nothing.
std::string remember(const Kernel& kernel, const WeightKind& format, int64_t tokens, const KernelRules& rules,
                     bool was_tried) {
  const std::lock_guard lock(choices_mutex);
  for (KernelChoice& choice : choices()) {
    if (choice.kernel != &kernel || choice.format != format) continue;
    choice.min_tokens = std::min(choice.min_tokens, tokens);
    choice.max_tokens = std::max(choice.max_tokens, tokens);
    return {};
  }
  std::string reason = holds(rules.pinned, kernel.name) ? "MOTE_KERNEL"
                       : was_tried                      ? "the fastest in a trial"
                                                        : "the highest rank with " + to_string(rules.features);
  choices().push_back({&kernel, format, tokens, tokens, reason});
  return reason;
}

constexpr CpuFeatures kOneStreamFetched = CpuFeatures(CpuFeature::kOneStream) | CpuFeature::kFetchedStream;

// The fastest one of `kernel` and of what would be chosen if memory were read fastest in another way or if kSme were
// used; nullptr: there is none to choose from.
const Kernel* try_others(const Kernel& kernel, const WeightKind& format, int64_t tokens, CpuFeatures features,
                         const Trial& trial) {
  static KernelTrials trials(TrialRecord::of_user());
  const CpuFeatures several = features.without(kOneStreamFetched), one = several | CpuFeature::kOneStream;
  const CpuFeatures others[] = {several, one, several | kOneStreamFetched,
                                features | (*cpu_features() & CpuFeature::kSme)};
  const Kernel* best = nullptr;
  for (const CpuFeatures& with : others) {
    const Result<const Kernel*> other = find_kernel(kernel.role, format, tokens, {with, {}});
    if (other.ok() && *other != &kernel && *other != best)
      best = trials.faster(best == nullptr ? kernel : *best, **other, format, trial);
  }
  return best;
}

}  // namespace

std::string describe(const WeightKind& kind) {
  if (kind.bits == 0) return dtype_name(kind.dtype);
  const TileScales& scales = kind.scales;
  std::string text = scales.codebook != nullptr ? "a codebook" : std::to_string(kind.bits) + " bits";
  text += " in groups of " + std::to_string(kind.group_size);
  if (scales.columns != 0) text += " with float16 scales of " + std::to_string(scales.columns);
  if (scales.offset == WeightOffset::kMinimum) text += " and minimums";
  if (scales.offset == WeightOffset::kZero) text += " and zero points";
  return text;
}

void register_kernel(const Kernel* kernel) { registry().push_back(kernel); }

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels = registry();
  std::sort(kernels.begin(), kernels.end(), [](const Kernel* a, const Kernel* b) {
    if (a->role != b->role) return a->role < b->role;
    return a->rank != b->rank ? a->rank > b->rank : a->name < b->name;
  });
  return kernels;
}

Status check_kernels() {
  std::vector<std::string_view> names;
  for (const Kernel* kernel : registry()) names.push_back(kernel->name);
  std::ranges::sort(names);
  const auto repeated = std::ranges::adjacent_find(names);
  MOTE_REQUIRE(repeated == names.end(), Code::kInternal,
               "this build registers the kernel '%.*s' twice: a name must be one kernel's",
               static_cast<int>(repeated->size()), repeated->data());
  return Status();
}

Status check_rules(const KernelRules& rules) {
  for (std::string_view list = rules.pinned; !list.empty();) {
    const std::string_view name = list.substr(0, list.find(','));
    MOTE_RETURN_IF_ERROR(check_pin(name, rules.features));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
  }
  return Status();
}

Result<const Kernel*> find_kernel(std::string_view role, const WeightKind& format, int64_t tokens,
                                  const KernelRules& rules) {
  const Kernel* best = nullptr;
  const auto is_better = [&](const Kernel& a, const Kernel& b) {
    const bool pinned = holds(rules.pinned, a.name);
    return pinned != holds(rules.pinned, b.name) ? pinned : a.rank > b.rank;
  };
  for (const Kernel* kernel : registry()) {
    const bool fits = kernel->role == role && rules.features.has_all(kernel->needs) && tokens >= kernel->min_tokens &&
                      tokens <= kernel->max_tokens && (kernel->takes == nullptr || kernel->takes(format));
    if (fits && (best == nullptr || is_better(*kernel, *best))) best = kernel;
  }
  if (best == nullptr) MOTE_RETURN_IF_ERROR(left_out_kernel(role, format));
  MOTE_REQUIRE(best != nullptr, Code::kUnsupportedOp, "no kernel of this build does %.*s for %s and %lld tokens",
               static_cast<int>(role.size()), role.data(), describe(format).c_str(), static_cast<long long>(tokens));
  return best;
}

Result<const Kernel*> select_kernel(std::string_view role, const WeightKind& format, int64_t tokens,
                                    const Trial* trial) {
  if (!cpu_features().ok()) return cpu_features().status();
  static const bool is_free = pinned_kernels().empty() && std::getenv("MOTE_CPU_FEATURES") == nullptr;
  static const KernelRules rules = {is_free ? cpu_features()->without(CpuFeature::kSme) : *cpu_features(),
                                    pinned_kernels()};
  static const Status unique = check_kernels(), checked = check_rules(rules);
  MOTE_RETURN_IF_ERROR(unique);
  MOTE_RETURN_IF_ERROR(checked);
  MOTE_ASSIGN(const Kernel* kernel, find_kernel(role, format, tokens, rules));
  const bool has_trial = is_free && trial != nullptr && trial->run;
  const Kernel* tried = has_trial ? try_others(*kernel, format, tokens, rules.features, *trial) : nullptr;
  if (tried != nullptr) kernel = tried;
  if (const std::string reason = remember(*kernel, format, tokens, rules, tried != nullptr); !reason.empty()) {
    MOTE_LOG_LINE(kInfo, "%.*s for %s, from %lld tokens on: %.*s (%s)", static_cast<int>(kernel->role.size()),
                  kernel->role.data(), describe(format).c_str(), static_cast<long long>(tokens),
                  static_cast<int>(kernel->name.size()), kernel->name.data(), reason.c_str());
  }
  return kernel;
}

std::vector<KernelChoice> kernel_choices() {
  const std::lock_guard lock(choices_mutex);
  return choices();
}

}  // namespace mote
