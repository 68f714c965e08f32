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

// A value: copies are cheap and go their own ways, so to try tokens and to go back is to keep a copy.
// Thread safety: one thread at a time, copies are apart. Cost of a token: its bytes, and a union of kept masks.
class Constraint {
 public:
  explicit Constraint(std::shared_ptr<const Grammar> grammar);

  const Grammar& grammar() const { return *grammar_; }

  // The text so far is one of the grammar.
  bool may_end() const { return !ended_ && at_.may_end; }
  // Nothing may follow but the end, or it has come.
  bool is_complete() const { return ended_ || at_.items.empty(); }

  // One bit for each id: whether the token may come next; those that end the text only where may_end().
  // `mask`: grammar().vocabulary().mask_words() words.
  // Errors: kInvalidArgument if no token can go on with a text that may not end, or the grammar is too ambiguous.
  Status fill_mask(std::span<uint32_t> mask) const;
  // Whether one token may come next.
  bool allows(int32_t id) const;
  // The token that has come. Errors: kInvalidArgument if it may not, and nothing changes.
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
