#include "kernels/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/log.h"

namespace mote {

namespace {

// Constructed on first use: registrations run in no particular order before main.
std::vector<const Kernel*>& registry() {
  static std::vector<const Kernel*> kernels;
  return kernels;
}

std::string describe(const WeightKind& format) {
  if (format.bits == 0) return dtype_name(format.dtype);
  return std::to_string(format.bits) + " bits in groups of " + std::to_string(format.group_size);
}

// Does the list of names in MOTE_KERNEL hold this one?
bool is_pinned(std::string_view name) {
  static const std::string pinned = [] {
    const char* names = std::getenv("MOTE_KERNEL");
    return names == nullptr ? std::string() : "," + std::string(names) + ",";
  }();
  return pinned.find("," + std::string(name) + ",") != std::string::npos;
}

// Every name in MOTE_KERNEL is a kernel that this CPU can run.
Status check_pins(CpuFeatures features) {
  const char* names = std::getenv("MOTE_KERNEL");
  std::string_view text = names == nullptr ? "" : names;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const auto found = std::find_if(registry().begin(), registry().end(), [&](const Kernel* k) { return k->name == name; });
    MOTE_REQUIRE(found != registry().end(), Code::kInvalidArgument,
                 "MOTE_KERNEL holds '%.*s', which is no kernel of this build: `mote run --kernels` lists them",
                 static_cast<int>(name.size()), name.data());
    MOTE_REQUIRE(features.has_all((*found)->needs), Code::kInvalidArgument,
                 "MOTE_KERNEL holds '%.*s', which needs %s: this CPU offers %s", static_cast<int>(name.size()), name.data(),
                 to_string((*found)->needs).c_str(), to_string(features).c_str());
  }
  return Status();
}

bool is_better(const Kernel& a, const Kernel& b) {
  const bool pinned = is_pinned(a.name);
  return pinned != is_pinned(b.name) ? pinned : a.rank > b.rank;
}

std::mutex choices_mutex;
std::vector<KernelChoice>& choices() {
  static std::vector<KernelChoice> list;
  return list;
}

void remember(const Kernel& kernel, const WeightKind& format, int64_t tokens, const std::string& reason) {
  const std::lock_guard lock(choices_mutex);
  for (KernelChoice& choice : choices()) {
    if (choice.kernel != &kernel || choice.format != format) continue;
    choice.min_tokens = std::min(choice.min_tokens, tokens);
    choice.max_tokens = std::max(choice.max_tokens, tokens);
    return;
  }
  choices().push_back({&kernel, format, tokens, tokens, reason});
  MOTE_LOG_LINE(kInfo, "%.*s for %s, from %lld tokens on: %.*s (%s)", static_cast<int>(kernel.role.size()), kernel.role.data(),
                describe(format).c_str(), static_cast<long long>(tokens), static_cast<int>(kernel.name.size()),
                kernel.name.data(), reason.c_str());
}

}  // namespace

void register_kernel(const Kernel* kernel) { registry().push_back(kernel); }

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels = registry();
  std::sort(kernels.begin(), kernels.end(), [](const Kernel* a, const Kernel* b) {
    if (a->role != b->role) return a->role < b->role;
    return a->rank != b->rank ? a->rank > b->rank : a->name < b->name;
  });
  return kernels;
}

Result<const Kernel*> select_kernel(std::string_view role, const WeightKind& format, int64_t tokens) {
  if (!cpu_features().ok()) return cpu_features().status();
  const CpuFeatures features = *cpu_features();
  static const Status pins = check_pins(features);
  MOTE_RETURN_IF_ERROR(pins);
  const Kernel* best = nullptr;
  for (const Kernel* kernel : registry()) {
    const bool fits = kernel->role == role && features.has_all(kernel->needs) && tokens >= kernel->min_tokens &&
                      tokens <= kernel->max_tokens && (kernel->takes == nullptr || kernel->takes(format));
    if (fits && (best == nullptr || is_better(*kernel, *best))) best = kernel;
  }
  MOTE_REQUIRE(best != nullptr, Code::kUnsupportedOp, "no kernel of this build does %.*s for %s and %lld tokens",
               static_cast<int>(role.size()), role.data(), describe(format).c_str(), static_cast<long long>(tokens));
  remember(*best, format, tokens,
           is_pinned(best->name) ? "MOTE_KERNEL" : "the highest rank with " + to_string(features));
  return best;
}

std::vector<KernelChoice> kernel_choices() {
  const std::lock_guard lock(choices_mutex);
  return choices();
}

}  // namespace mote
