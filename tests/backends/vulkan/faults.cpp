#include "tests/backends/vulkan/faults.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace mote::test {
namespace {

std::string armed_function;
Fault armed_fault = Fault::memory;
int64_t armed_call = 0;
std::atomic<bool> struck = false, is_gone = false;
std::atomic<int64_t> objects = 0;
std::atomic<VkDevice> device = VK_NULL_HANDLE;  // of the latest call
constexpr uint64_t kLongNs = 100'000'000'000;

enum Name {
#define MOTE_NAME(name) k##name,
  MOTE_VULKAN_GLOBAL(MOTE_NAME) MOTE_VULKAN_INSTANCE(MOTE_NAME) MOTE_VULKAN_DEVICE(MOTE_NAME)
      MOTE_VULKAN_OPTIONAL(MOTE_NAME)
#undef MOTE_NAME
          kNumNames
};
constexpr std::string_view kNames[] = {
#define MOTE_NAME(name) #name,
    MOTE_VULKAN_GLOBAL(MOTE_NAME) MOTE_VULKAN_INSTANCE(MOTE_NAME) MOTE_VULKAN_DEVICE(MOTE_NAME)
        MOTE_VULKAN_OPTIONAL(MOTE_NAME)
#undef MOTE_NAME
};
std::atomic<int64_t> calls[kNumNames];
bool fails[kNumNames];

constexpr bool is_of_instance(Name name) {
  return name <= kGetDeviceProcAddr;  // the global functions and those of the instance come first
}

VkResult result_of(Fault fault) {
  switch (fault) {
    case Fault::memory: return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    case Fault::loss: return VK_ERROR_DEVICE_LOST;
    case Fault::hang: return VK_TIMEOUT;
    default: return VK_ERROR_INITIALIZATION_FAILED;
  }
}

bool strikes(Name name) {
  const int64_t call = ++calls[name];
  if (armed_call == 0 || call != armed_call || armed_function != kNames[name]) return false;
  struck = true;
  if (armed_fault == Fault::loss || armed_fault == Fault::hang) is_gone = true;
  return true;
}

// What a call returns instead of being made; VK_SUCCESS: it is made.
VkResult verdict(Name name) {
  if (strikes(name)) return result_of(armed_fault);
  if (!is_gone || is_of_instance(name)) return VK_SUCCESS;
  if (armed_fault == Fault::loss) return VK_ERROR_DEVICE_LOST;
  return name == kWaitForFences ? VK_TIMEOUT : VK_SUCCESS;
}

constexpr bool starts_with(std::string_view name, std::string_view start) {
  return name.substr(0, start.size()) == start;
}

template <Name name, typename Function>
struct Wrapped;

template <Name name, typename Result, typename... Arguments>
struct Wrapped<name, Result(VKAPI_PTR*)(Arguments...)> {
  static inline Result(VKAPI_PTR* real)(Arguments...) = nullptr;

  static Result VKAPI_CALL call(Arguments... arguments) {
    note_device(arguments...);
    if constexpr (std::is_same_v<Result, VkResult>) {
      if (const VkResult given = verdict(name); given != VK_SUCCESS) {
        // What was submitted has ended all the same, so that nothing that it uses goes before it.
        if constexpr (name == kWaitForFences) wait_for_real(arguments...);
        if constexpr (name == kQueueSubmit) end_what_was_submitted(given, arguments...);
        return given;
      }
      const VkResult result = real(arguments...);
      const bool makes = (starts_with(kNames[name], "Create") || name == kAllocateMemory) && result == VK_SUCCESS;
      if (makes) ++objects;
      return result;
    } else if constexpr (std::is_same_v<Result, PFN_vkVoidFunction>) {
      return strikes(name) ? nullptr : real(arguments...);
    } else {
      if (starts_with(kNames[name], "Destroy") || name == kFreeMemory) --objects;
      return real(arguments...);
    }
  }

  template <typename... Given>
  static void wait_for_real(VkDevice on, uint32_t count, const VkFence* fences, VkBool32 all, uint64_t, Given...) {
    (void)real(on, count, fences, all, kLongNs);
  }

  // A device that is lost runs nothing any more.
  static void end_what_was_submitted(VkResult given, VkQueue queue, uint32_t, const VkSubmitInfo*, VkFence fence) {
    if (given != VK_ERROR_DEVICE_LOST || fence == VK_NULL_HANDLE) return;
    if (real(queue, 0, nullptr, fence) != VK_SUCCESS) return;
    (void)Wrapped<kWaitForFences, PFN_vkWaitForFences>::real(device, 1, &fence, VK_TRUE, kLongNs);
  }

  template <typename First, typename... Rest>
  static void note_device(First first, Rest...) {
    if constexpr (std::is_same_v<First, VkDevice>) device = first;
  }

  static void wrap(Result(VKAPI_PTR*& function)(Arguments...)) {
    fails[name] = !std::is_same_v<Result, void>;
    if (function == nullptr || function == &call) return;
    real = function;
    function = &call;
  }
};

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::memory: return "out of memory";
    case Fault::refusal: return "refused";
    case Fault::loss: return "device lost";
    default: return "hangs";
  }
}

void install_faults() {
  gpu::replace_functions([](gpu::VulkanApi& api) {
#define MOTE_WRAP(name) Wrapped<k##name, PFN_vk##name>::wrap(api.name);
    MOTE_VULKAN_GLOBAL(MOTE_WRAP)
    MOTE_VULKAN_INSTANCE(MOTE_WRAP)
    MOTE_VULKAN_DEVICE(MOTE_WRAP)
    MOTE_VULKAN_OPTIONAL(MOTE_WRAP)
#undef MOTE_WRAP
  });
}

std::vector<std::string> functions_that_fail() {
  std::vector<std::string> names;
  for (int name = 0; name < kNumNames; ++name) {
    if (fails[name]) names.emplace_back(kNames[name]);
  }
  return names;
}

void arm(const std::string& function, Fault fault, int64_t k) {
  armed_function = function;
  armed_fault = fault;
  armed_call = k;
  struck = false;
  is_gone = false;
  for (std::atomic<int64_t>& count : calls) count = 0;
}

int64_t num_calls(const std::string& function) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), function);
  return calls[found - std::begin(kNames)];
}

bool has_struck() { return struck; }
int64_t num_objects() { return objects; }

}  // namespace mote::test
