// How far a text has come in a grammar, and which tokens may come next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "runner/grammars/configuration.h"
#include "runner/grammars/grammar.h"

namespace mote {

using constraints::Grammar;

// Copies are cheap and independent of each other, so whoever tries tokens keeps a copy to go back to. Thread safety:
// one thread at a time for each copy. Cost of a token: one step for each of its bytes, and a union of cached masks.
class Constraint {
 public:
  explicit Constraint(std::shared_ptr<const Grammar> grammar);

  const Grammar& grammar() const { return *grammar_; }

  // Whether the text so far is one of the grammar.
  bool may_end() const { return !ended_ && at_.may_end; }
  // Whether nothing but the end may follow, or the end has come.
  bool is_complete() const { return ended_ || at_.items.empty(); }

  // Sets a bit for each id whose token may come next. Tokens that end the text may come where may_end(). `mask`:
  // grammar().vocabulary().mask_words() words. Errors: kInvalidArgument if no token can go on with a text that may not
  // end, or the grammar is too ambiguous.
  Status fill_mask(std::span<uint32_t> mask) const;
  // Whether one token may come next.
  bool allows(int32_t id) const;
  // Goes on with a token. Errors: kInvalidArgument if it may not come next; then nothing changes.
  Status accept(int32_t id);

  // The token that comes next if there is no choice: the longest that spells what the text must go on with, unless a
  // longer one could be right; where the text can only end, the first end-of-sequence token.
  std::optional<int32_t> forced_token() const;

 private:
  std::optional<constraints::Configuration> after(int32_t id) const;

  std::shared_ptr<const Grammar> grammar_;
  constraints::Configuration at_;
  bool ended_ = false;
};

}  // namespace mote
