#include "runner/generation/options/compiled_grammars.h"

#include <algorithm>
#include <utility>

#include "runner/generation/vocabulary.h"

namespace mote {
namespace {

using constraints::Grammar;
using constraints::GrammarOptions;
using constraints::Syntax;

Syntax syntax_of(const GrammarRequest& request) {
  const bool is_gbnf = request.grammar_syntax == GrammarSyntax::kAuto
                           ? request.grammar->find("::=") != std::string::npos
                           : request.grammar_syntax == GrammarSyntax::kGbnf;
  return is_gbnf ? Syntax::kGbnf : Syntax::kLark;
}

}  // namespace

Result<std::shared_ptr<const Grammar>> CompiledGrammars::get(const Model& model, const std::string& source,
                                                             const GrammarOptions& options,
                                                             const std::function<bool()>& is_cancelled) const {
  std::string key =
      std::to_string(static_cast<int>(options.syntax)) + std::to_string(static_cast<int>(options.whitespace)) + source;
  if (auto kept = find(key); kept != nullptr) return kept;
  MOTE_ASSIGN(const auto vocabulary, vocabulary_of(model));
  constraints::WorkBudget budget(is_cancelled);
  MOTE_ASSIGN(auto grammar, Grammar::compile(vocabulary, source, options, budget));
  const std::lock_guard lock(mutex_);
  kept_.emplace_front(std::move(key), grammar);
  drop_oldest();
  return grammar;
}

std::shared_ptr<const Grammar> CompiledGrammars::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, key, &Entry::first);
  if (found == kept_.end()) return nullptr;
  std::rotate(kept_.begin(), found, found + 1);
  drop_oldest();
  return kept_.front().second;
}

void CompiledGrammars::drop_oldest() const {
  size_t num_bytes = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    num_bytes += kept_[i].first.size() + kept_[i].second->num_bytes();
    if (i > 0 && (i == kMaxGrammars || num_bytes > max_bytes_)) return kept_.resize(i);
  }
}

Result<std::shared_ptr<const Grammar>> compiled_grammar(const Model& model, const std::string& source,
                                                        const GrammarOptions& options,
                                                        const std::function<bool()>& is_cancelled) {
  MOTE_ASSIGN(const auto grammars,
              model.derived<CompiledGrammars>([]() -> Result<std::shared_ptr<const CompiledGrammars>> {
                return std::make_shared<const CompiledGrammars>();
              }));
  return grammars->get(model, source, options, is_cancelled);
}

Result<std::shared_ptr<const Grammar>> compiled_grammar(const Model& model, const GrammarRequest& request) {
  const int count = static_cast<int>(request.json_schema.has_value()) + static_cast<int>(request.regex.has_value()) +
                    static_cast<int>(request.grammar.has_value());
  MOTE_REQUIRE(count <= 1, Code::kInvalidArgument, "json_schema, regex and grammar: only one of them can be given");
  MOTE_REQUIRE(request.grammar_syntax == GrammarSyntax::kAuto || request.grammar.has_value(), Code::kInvalidArgument,
               "grammar_syntax = %s: needs a grammar",
               request.grammar_syntax == GrammarSyntax::kGbnf ? "gbnf" : "lark");
  if (request.json_schema.has_value())
    return compiled_grammar(model, *request.json_schema, {Syntax::kJsonSchema, request.json_whitespace});
  if (request.regex.has_value()) return compiled_grammar(model, *request.regex, {Syntax::kRegex});
  if (request.grammar.has_value()) return compiled_grammar(model, *request.grammar, {syntax_of(request)});
  return std::shared_ptr<const Grammar>();
}

}  // namespace mote
