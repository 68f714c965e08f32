// The border between C and C++: errors, structs with a size, strings.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "runner/capi/mote.h"

namespace mote::capi {

mote_error_code report(Code code, std::string_view message, mote_error* error) noexcept;

// Calls `body` (returning Status) and reports what it returned or threw. What catches is compiled once for all bodies.
mote_error_code guarded_call(mote_error* error, Status (*call)(void* body), void* body);
template <typename Body>
mote_error_code guarded(mote_error* error, Body body) {
  return guarded_call(error, [](void* given) -> Status { return (*static_cast<Body*>(given))(); }, &body);
}

#define MOTE_REQUIRE_POINTER(pointer) \
  MOTE_REQUIRE((pointer) != nullptr, ::mote::Code::kInvalidArgument, #pointer " is NULL")

// Copies the caller's struct, which may be older or newer than ours, over `to`.
template <typename T>
Status read_struct(const T* from, T& to) {
  MOTE_REQUIRE(from->struct_size >= sizeof(uint32_t), Code::kInvalidArgument,
               "struct_size = %u: must be sizeof the struct", from->struct_size);
  std::memcpy(&to, from, std::min<size_t>(from->struct_size, sizeof(T)));
  return {};
}

// Copies `from` over the caller's struct, all but struct_size.
template <typename T>
Status write_struct(const T& from, T* to) {
  const uint32_t size = to->struct_size;
  MOTE_REQUIRE(size >= sizeof(uint32_t), Code::kInvalidArgument, "struct_size = %u: must be sizeof the struct", size);
  std::memcpy(to, &from, std::min<size_t>(size, sizeof(T)));
  to->struct_size = size;
  return {};
}

// A text in a struct. NULL: none; bytes 0: up to a NUL.
inline std::string_view text_or_empty(const char* text, size_t bytes = 0) {
  if (text == nullptr) return {};
  return bytes > 0 ? std::string_view(text, bytes) : std::string_view(text);
}

// What a caller gives together with a function that lets go of it, which is called with the last copy's end.
// Throws std::bad_alloc, and has called it then.
class Borrowed {
 public:
  Borrowed(void* data, mote_release release)
      : data_(data, [release](void* given) noexcept {
          if (release != nullptr) release(given);
        }) {}
  void* get() const { return data_.get(); }
  std::shared_ptr<const void> shared() const { return data_; }

 private:
  std::shared_ptr<void> data_;
};

// A copy for the caller, freed by mote_string_free. out_bytes: its length, unless nullptr.
Status give_string(std::string_view text, char** out, size_t* out_bytes = nullptr);

}  // namespace mote::capi
