// What a model that drafts thinks of its logits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mote {

struct Likeliest {
  int32_t id = 0;
  size_t grade = 0;  // by its probability, as AcceptanceRates has grades
};

// How often ids of each grade are right before that is measured.
inline constexpr std::array<double, 8> kRatesOfProbabilities = {0.1, 0.15, 0.3, 0.45, 0.6, 0.75, 0.85, 0.95};

Likeliest likeliest(std::span<const float> logits);

}  // namespace mote
