// Kernels: variants of an op's inner work, of which the best one that this CPU can run is chosen for each weight
// format.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/machine/cpu_features.h"
#include "kernels/tensor.h"

namespace mote {

struct Trial;

struct WeightKind {
  DType dtype = DType::kFloat32;
  int bits = 0;  // 0: dense
  int64_t group_size = 0;
  TileScales scales;

  static WeightKind of(const Tensor& weight) { return {weight.dtype, weight.bits, weight.group_size, weight.scales}; }
  bool operator==(const WeightKind&) const = default;
};
std::string describe(const WeightKind& kind);  // for messages and logs

struct Kernel {
  std::string_view name;  // what it computes and its instructions: codes_panels_avx512vnni
  std::string_view role;  // the inner work that it does: linear.codes, attention
  CpuFeatures needs = {};
  int rank = 0;  // the fitting kernel of the highest rank is chosen
  int64_t min_tokens = 1;
  int64_t max_tokens = std::numeric_limits<int64_t>::max();
  bool (*takes)(const WeightKind& format) = nullptr;  // nullptr: every format
  const void* functions = nullptr;                    // a struct that the role's header declares
};

// Registration happens before main; everything else is read-only afterwards. `kernel` is never freed. Names are unique
// over all roles, because MOTE_KERNEL holds names; select_kernel refuses a name that came twice.
void register_kernel(const Kernel* kernel);
std::vector<const Kernel*> all_kernels();  // by role, then rank, highest first

// The kernel of the highest rank that takes the format and this many rows of activations and needs only features that
// cpu_features() has; one that MOTE_KERNEL names (a list separated by commas) goes first. Unless MOTE_KERNEL or
// MOTE_CPU_FEATURES is set, `trial` decides where another one would be chosen with kOneStream, kFetchedStream or
// without them, and with kSme, a unit that cores share; if it has no work, kSme is not used. A new answer is logged
// (MOTE_LOG=info). For use before a step, not in it. Thread safety: any thread. Errors: kInvalidArgument if MOTE_KERNEL
// or MOTE_CPU_FEATURES names what does not exist, or MOTE_KERNEL what this CPU cannot run; kUnsupportedOp if none fits;
// kInternal if this build registers a name twice.
Result<const Kernel*> select_kernel(std::string_view role, const WeightKind& format, int64_t tokens,
                                    const Trial* trial = nullptr);

// What select_kernel goes by: what MOTE_CPU_FEATURES leaves of this CPU's features, and MOTE_KERNEL.
struct KernelRules {
  CpuFeatures features;
  std::string_view pinned;
};
// Errors: kInvalidArgument if `pinned` names what does not exist or what needs more than `features`.
Status check_rules(const KernelRules& rules);
// select_kernel by these rules, which passed check_rules. Errors: kUnsupportedOp if none fits.
Result<const Kernel*> find_kernel(std::string_view role, const WeightKind& format, int64_t tokens,
                                  const KernelRules& rules);

// Errors: kInternal naming a kernel that was registered twice.
Status check_kernels();

// The answers of select_kernel so far, in the order in which each was first given.
struct KernelChoice {
  const Kernel* kernel = nullptr;
  WeightKind format;
  int64_t min_tokens = 0;  // the fewest and the most tokens that were asked for
  int64_t max_tokens = 0;
  std::string reason;
};
std::vector<KernelChoice> kernel_choices();

// The functions of the chosen kernel.
template <typename Functions>
Result<const Functions*> select_functions(const WeightKind& format, int64_t tokens, const Trial* trial = nullptr) {
  MOTE_ASSIGN(const Kernel* kernel, select_kernel(Functions::kRole, format, tokens, trial));
  return static_cast<const Functions*>(kernel->functions);
}

struct KernelRegistration {
  [[gnu::always_inline]] explicit KernelRegistration(const Kernel* kernel) { register_kernel(kernel); }
};

// The entry is constant data, so that a file for newer CPUs runs no instruction before main that an older CPU lacks.
#define MOTE_REGISTER_KERNEL(...)                                                         \
  static constinit const ::mote::Kernel MOTE_CONCAT(mote_kernel_, __LINE__){__VA_ARGS__}; \
  static const ::mote::KernelRegistration MOTE_CONCAT(mote_kernel_registration_,          \
                                                      __LINE__)(&MOTE_CONCAT(mote_kernel_, __LINE__))

}  // namespace mote
