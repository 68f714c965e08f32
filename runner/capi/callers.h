// What C++ callers of the C API share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runner/capi/mote.h"

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

// The text that the C API gives: call(&text, error), or call(&text, &text_bytes, error) where it may hold NULs, inside
// check, which throws.
template <typename Check, typename Call>
std::string given_text(const Check& check, const Call& call) {
  char* text = nullptr;
  size_t text_bytes = 0;
  constexpr bool kHasLength = std::is_invocable_v<Call, char**, size_t*, mote_error*>;
  check([&](mote_error* error) {
    if constexpr (kHasLength) {
      return call(&text, &text_bytes, error);
    } else {
      return call(&text, error);
    }
  });
  const std::unique_ptr<char, Closer<mote_string_free>> owned(text);
  return kHasLength ? std::string(text, text_bytes) : std::string(text);
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
