#include <new>
#include <string>

#include "backends/vulkan/delegate.h"

namespace mote::vulkan {
namespace {

class VulkanBackend : public Backend {
 public:
  std::string_view name() const override { return "vulkan"; }

  Status check_device() const override try { return gpu::GpuContext::open().status(); } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory for Vulkan"};
  }

  // Not measured on this device: whoever asks for it by name gets it.
  std::string why_not(const DelegateSource&) const override try {
    const Result<std::shared_ptr<const gpu::GpuContext>> context = gpu::GpuContext::open();
    if (!context.ok()) return context.status().message();
    if ((*context)->is_cpu()) return (*context)->device_name() + " is no GPU: it computes on the CPU";
    return (*context)->device_name() + " is not known to be faster than the CPU for this file";
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
