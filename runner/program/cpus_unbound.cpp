// Systems that cannot bind threads to CPUs.
#include "runner/program/cpus.h"

namespace mote {

std::vector<int> usable_cpus() { return {}; }
std::vector<CpuCluster> cpu_clusters() { return {}; }

Status bind_this_thread(std::span<const int>) {
  return {Code::kInvalidArgument, "cpus: this system cannot bind threads to CPUs"};
}

ScopedBinding::ScopedBinding(std::span<const int>) {}
ScopedBinding::~ScopedBinding() = default;

}  // namespace mote
