// Texts that mean nothing.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace mote::test {

using Ids = std::vector<int32_t>;

inline Ids random_ids(std::mt19937& random, size_t count, int32_t vocab_size) {
  Ids ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size));
  return ids;
}

}  // namespace mote::test
