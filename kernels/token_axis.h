// An op's rule for rows: where the tokens of its result lie, given where those of its inputs do. Whether the tokens of
// a call may belong to several sequences follows from the rules of a method's ops (runner/program/token_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mote {

// A size or an integer attribute while T, the number of tokens, is open: constant + tokens * T.
struct Dim {
  int64_t constant = 0;
  int64_t tokens = 0;
};

// Where a value's tokens lie: dimension `dim` has before * T * after elements, and element (b, t, a) is of token t.
struct TokenAxis {
  int dim = -1;  // -1: the value is the same for all tokens
  int64_t before = 1;
  int64_t after = 1;

  bool exists() const { return dim >= 0; }
  TokenAxis at(int other) const { return {other, before, after}; }
  bool operator==(const TokenAxis&) const = default;
};

// Where the tokens of an instruction's outputs lie; nullopt: a row of them may depend on several tokens.
using OutputAxis = std::optional<TokenAxis>;
inline constexpr std::nullopt_t kMixesTokens = std::nullopt;

// The axis of a value that does not depend on the tokens' contents: its only dimension that grows with T, if any.
OutputAxis axis_of(std::span<const Dim> shape);

// An instruction while T is open, and where the tokens of its inputs lie. The op's check has accepted its operands.
struct SymbolicCall {
  struct Input {  // an absent one has no shape and no tokens
    std::span<const Dim> shape;
    TokenAxis axis;
  };
  struct Attribute {
    std::string_view name;
    std::span<const Dim> dims;
  };

  std::span<const Input> inputs;
  std::span<const Dim> output;            // shape of outputs[0]
  std::span<const Attribute> attributes;  // those that are integers

  TokenAxis axis(size_t input) const { return input < inputs.size() ? inputs[input].axis : TokenAxis(); }
  int rank(size_t input) const { return static_cast<int>(inputs[input].shape.size()); }
  int output_rank() const { return static_cast<int>(output.size()); }
  // Do all inputs from this one on have no tokens?
  bool same_for_all_tokens(size_t from) const;

  const Attribute* find(std::string_view name) const;  // nullptr: absent
  int64_t integer(std::string_view name, int64_t otherwise) const;
};

}  // namespace mote
