// What a part of a file says of the function of an asset that computes it; backends/tensor_ops/reference.py writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runner/program/delegate.h"

namespace mote::assets {

// A kind of folder. files: what its SHA-256 is taken of, in this order
struct AssetKind {
  std::string_view backend, vendor, suffix;
  std::span<const std::string_view> files;
  bool carries_states = false;  // whether its library takes states that are inputs
};

// An input, an output or a state of a function; contiguous.
struct Port {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::kFloat32;

  int64_t num_elements() const;
  size_t num_bytes() const { return static_cast<size_t>(num_elements() * dtype_bytes(dtype)); }
  bool operator==(const Port&) const = default;
};

// Of a cache [1, heads, positions, width], or a recurrent state and what its float16 elements lose, times kRestScale.
enum class StatePart : uint8_t { keys, values, state, rest };
inline constexpr float kRestScale = 2048.0f;

struct StatePort {
  Port port;
  int32_t state = 0;  // of the program
  StatePart part = StatePart::keys;
  // Of the function, with what its tokens add to a cache or a whole recurrent state: the state is then an input, and
  // whoever calls puts that in its place. "": the function changes the state itself.
  std::string output{};

  bool is_carried() const { return !output.empty(); }
  bool is_cache() const { return part == StatePart::keys || part == StatePart::values; }
  // Of the first positions of a cache, or of a whole state.
  size_t bytes_of(int64_t positions) const;
  // The sizes of the same.
  std::vector<int64_t> sizes_of(int64_t positions) const;
  bool operator==(const StatePort&) const = default;
};

struct Reference {
  std::string asset, sha256, function;  // name of a folder beside the file; of its content
  int64_t context_length = 0;
  std::vector<Port> inputs, outputs;  // in the order of the part's
  std::vector<StatePort> states;

  // The input of that name.
  std::optional<size_t> input(std::string_view name) const;
  // The output with what becomes of a state that is carried.
  Port carried_output(const StatePort& state) const;
  bool operator==(const Reference&) const = default;
};

// Errors: kInvalidProgram naming the field.
Result<Reference> parse_reference(const DelegatePart& part, const AssetKind& kind);

}  // namespace mote::assets
