// The beginning of a golden sample replayed by a backend's delegate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runner/program/delegate.h"

namespace mote::proof {

inline constexpr size_t kMostPrompt = 64, kMostSteps = 3;  // tokens that are tried

// A sample whose data nobody else owns.
struct Sample {
  std::vector<int32_t> prompt, expected, probes;
  std::vector<float> logits;
  float tolerance = 0.0f, largest = 0.0f;
};

// The first that is short enough. Nothing: there is none, as in a file that is being exported.
std::optional<Sample> first_short(const std::vector<DelegateSample>& samples);

// The prompt in the longest calls that it fills, and some tokens one by one; then in each longer call that it does not
// fill, where the delegate goes back. Returns: the shortest time of a single token in nanoseconds, 0 without parts that
// could be tried. Errors: kUnsupportedBackend saying what is wrong, and by how much; what the delegate says.
Result<uint64_t> replay(const DelegateProgram& program, std::span<const WholePart> parts, const Sample& sample);

}  // namespace mote::proof
