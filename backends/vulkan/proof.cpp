#include "backends/vulkan/proof.h"

#include <optional>
#include <vector>

#include "backends/proof/deadline.h"
#include "base/log.h"

namespace mote::vulkan {

Compared compare_variants(gpu::GpuFeatures features, std::chrono::nanoseconds patience, const Comparison& compare,
                          const std::function<void(gpu::GpuFeatures)>& begins, const std::function<bool()>& is_lost) {
  std::vector<gpu::GpuFeatures> variants{{}};
  for (const gpu::GpuFeature feature :
       {gpu::GpuFeature::kDot, gpu::GpuFeature::kSubgroups, gpu::GpuFeature::kStaging}) {
    if (features.has(feature)) variants.emplace_back(feature);
  }
  Compared compared;
  for (const gpu::GpuFeatures variant : variants) {
    begins(variant);
    const std::optional<Status> ended = proof::within(patience, [compare, variant] { return compare(variant); });
    if (ended && ended->ok()) continue;
    compared.set_aside = compared.set_aside | variant;
    compared.reason = ended ? ended->message() : "it did not answer";
    compared.is_gone = !ended || is_lost();
    MOTE_LOG_LINE(kInfo, "vulkan: products with %s are set aside: %s", to_string(variant).c_str(),
                  compared.reason.c_str());
    // Without the plainest there is nothing to compare with, and the file's own samples decide.
    if (compared.is_gone || variant.bits() == 0) break;
  }
  return compared;
}

Verdict prove(gpu::GpuFeatures features, bool is_careful, std::chrono::nanoseconds patience, const Attempt& attempt) {
  std::vector<gpu::GpuFeatures> sets;
  if (!is_careful) {
    sets.push_back(features);
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
      const auto feature = static_cast<gpu::GpuFeature>(bit);
      const bool leaves_some = features.has(feature) && features.without(feature).bits() != 0;
      if (leaves_some) sets.push_back(features.without(feature));
    }
  }
  if (is_careful || features.bits() != 0) sets.emplace_back();
  Verdict verdict;
  for (const gpu::GpuFeatures set : sets) {
    const auto result = proof::within<uint64_t>(patience, [attempt, set] { return attempt(set); });
    verdict.state = Verdict::State::fails;
    if (!result) {
      verdict.reason = "it did not answer";
      return verdict;
    }
    if (result->ok()) {
      verdict = {.state = Verdict::State::works, .set_aside = features.without(set).bits(), .gpu_ns = **result};
      return verdict;
    }
    verdict.reason = result->status().message();
    if (result->status().code() == Code::kOutOfMemory) {
      verdict.state = Verdict::State::unknown;  // which may be otherwise next time
      return verdict;
    }
    MOTE_LOG_LINE(kInfo, "vulkan: with %s: %s", to_string(set).c_str(), verdict.reason.c_str());
  }
  return verdict;
}

}  // namespace mote::vulkan
