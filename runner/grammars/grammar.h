// A grammar compiled for a vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "runner/grammars/automaton.h"
#include "runner/grammars/masks.h"
#include "runner/grammars/vocabulary.h"

namespace mote::constraints {

enum class Syntax : int32_t { kJsonSchema = 0, kRegex = 1, kGbnf = 2, kLark = 3 };

// White space between the parts of JSON. kFlexible: none, one space, or a new line with up to 24 spaces of indentation;
// kCompact: none; kSpaced: a space behind each comma and colon.
enum class JsonWhitespace : int32_t { kFlexible = 0, kCompact = 1, kSpaced = 2 };

struct GrammarOptions {
  Syntax syntax = Syntax::kJsonSchema;
  JsonWhitespace whitespace = JsonWhitespace::kFlexible;
};

// Thread safety: any number of threads. Immutable but for the masks that it keeps.
class Grammar {
 public:
  // Errors: kInvalidArgument with the place in the source and what would be accepted.
  static Result<std::shared_ptr<const Grammar>> compile(std::shared_ptr<const Vocabulary> vocabulary,
                                                        std::string_view source, const GrammarOptions& options);
  // Draws on `budget`, so it can be cancelled. Errors: also kCancelled.
  static Result<std::shared_ptr<const Grammar>> compile(std::shared_ptr<const Vocabulary> vocabulary,
                                                        std::string_view source, const GrammarOptions& options,
                                                        WorkBudget& budget);

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::shared_ptr<const Vocabulary>& shared_vocabulary() const { return vocabulary_; }
  const Automaton& automaton() const { return automaton_; }
  const Masks& masks() const { return masks_; }
  // Memory that it has now, which grows with the masks of the texts that follow it; not that of the vocabulary.
  size_t num_bytes() const { return sizeof(*this) + automaton_.num_bytes() + masks_.num_bytes(); }

 private:
  Grammar(std::shared_ptr<const Vocabulary> vocabulary, Automaton automaton)
      : vocabulary_(std::move(vocabulary)), automaton_(std::move(automaton)), masks_(automaton_, *vocabulary_) {}

  std::shared_ptr<const Vocabulary> vocabulary_;
  Automaton automaton_;
  Masks masks_;
};

// Reads a source into rules, without a vocabulary. Errors: those of compile.
Result<Rules> parse_grammar(std::string_view source, const GrammarOptions& options, WorkBudget& budget);

}  // namespace mote::constraints
