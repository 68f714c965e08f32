// Random damage to blobs of backends: to numbers of their tables, and to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

namespace mote::test {

using Random = std::mt19937_64;

inline size_t below(Random& random, size_t count) { return static_cast<size_t>(random() % count); }

// The number, or another one near it, of it, or at an edge.
template <typename T> T changed(T number, Random& random) {
  // clang-format off
  constexpr uint64_t kEdges[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40,
                                 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff};
  // clang-format on
  const auto old = static_cast<uint64_t>(static_cast<int64_t>(number));
  switch (below(random, 4)) {
    case 0: return static_cast<T>(kEdges[below(random, std::size(kEdges))]);
    case 1: return static_cast<T>(static_cast<int64_t>(old + below(random, 5) - 2));
    case 2: return static_cast<T>(static_cast<int64_t>(old ^ (uint64_t{1} << below(random, 8 * sizeof(T)))));
    default: return static_cast<T>(below(random, 40));
  }
}

// Dim: of a backend's schema, tokens * T + constant.
template <typename Dim> Dim changed_dim(const Dim& dim, Random& random) {
  return below(random, 2) == 0 ? Dim(changed(dim.tokens(), random), dim.constant())
                               : Dim(dim.tokens(), changed(dim.constant(), random));
}

inline std::vector<std::byte> change_bytes(std::vector<std::byte> blob, Random& random) {
  if (below(random, 8) == 0) blob.resize(below(random, blob.size()));
  for (size_t count = 1 + below(random, 4); count > 0 && !blob.empty(); --count) {
    blob[below(random, blob.size())] ^= static_cast<std::byte>(1u << below(random, 8));
  }
  return blob;
}

}  // namespace mote::test
