// A device is tried with a file before it is trusted with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backends/gpu/features.h"
#include "backends/vulkan/delegate.h"
#include "backends/vulkan/verdict.h"

namespace mote::vulkan {

// Whether variants of these features give right results: the time of a token in nanoseconds, 0 where none was measured.
// It runs in a thread of its own and may never return: what it uses must be its own.
using Attempt = std::function<Result<uint64_t>(gpu::GpuFeatures features)>;

// Whether shaders with these features give what those with none do, which have none of them themselves.
using Comparison = std::function<Status(gpu::GpuFeatures features)>;

struct Compared {
  gpu::GpuFeatures set_aside{};
  bool is_gone = false;  // a variant did not come to an end, or took the device with it: nothing more is asked of it
  std::string reason{};  // of the last one that was set aside
};

// Tries the variants that each feature brings alone, the plainest first: of those that are wrong, fail, or do not end
// within `patience`, each is set aside alone. begins: told of each before it is tried   is_lost: whether the device is
Compared compare_variants(gpu::GpuFeatures features, std::chrono::nanoseconds patience, const Comparison& compare,
                          const std::function<void(gpu::GpuFeatures)>& begins, const std::function<bool()>& is_lost);

// Tries all features, without each of them, and none. One that does not come to an end within `patience` leaves a
// device that nothing more can be asked of, so nothing else is tried. Where memory was lacking the state is unknown.
// is_careful: an earlier process did not survive, so none are tried first
Verdict prove(gpu::GpuFeatures features, bool is_careful, std::chrono::nanoseconds patience, const Attempt& attempt);

// Makes the program's pipelines and, where a part runs a whole method, replays the beginning of a sample that eager
// PyTorch recorded: its prompt in one call and two tokens after it. Errors: what is wrong, and by how much.
Attempt attempt_of(std::shared_ptr<Program> program, const DelegateSource& source);

// What the CPU's kernels take for the products of a token, in nanoseconds; 0: it cannot be told. Some of the products
// stand for all.
uint64_t cpu_ns_of(const Program& program, const DelegateSource& source);

}  // namespace mote::vulkan
