// Vulkan's functions with faults: the k-th call of one of them fails, and where it says so the device is gone from then
// on. Every other call goes to the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/gpu/vulkan_api.h"

namespace mote::test {

enum class Fault {
  memory,   // the call returns VK_ERROR_OUT_OF_DEVICE_MEMORY
  refusal,  // VK_ERROR_INITIALIZATION_FAILED, as of a pipeline that does not compile; of a function that is looked up:
            // the driver does not have it
  loss,     // VK_ERROR_DEVICE_LOST, and so do all calls of that device from then on
  hang,     // VK_TIMEOUT of a wait, and so do all waits from then on: what was submitted never ends
};
const char* name_of(Fault fault);

// From now on tables that are found have functions that can fail. Once a process.
void install_faults();
// The calls that return a VkResult, or a function, by name.
std::vector<std::string> functions_that_fail();
// The k-th call of a function from now on fails; k = 0: none, and what was lost or hung is forgotten.
void arm(const std::string& function, Fault fault, int64_t k);
inline void disarm() { arm("", Fault::memory, 0); }
// How often a function was called since the latest arm.
int64_t num_calls(const std::string& function);
// Whether the fault has come.
bool has_struck();
// Objects that were made and not destroyed.
int64_t num_objects();

}  // namespace mote::test
