// Third stage of loading: a verified program whose ops were found and which accepted their operands.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/op.h"
#include "runner/program/verified.h"

namespace mote {

// Immutable, shared by all sessions of a model. Thread safety: immutable.
class Bound {
 public:
  const Mapped& file() const { return verified_.file(); }
  const Verified& verified() const { return verified_; }
  const fb::Program& program() const { return verified_.program(); }

  // Index into program().methods(). Every program has "prefill", "decode" and "verify".
  Result<uint32_t> method_index(std::string_view name) const;
  // The op of each instruction of a method.
  std::span<const Op* const> ops(uint32_t method) const { return ops_[method]; }
  // One entry a state, in the file's order.
  std::span<const StateShape> state_shapes() const { return state_shapes_; }

 private:
  friend Result<std::shared_ptr<const Bound>> bind(Verified verified);
  explicit Bound(Verified verified) : verified_(std::move(verified)) {}

  Verified verified_;
  std::vector<std::vector<const Op*>> ops_;
  std::vector<StateShape> state_shapes_;
};

// Finds every op and has it check its operands for the smallest T, the next and (where at most 4096) the largest, so that
// a file whose instructions do not fit the kernels is refused here.
// Errors: kUnsupportedOp naming op and origin; kInvalidProgram naming the instruction and what its op says.
Result<std::shared_ptr<const Bound>> bind(Verified verified);

}  // namespace mote
