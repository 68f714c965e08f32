// What Apple's vendors of assets have in common: the device, its system, and who computes.
#pragma once

#include "backends/assets/library.h"

namespace mote::assets {

// The device's model; "another system" where it is none of Apple's.
std::string apple_device();
// The system with its build, which compiled assets and verdicts are true for.
std::string system_build();
// What the variable of the environment says; all where it is not set. Errors: kUnsupportedBackend naming the variable.
Result<Units> apple_units(const char* variable);

}  // namespace mote::assets
