#include "backends/assets/apple.h"

#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>

namespace mote::assets {
namespace {

// With those that a measurement compares them with.
constexpr std::array<std::array<std::string_view, 2>, 4> kUnits = {
    {{"all", ""}, {"cpu", ""}, {"gpu", "cpu"}, {"ane", "cpu"}}};

// One of the system's facts; empty: it has none of that name.
std::string fact([[maybe_unused]] const char* name) {
#ifdef __APPLE__
  std::array<char, 256> text{};
  size_t size = text.size() - 1;
  if (::sysctlbyname(name, text.data(), &size, nullptr, 0) == 0) return text.data();
#endif
  return {};
}

}  // namespace

std::string apple_device() {
  const std::string model = fact("hw.model"), machine = fact("hw.machine");
  if (model.empty() && machine.empty()) return "another system";
  return machine.find(',') == std::string::npos && !model.empty() ? model : machine;
}

std::string system_build() { return fact("kern.osproductversion") + " (" + fact("kern.osversion") + ")"; }

Result<Units> apple_units(const char* variable) {
  const char* wanted = std::getenv(variable);
  const std::string_view name = wanted == nullptr ? kUnits.front()[0] : std::string_view(wanted);
  const auto units = std::ranges::find(kUnits, name, [](const auto& row) { return row[0]; });
  MOTE_REQUIRE(units != kUnits.end(), Code::kUnsupportedBackend, "%s = '%s': must be all, cpu, gpu or ane", variable,
               wanted);
  return Units{std::string((*units)[0]), std::string((*units)[1])};
}

}  // namespace mote::assets
