#include "runner/grammars/constraint.h"

#include <algorithm>

#include "runner/grammars/budget.h"

namespace mote {

using constraints::Configuration;
using constraints::Vocabulary;

Constraint::Constraint(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), at_(constraints::begin(grammar_->automaton())) {}

Status Constraint::fill_mask(std::span<uint32_t> mask) const {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  MOTE_REQUIRE(mask.size() == vocabulary.mask_words(), Code::kInvalidArgument, "a mask of %zu words: must have %zu",
               mask.size(), vocabulary.mask_words());
  std::fill(mask.begin(), mask.end(), 0U);
  if (ended_) return {};
  MOTE_RETURN_IF_ERROR(grammar_->masks().fill(at_, mask));
  if (at_.may_end) {
    for (const int32_t id : vocabulary.eos_ids())
      mask[static_cast<size_t>(id) / 32] |= 1U << (static_cast<uint32_t>(id) % 32);
    return {};
  }
  MOTE_REQUIRE(std::any_of(mask.begin(), mask.end(), [](uint32_t word) { return word != 0; }), Code::kInvalidArgument,
               "the text must go on as the grammar says, but no token of this vocabulary spells that");
  return {};
}

std::optional<Configuration> Constraint::after(int32_t id) const {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (ended_ || id < 0 || id >= vocabulary.num_ids() || vocabulary.bytes(id).empty()) return std::nullopt;
  if (vocabulary.bytes(id).size() > constraints::kMaxTokenBytes) return std::nullopt;
  Configuration next = at_;
  for (const char c : vocabulary.bytes(id)) {
    next = constraints::step(grammar_->automaton(), next, static_cast<uint8_t>(c));
    if (next.is_empty()) return std::nullopt;
  }
  return next;
}

bool Constraint::allows(int32_t id) const {
  if (grammar_->vocabulary().is_eos(id)) return may_end();
  return after(id).has_value();
}

Status Constraint::accept(int32_t id) {
  if (grammar_->vocabulary().is_eos(id) && may_end()) {
    ended_ = true;
    return {};
  }
  std::optional<Configuration> next = after(id);
  MOTE_REQUIRE(next.has_value(), Code::kInvalidArgument, "token %d does not go on with the text as the grammar says",
               id);
  at_ = *std::move(next);
  return {};
}

std::optional<int32_t> Constraint::forced_token() const {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (ended_) return std::nullopt;
  if (at_.items.empty()) return vocabulary.eos_ids().empty() ? std::nullopt : std::optional(vocabulary.eos_ids()[0]);
  std::optional<int32_t> longest;
  Configuration at = at_;
  for (uint32_t node = 0; vocabulary.has_children(node);) {
    if (at.items.empty()) break;
    const int byte = constraints::only_byte(grammar_->automaton(), at);
    if (byte < 0) {  // there is a choice; if a longer token spells one of its bytes, the model chooses
      for (uint32_t child = node + 1; child < vocabulary.end(node); child = vocabulary.end(child)) {
        if (!constraints::step(grammar_->automaton(), at, vocabulary.byte(child)).is_empty()) return std::nullopt;
      }
      break;
    }
    uint32_t child = node + 1;
    while (child < vocabulary.end(node) && vocabulary.byte(child) != byte) child = vocabulary.end(child);
    if (child >= vocabulary.end(node)) break;
    if (!vocabulary.ids(child).empty()) longest = vocabulary.ids(child)[0];
    at = constraints::step(grammar_->automaton(), at, static_cast<uint8_t>(byte));
    node = child;
  }
  return longest;
}

}  // namespace mote
