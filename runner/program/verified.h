// Second stage of loading: a program whose every index, size, offset, enum and string has been checked.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"
#include "runner/program/mapped.h"
#include "runner/program/weights_file.h"
#include "schema_generated.h"  // flatc output of llm_export/program/schema.fbs: namespace mote::fb

namespace mote {

// The most tokens of any call, whatever a method's max_tokens says.
inline constexpr int64_t kMaxTokens = int64_t{1} << 20;

// The scales of a weight's tiles; its codebook is that of the file.
TileScales tile_scales(const fb::Weight& weight);

// nullptr: the file has none of this kind.
const fb::Segment* find_segment(const fb::Program& program, fb::SegmentKind kind);

// A program that was verified; only `verify` makes one. Thread safety: immutable.
class Verified {
 public:
  const Mapped& file() const { return mapped_; }
  const fb::Program& program() const { return *program_; }

  // Whether the weights are there; if not, load_asset_weights makes them, and until then their bytes are empty.
  bool has_weights() const;
  // Where the file is that the program names, if it is not beside it.
  const WeightsFrom& weights_from() const { return weights_from_; }

  // The bytes of a segment; empty if the file has none of this kind.
  std::span<const std::byte> segment(fb::SegmentKind kind) const;
  // The same in memory of the caller's, for what must stay as it was checked whatever becomes of the file. Errors:
  // kFileChanged.
  Result<std::vector<std::byte>> copy(fb::SegmentKind kind) const;
  // The bytes of weights[index]; index < program().weights()->size().
  std::span<const std::byte> weight(uint32_t index) const;
  // The same weight as a tensor for kernels; nothing may write to it.
  Tensor weight_tensor(uint32_t index) const;
  // The bytes of delegates[index].
  std::span<const std::byte> delegate(uint32_t index) const;

 private:
  friend Result<Verified> verify(Mapped mapped, const WeightsFrom& weights);
  Verified(Mapped mapped, const fb::Program* program, WeightsFrom weights_from)
      : mapped_(std::move(mapped)), program_(program), weights_from_(std::move(weights_from)) {}

  Mapped mapped_;
  const fb::Program* program_;
  WeightsFrom weights_from_;
};

// The methods that generate text, of which a target has all or none, and the one that gives embeddings.
inline constexpr std::string_view kGenerating[] = {"prefill", "decode", "verify"};
inline constexpr std::string_view kEmbed = "embed";
// The heads for multi-token prediction, each of which predicts a token more ahead.
inline constexpr std::string_view kHeadMethods[] = {"mtp",   "mtp_2", "mtp_3", "mtp_4",
                                                    "mtp_5", "mtp_6", "mtp_7", "mtp_8"};
// Its place among them; nothing: the method is none of a head.
std::optional<size_t> head_depth(const fb::Method& method);

inline constexpr std::string_view kCpu = "cpu";

// The backends that run parts of a method, joined by "+", or "cpu".
std::string_view target_of(const fb::Method& method);
// The ways in which the file can be run, in its order of preference.
std::vector<std::string_view> targets_of(const fb::Program& program);

// Checks the flatbuffer's structure, then its meaning (runner/program/README.md lists the rules).
// Errors: kInvalidProgram, naming the file, the field, its value and what would be accepted; those of add_weights_file.
// Cost: O(program bytes).
Result<Verified> verify(Mapped mapped, const WeightsFrom& weights = {});

// Checks the checksums of all segments that are there. Errors: kInvalidProgram naming the segment, kFileChanged. Cost:
// reads the whole file, and that of the weights.
Status check_segments(const Verified& verified);

}  // namespace mote
