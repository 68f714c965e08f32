// What C++ callers of the C API share.
#pragma once

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

}  // namespace mote
