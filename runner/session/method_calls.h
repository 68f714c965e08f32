// Which method of a target computes the next tokens of a sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runner/program/program.h"

namespace mote {

struct MethodCall {
  uint32_t method = 0;
  int64_t tokens = 1;      // of the call
  size_t count = 1;        // the first ones, which are the sequence's; the others fill the call up
  bool every_row = false;  // logits after each token, or after the last only

  size_t num_rows() const { return every_row ? static_cast<size_t>(tokens) : 1; }
  size_t last_row() const { return every_row ? count - 1 : 0; }
};

// A target has one method of a name for calls of any length, or one for each length that its backends compiled it
// for. Thread safety: immutable.
class MethodCalls {
 public:
  MethodCalls() = default;
  // Finds the methods of a program. `chunk`: the most tokens of a call. Errors: those of Bound::method_index.
  static Result<MethodCalls> find(const Bound& bound, int64_t chunk);

  MethodCall decode() const { return {decode_, 1, 1, false}; }
  // A call that computes `count` tokens, or as many of the first as fit into one call, with the logits of the last.
  // `room`: positions that are free, which a call that is filled up needs too.
  MethodCall prefill(size_t count, int64_t room) const { return next(prefill_, count, room, false); }
  // The same with the logits of each token.
  MethodCall verify(size_t count, int64_t room) const { return next(verify_, count, room, true); }
  // The most tokens whose logits one call gives.
  int64_t longest_verify() const;

 private:
  struct Variant {
    uint32_t method = 0;
    int64_t min_tokens = 1;  // 1, or max_tokens
    int64_t max_tokens = 1;
  };

  static std::vector<Variant> find_variants(const Bound& bound, std::string_view name, int64_t chunk);
  MethodCall next(const std::vector<Variant>& variants, size_t count, int64_t room, bool every_row) const;

  uint32_t decode_ = 0;
  bool can_pad_ = true;
  std::vector<Variant> prefill_;  // the longest first
  std::vector<Variant> verify_;
};

// Whether a state of the model cannot forget its last tokens.
bool has_recurrent_state(const fb::Program& program);

// The most tokens of a prefill call, and of one that verifies, in any of the target's methods.
int64_t longest_call(const Bound& bound);

// Whether what is computed for a token depends on the largest position in its call, as with some RoPE types.
bool depends_on_call(const fb::Method& method);

}  // namespace mote
