#include "runner/program/machine.h"

#include <limits>

#include "base/json.h"
#include "base/parts.h"
#include "kernels/kernel.h"
#include "runner/program/cpu_count.h"
#include "runner/program/cpus.h"
#include "runner/program/thread_pool.h"

namespace mote {
namespace {

using Json = JsonText;

Json tokens(int64_t most) { return most == std::numeric_limits<int64_t>::max() ? Json(nullptr) : Json(most); }

Json describe(const Kernel& kernel, CpuFeatures available) {
  return {{"role", kernel.role},
          {"name", kernel.name},
          {"needs", to_string(kernel.needs)},
          {"rank", kernel.rank},
          {"min_tokens", kernel.min_tokens},
          {"max_tokens", tokens(kernel.max_tokens)},
          {"runs_here", available.has_all(kernel.needs)}};
}

Json describe(const KernelChoice& choice) {
  const WeightKind& kind = choice.format;
  const Json weights = kind.bits == 0
                           ? Json(dtype_name(kind.dtype))
                           : Json(format("int%d group %lld", kind.bits, static_cast<long long>(kind.group_size)));
  return {{"role", choice.kernel->role},     {"weights", weights},
          {"min_tokens", choice.min_tokens}, {"max_tokens", choice.max_tokens},
          {"kernel", choice.kernel->name},   {"reason", choice.reason}};
}

Json describe(const CpuCluster& cluster) {
  return {{"cpus", text_of_list(cluster.cpus)},
          {"max_mhz", cluster.max_mhz == 0 ? Json(nullptr) : Json(cluster.max_mhz)},
          {"identity", cluster.identity},
          {"capacity", cluster.capacity == 0 ? Json(nullptr) : Json(cluster.capacity)}};
}

}  // namespace

Result<Limits> measure_machine(int num_threads) {
  MOTE_REQUIRE(num_threads >= 0 && num_threads <= kMaxThreads, Code::kInvalidArgument,
               "threads = %d: must be 1..%d, or 0 for the default", num_threads, kMaxThreads);
  MOTE_ASSIGN(const std::unique_ptr<ThreadPool> threads,
              make_thread_pool(num_threads == 0 ? available_cores() : num_threads));
  return measure_limits(*threads);
}

Result<std::string> describe_kernels() {
  MOTE_REQUIRE_PART("reports", Code::kInvalidArgument);
  MOTE_ASSIGN(const CpuFeatures available, cpu_features());
  Json kernels = Json::array();
  for (const Kernel* kernel : all_kernels()) kernels.push_back(describe(*kernel, available));
  Json choices = Json::array();
  for (const KernelChoice& choice : kernel_choices()) choices.push_back(describe(choice));
  Json clusters = Json::array();
  for (const CpuCluster& cluster : cpu_clusters()) clusters.push_back(describe(cluster));
  return Json{{"cpu", cpu_name()},
              {"clusters", clusters},
              {"cpu_features", to_string(available)},
              {"kernels", kernels},
              {"choices", choices}}
      .dump();
}

}  // namespace mote
