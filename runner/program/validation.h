// What the validators behind `verify` share: limits, places in the file for messages, sizes linear in T.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/size.h"
#include "base/status.h"
#include "runner/program/verified.h"

namespace mote {

inline constexpr int64_t kMaxElements = int64_t{1} << 40;  // of one tensor, at the largest T
inline constexpr int64_t kMaxAttribute = int64_t{1}
                                         << 48;  // |integer attribute|: sums of a few cannot overflow in a kernel
inline constexpr int64_t kMaxArenaBytes = int64_t{1} << 50;
inline constexpr int64_t kArenaAlignment = 64;

// A place in the file. Text is made only when something is wrong: "model.mote: methods[0].values[17].shape[1]".
struct Path {
  const Path* parent = nullptr;  // nullptr: `name` is the file
  const char* name = "";
  int64_t index = -1;

  std::string text() const;
};

// kInvalidProgram: the path, then the formatted rest, which starts with the value where there is one.
[[MOTE_PRINTF(2, 3)]] Status invalid(const Path& path, const char* pattern, ...);

// UTF-8 without NUL, at most max_bytes: names may be shared between many tables, so their lengths bound the work.
inline constexpr uint32_t kMaxNameBytes = 256;
inline constexpr uint32_t kMaxLongNameBytes = 64 << 10;
inline constexpr uint32_t kMaxTextBytes = 64 << 20;
Status check_text(const Path& path, const flatbuffers::String& text, uint32_t max_bytes);

inline std::string_view text_of(const flatbuffers::String& text) { return {text.c_str(), text.size()}; }

// flatbuffers' Verifier looks at the alignment of a vector's length only. Elements of 8 bytes are read in place, so
// theirs is checked before the first is touched.
template <typename T>
Status check_aligned(const Path& path, const flatbuffers::Vector<T>& vector) {
  if (reinterpret_cast<uintptr_t>(vector.Data()) % 8 != 0) return invalid(path, "is not aligned to 8 bytes");
  return {};
}

struct TokenRange {
  int64_t min = 1;
  int64_t max = 1;
};

// Checks that a Dim is within its bounds for every T of `range`. It suffices to look at the two ends of the range,
// because a Dim is linear in T.
Status check_dim(const Path& path, const fb::Dim& dim, const TokenRange& range, int64_t low, int64_t high);
int64_t evaluate(const fb::Dim& dim, int64_t tokens);  // of a checked Dim

// Live range of a value's storage: 0 is the method's start, i + 1 instruction i, num_instructions + 1 the method's end.
struct LiveRange {
  int32_t first = -1;  // -1: never defined
  int32_t last = -1;
};

// Everything of the program but its methods: segments, weights, states, golden samples, provenance, vocabulary.
Status verify_tables(const Path& file, const Mapped& mapped, const fb::Program& program);
// The places of weights in an asset, if there is one; verify_tables has taken the weights.
Status verify_asset(const Path& file, const fb::Program& program);
// One method: values, instructions, definitions before uses, its memory plan.
Status verify_method(const Path& path, const fb::Program& program, const fb::Method& method);
// Checks the states of a head for multi-token prediction. is_alone: whether its target has no other head
Status verify_head_states(const Path& path, const fb::Program& program, const fb::Method& head, bool is_alone);
// Whether an instruction of a method names a state.
bool uses_state(const fb::Method& method, int64_t state);
// No two values that live at the same time share bytes of an arena. `live` is indexed by value; views have no range.
Status verify_memory(const Path& path, const fb::Method& method, const std::vector<LiveRange>& live);
// That prefill, decode and verify exist with the inputs and the output that the runner uses.
Status verify_method_set(const Path& file, const fb::Program& program);

}  // namespace mote
