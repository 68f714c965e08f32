// What was found out when a device was first tried with a file: kept beside the model for a driver, its version and
// these shaders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/gpu/context.h"
#include "backends/proof/verdict.h"
#include "backends/vulkan/variants.h"
#include "base/kept_file.h"
#include "runner/program/delegate.h"

namespace mote::vulkan {

struct Verdict {
  using State = proof::State;
  State state = State::unknown;
  uint32_t num_begun = 0;                  // of processes that did not come to an end
  uint32_t set_aside = 0;                  // features (gpu::GpuFeatures) whose variants gave wrong results, or none
  uint32_t trying = 0;                     // features whose variants are tried now; with state trying
  uint64_t gpu_ns = 0, cpu_ns = 0;         // a token; 0: not measured
  std::optional<ProductForms> products{};  // the fastest that were found
  std::string reason{};                    // of a failure

  bool operator==(const Verdict&) const = default;
  gpu::GpuFeatures features_set_aside() const;
  // What is known where the process that wrote it has ended: variants that it died of are set aside.
  Verdict after_a_death() const;
  // Why the CPU should be preferred; empty: it should not.
  std::string why_slower(const std::string& device) const { return proof::why_slower(device, gpu_ns, cpu_ns); }
  // What was found out, for people; empty: it has not been tried.
  std::string text_for(const std::string& device) const;
};

std::string to_text(const Verdict& verdict);
// Nothing: the text is not what to_text gives.
std::optional<Verdict> parse_verdict(std::string_view text);

// What a verdict depends on of a device, to be asked for when no device is open.
struct TriedDevice {
  std::string name, identity;  // the context's
  gpu::GpuFeatures features{};
  VkPhysicalDeviceLimits limits{};
  bool is_cpu = false;

  static TriedDevice of(const gpu::GpuContext& context);
};

// Where the files of this backend lie that belong to a file of a model.
KeptFile pipelines_of(const TriedDevice& device, const DelegateSource& source);
KeptFile row_sums_of(const TriedDevice& device, const DelegateSource& source);
KeptFile verdict_of(const TriedDevice& device, const DelegateSource& source);

// unknown: there is none that can be read.
Verdict read_verdict(const KeptFile& file);
// Also for the rest of the process, where nothing can be kept.
void keep_verdict(const KeptFile& file, const Verdict& verdict);

}  // namespace mote::vulkan
