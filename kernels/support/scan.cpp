#include "kernels/support/scan.h"

namespace mote {

const ScanFunctions& scan_functions() {
  static const ScanFunctions* const functions = [] {
    const Result<const ScanFunctions*> chosen = select_functions<ScanFunctions>({}, 1);
    if (chosen.ok()) return *chosen;
    const Result<const Kernel*> portable = find_kernel(ScanFunctions::kRole, {}, 1, {});
    return static_cast<const ScanFunctions*>((*portable)->functions);
  }();
  return *functions;
}

}  // namespace mote
