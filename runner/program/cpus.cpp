#include "runner/program/cpus.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>

namespace mote {
namespace {

// Reads a number from the front of `text`.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Reads "3" or "0-3" from the front of `text`.
bool take_range(std::string_view& text, int& first, int& last) {
  if (!take_number(text, first)) return false;
  last = first;
  if (text.empty() || text.front() != '-') return true;
  text.remove_prefix(1);
  return take_number(text, last) && last >= first;
}

Status malformed(std::string_view text) {
  return {Code::kInvalidArgument,
          format("cpus = \"%.*s\": must be numbers and ranges separated by commas, such as 0-3,6",
                 static_cast<int>(std::min<size_t>(text.size(), 64)), text.data())};
}

}  // namespace

std::string text_of_list(std::span<const int> cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  const std::vector<int> usable = usable_cpus();
  MOTE_REQUIRE(!usable.empty(), Code::kInvalidArgument, "cpus = \"%.*s\": this system cannot bind threads to CPUs",
               static_cast<int>(std::min<size_t>(text.size(), 64)), text.data());
  std::vector<int> cpus;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    int first = 0;
    int last = 0;
    if (!take_range(rest, first, last)) return malformed(text);
    for (int cpu = first; cpu <= last; ++cpu) {
      MOTE_REQUIRE(std::binary_search(usable.begin(), usable.end(), cpu), Code::kInvalidArgument,
                   "cpus: CPU %d does not exist or is closed to this process, which may use %s", cpu,
                   text_of_list(usable).c_str());
      cpus.push_back(cpu);
    }
    if (rest.empty()) break;
    if (rest.front() != ',') return malformed(text);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<int> fast_cpus(std::span<const CpuCluster> clusters) {
  std::vector<int> cpus;
  if (clusters.empty()) return cpus;
  const auto [least, most] = std::ranges::minmax(clusters, {}, &CpuCluster::capacity);
  for (const CpuCluster& cluster : clusters) {
    const bool is_slow = cluster.capacity == least.capacity && 2 * least.capacity < most.capacity;
    if (!is_slow) cpus.insert(cpus.end(), cluster.cpus.begin(), cluster.cpus.end());
  }
  return cpus;
}

int num_usable_cpus() {
  const size_t usable = usable_cpus().size();
  return std::max(1, usable > 0 ? static_cast<int>(usable) : static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace mote
