#include "runner/grammars/grammar.h"

#include "base/parts.h"
#include "base/utf8.h"
#include "runner/grammars/budget.h"
#include "runner/grammars/gbnf.h"
#include "runner/grammars/json_schema/json_schema.h"
#include "runner/grammars/lark.h"
#include "runner/grammars/regex.h"

namespace mote::constraints {
namespace {

constexpr bool kHasSyntax = is_built("grammars.json_schema") || is_built("grammars.regex") ||
                            is_built("grammars.gbnf") || is_built("grammars.lark");

}  // namespace

Result<Rules> parse_grammar(std::string_view source, const GrammarOptions& options, WorkBudget& budget) {
  MOTE_REQUIRE(source.size() <= kMaxGrammarBytes, Code::kInvalidArgument,
               "the grammar has %zu bytes: at most %zu are accepted", source.size(), kMaxGrammarBytes);
  MOTE_REQUIRE(is_valid_utf8(source), Code::kInvalidArgument, "the grammar is no UTF-8 at byte %zu",
               valid_utf8_prefix(source));
  switch (options.syntax) {
    case Syntax::kJsonSchema:
      MOTE_REQUIRE_PART("grammars.json_schema", Code::kInvalidArgument);
      return parse_json_schema(source, options.whitespace, budget);
    case Syntax::kRegex:
      MOTE_REQUIRE_PART("grammars.regex", Code::kInvalidArgument);
      return parse_regex(source, budget);
    case Syntax::kGbnf: MOTE_REQUIRE_PART("grammars.gbnf", Code::kInvalidArgument); return parse_gbnf(source, budget);
    case Syntax::kLark: MOTE_REQUIRE_PART("grammars.lark", Code::kInvalidArgument); return parse_lark(source, budget);
  }
  return Status(Code::kInvalidArgument,
                format("syntax = %d: must be 0 (JSON Schema), 1 (regular expression), 2 (GBNF) or 3 (Lark)",
                       static_cast<int>(options.syntax)));
}

Result<std::shared_ptr<const Grammar>> Grammar::compile(std::shared_ptr<const Vocabulary> vocabulary,
                                                        std::string_view source, const GrammarOptions& options) {
  WorkBudget budget;
  return compile(std::move(vocabulary), source, options, budget);
}

Result<std::shared_ptr<const Grammar>> Grammar::compile(std::shared_ptr<const Vocabulary> vocabulary,
                                                        std::string_view source, const GrammarOptions& options,
                                                        WorkBudget& budget) {
  MOTE_ASSIGN(const Rules rules, parse_grammar(source, options, budget));
  if constexpr (!kHasSyntax) return left_out("grammars", Code::kInvalidArgument);
  MOTE_ASSIGN(Automaton automaton, Automaton::compile(rules));
  return std::shared_ptr<const Grammar>(new Grammar(std::move(vocabulary), std::move(automaton)));
}

}  // namespace mote::constraints
