#include "backends/xnnpack/api.h"

#include <array>

namespace mote::xnnpack {

const char* status_name(XnnStatus status) {
  static constexpr std::array<const char*, 9> kNames = {
      "success",       "uninitialized",         "invalid parameter",
      "invalid state", "unsupported parameter", "unsupported hardware",
      "out of memory", "reallocation required", "deprecated"};
  const auto index = static_cast<size_t>(status);
  return index < kNames.size() ? kNames[index] : "unknown status";
}

}  // namespace mote::xnnpack
