// What C++ callers of the C API share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mote {

// For std::unique_ptr of a handle or a string that the C API gives.
template <auto close>
struct Closer {
  template <typename T> void operator()(T* handle) const { close(handle); }
};

// A struct of the C API with its size filled in, everything else 0.
template <typename T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

// All ids of a call that writes as many as there is room for and says how many there are: call(ids, capacity, &count),
// which throws. `room`: how many are expected; if there are more, it is called again.
template <typename Call>
std::vector<int32_t> all_ids(size_t room, const Call& call) {
  std::vector<int32_t> ids(room);
  size_t count = 0;
  call(ids.data(), ids.size(), &count);
  if (count > ids.size()) {
    ids.resize(count);
    call(ids.data(), ids.size(), &count);
  }
  ids.resize(count);
  return ids;
}

// Ids that a text has at most, unless normalisation lengthens it.
inline size_t most_ids(size_t text_bytes) { return text_bytes + 16; }

}  // namespace mote
