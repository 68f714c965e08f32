// One method of a bound program with its operands evaluated for one T: tensors, attributes and calls that kernels take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/size.h"
#include "kernels/op.h"
#include "runner/program/delegates.h"
#include "runner/program/program.h"

namespace mote {

// Everything is allocated by the constructor; prepare only rewrites it. Not copied or moved: calls point into it.
// Lifetime: `bound` outlives it. Thread safety: one thread at a time.
class Invocation {
 public:
  Invocation(const Bound& bound, uint32_t method);
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Evaluates every size for T = tokens, has every op check its call and re-checks what the ops answered. `arena` is
  // where activations live, arena_bytes(tokens) long; nullptr checks without it. `delegates` prepare their parts;
  // nullptr leaves them out. On failure it counts as not prepared. Errors: kInvalidArgument for a T that the method
  // does not take, kInvalidProgram, what a delegate says.
  Status prepare(int64_t tokens, std::byte* arena, int num_threads, Delegates* delegates = nullptr);

  int64_t tokens() const { return tokens_; }  // 0: not prepared
  void forget() { tokens_ = 0; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  std::span<const Call> calls() const { return calls_; }
  Tensor& input(size_t index) {
    return tensors_[static_cast<size_t>(method_.inputs()->Get(static_cast<uint32_t>(index)))];
  }
  const Tensor& output(size_t index) const {
    return tensors_[static_cast<size_t>(method_.outputs()->Get(static_cast<uint32_t>(index)))];
  }
  const fb::Method& method() const { return method_; }
  // The instruction that makes output 0, if its op finds the maxima of what it writes (kernels/op.h), and the number of
  // these.
  std::optional<size_t> maxima_source() const { return maxima_source_; }
  int64_t count_maxima() const;
  // The instruction that a delegate runs to make output 0, which is of floats, and nothing else.
  std::optional<size_t> delegate_source() const { return delegate_source_; }

  // The place of an instruction for messages, such as "model.mote: decode: instructions[7] (aten.add, model.layers.0)".
  std::string place(size_t instruction) const;

 private:
  // Where a value lies: in storage of its own, or in that of the value that it is a view of.
  struct Storage {
    Size offset_bytes;  // of the value's first element
    Size bytes;         // of the value that owns it
  };

  void gather_operands(const fb::Instruction& instruction);
  void find_sources();
  void gather_attributes(const fb::Instruction& instruction);
  Status evaluate_values(int64_t tokens, std::byte* arena);
  void evaluate_attributes(int64_t tokens);
  Status evaluate_all(int64_t tokens, std::byte* arena, int num_threads, Delegates* delegates);
  Status check_call(size_t index, int64_t tokens, int num_threads, Delegates* delegates);
  Status place_view(size_t index);
  Status check_outputs() const;

  const Bound& bound_;
  const fb::Method& method_;
  std::span<const Op* const> ops_;
  std::span<const std::optional<DelegateCall>> delegate_calls_;
  int64_t tokens_ = 0;
  size_t scratch_bytes_ = 0;
  std::optional<size_t> maxima_source_, delegate_source_;
  std::vector<Tensor> tensors_;        // [values]
  std::vector<Storage> storage_;       // [values]
  std::vector<const Tensor*> inputs_;  // of all instructions, in order
  std::vector<Tensor*> outputs_;
  std::vector<Attribute> attributes_;
  std::vector<int64_t> integers_;
  std::vector<Call> calls_;  // [instructions]
};

// Bytes of the arena that a method needs for T = tokens.
Size arena_bytes(const fb::Method& method, int64_t tokens);

}  // namespace mote
