#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "backends/vulkan/delegate.h"

namespace mote::vulkan {
namespace {

struct Device {
  std::string name;
  bool is_cpu = false;
};

// Of this process: to open a device takes a driver long, and each load asks for it.
Result<Device> device() {
  static std::mutex mutex;
  static std::optional<Device> known;
  const std::lock_guard lock(mutex);
  if (!known) {
    MOTE_ASSIGN(const auto context, gpu::GpuContext::open());
    known = {context->device_name(), context->is_cpu()};
  }
  return *known;
}

class VulkanBackend : public Backend {
 public:
  std::string_view name() const override { return "vulkan"; }

  Status check_device() const override try { return device().status(); } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory for Vulkan"};
  }

  // Not measured on this device: whoever asks for it by name gets it.
  std::string why_not(const DelegateSource&) const override try {
    const Result<Device> found = device();
    if (!found.ok()) return found.status().message();
    if (found->is_cpu) return found->name + " is no GPU: it computes on the CPU";
    return found->name + " is not known to be faster than the CPU for this file";
  } catch (const std::bad_alloc&) { return "no memory for Vulkan"; }

  Status check(const DelegateSource& source) const override try {
    for (const DelegatePart& part : source.parts) MOTE_RETURN_IF_ERROR(verify_graph(part).status());
    return {};
  } catch (const std::bad_alloc&) { return no_memory(source); }

  Result<std::shared_ptr<const DelegateProgram>> load(DelegateSource source) const override try {
    MOTE_ASSIGN(std::shared_ptr<const gpu::GpuContext> context, gpu::GpuContext::open());
    MOTE_ASSIGN(std::shared_ptr<const Program> program, Program::load(std::move(context), source));
    return std::shared_ptr<const DelegateProgram>(std::move(program));
  } catch (const std::bad_alloc&) { return no_memory(source); }

 private:
  static Status no_memory(const DelegateSource& source) {
    return {Code::kOutOfMemory, source.parts.front().place + ": no memory for the parts that a GPU runs"};
  }
};

const VulkanBackend backend;
const BackendRegistration registration(&backend);

}  // namespace
}  // namespace mote::vulkan
