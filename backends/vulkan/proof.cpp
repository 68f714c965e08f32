#include "backends/vulkan/proof.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "base/log.h"

namespace mote::vulkan {
namespace {

// What a thread that may never end shares with the one that waits for it.
struct Outcome {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Result<uint64_t>> result;
};

// Nothing: it has not ended in time, and goes on, whatever becomes of it.
std::optional<Result<uint64_t>> within(std::chrono::nanoseconds patience,
                                       const std::function<Result<uint64_t>()>& attempt) {
  const auto outcome = std::make_shared<Outcome>();
  const auto work = [outcome, attempt] {
    Result<uint64_t> result = [&]() -> Result<uint64_t> {
      try {
        return attempt();
      } catch (const std::bad_alloc&) { return Status(Code::kOutOfMemory, "no memory to try it"); }
    }();
    const std::lock_guard lock(outcome->mutex);
    outcome->result.emplace(std::move(result));
    outcome->ended.notify_all();
  };
  std::thread worker;
  try {
    worker = std::thread(work);
  } catch (const std::system_error&) {
    work();  // without a thread there is nobody to wait
  }
  const bool has_ended = [&] {
    std::unique_lock lock(outcome->mutex);
    return outcome->ended.wait_for(lock, patience, [&] { return outcome->result.has_value(); });
  }();
  // What it holds of the device goes with it, which must not happen while the process ends.
  if (worker.joinable() && has_ended) worker.join();
  if (worker.joinable()) worker.detach();
  return has_ended ? outcome->result : std::nullopt;
}

}  // namespace

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
    const std::optional<Result<uint64_t>> result = within(patience, [compare, variant]() -> Result<uint64_t> {
      MOTE_RETURN_IF_ERROR(compare(variant));
      return uint64_t{0};
    });
    if (result && result->ok()) continue;
    compared.set_aside = compared.set_aside | variant;
    compared.reason = result ? result->status().message() : "it did not answer";
    compared.is_gone = !result || is_lost();
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
    const std::optional<Result<uint64_t>> result = within(patience, [attempt, set] { return attempt(set); });
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
