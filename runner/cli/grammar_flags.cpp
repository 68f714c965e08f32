#include "runner/cli/grammar_flags.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace mote::cli {
namespace {

std::string read_file(const char* flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    throw InputError(std::string(flag) + " " + path + ": cannot be read: " + std::strerror(errno));
  return text;
}

// A schema itself, or the file that has it.
std::string read_schema(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_schema = text == "true" || text == "false" || (first != std::string::npos && text[first] == '{');
  return is_schema ? text : read_file("--json-schema", text);
}

}  // namespace

void GrammarFlags::add_to(CLI::App& app) {
  CLI::Option* schema = app.add_option("--json-schema", json_schema_,
                                       "The text is JSON that this schema accepts: a file, or the schema itself")
                            ->type_name("FILE|JSON");
  CLI::Option* regex =
      app.add_option("--regex", regex_, "The whole text matches this regular expression")->excludes(schema);
  CLI::Option* grammar = app.add_option("--grammar", grammar_, "The text follows the grammar in this file")
                             ->type_name("FILE")
                             ->excludes(schema)
                             ->excludes(regex);
  app.add_option("--grammar-syntax", syntax_, "Of --grammar: gbnf or lark (default: gbnf if there is a ::= in it)")
      ->check(CLI::IsMember({"gbnf", "lark"}))
      ->needs(grammar);
  app.add_option("--json-whitespace", whitespace_, "Between the parts of JSON: flexible, compact or spaced")
      ->check(CLI::IsMember({"flexible", "compact", "spaced"}))
      ->needs(schema);
  json_schema_option_ = schema;
  regex_option_ = regex;
  grammar_option_ = grammar;
}

std::optional<GrammarSource> GrammarFlags::source() const {
  if (json_schema_option_->count() > 0) {
    const mote_json_whitespace whitespace = whitespace_ == "compact"  ? MOTE_JSON_WHITESPACE_COMPACT
                                            : whitespace_ == "spaced" ? MOTE_JSON_WHITESPACE_SPACED
                                                                      : MOTE_JSON_WHITESPACE_FLEXIBLE;
    return GrammarSource{read_schema(json_schema_), MOTE_SYNTAX_JSON_SCHEMA, whitespace};
  }
  if (regex_option_->count() > 0) return GrammarSource{regex_, MOTE_SYNTAX_REGEX};
  if (grammar_option_->count() == 0) return std::nullopt;
  const std::string text = read_file("--grammar", grammar_);
  const bool is_gbnf = syntax_.empty() ? text.find("::=") != std::string::npos : syntax_ == "gbnf";
  return GrammarSource{text, is_gbnf ? MOTE_SYNTAX_GBNF : MOTE_SYNTAX_LARK};
}

Grammar GrammarSource::compile(const Model& model) const {
  auto options = sized<mote_grammar_options>();
  options.source = text.data();
  options.source_bytes = text.size();
  options.syntax = syntax;
  options.json_whitespace = json_whitespace;
  mote_vocabulary* vocabulary = nullptr;
  check([&](mote_error* error) { return mote_model_vocabulary(model.get(), &vocabulary, error); });
  const std::unique_ptr<mote_vocabulary, Closer<mote_vocabulary_close>> owned(vocabulary);
  mote_grammar* grammar = nullptr;
  check([&](mote_error* error) { return mote_grammar_open(vocabulary, &options, &grammar, error); });
  return Grammar(grammar);
}

}  // namespace mote::cli
