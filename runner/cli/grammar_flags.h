// The flags of `run` and `chat` that make text follow a grammar.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "runner/cli/handles.h"

namespace mote::cli {

using Grammar = std::unique_ptr<mote_grammar, Closer<mote_grammar_close>>;

struct GrammarSource {
  std::string text;
  mote_syntax syntax = MOTE_SYNTAX_JSON_SCHEMA;
  mote_json_whitespace json_whitespace = MOTE_JSON_WHITESPACE_FLEXIBLE;
  friend bool operator==(const GrammarSource&, const GrammarSource&) = default;

  Grammar compile(const Model& model) const;
};

class GrammarFlags {
 public:
  void add_to(CLI::App& app);
  // nullopt: no flag was given. Reads files. Errors: InputError.
  std::optional<GrammarSource> source() const;

 private:
  std::string json_schema_;
  std::string regex_;
  std::string grammar_;
  std::string syntax_;
  std::string whitespace_ = "flexible";
  const CLI::Option* json_schema_option_ = nullptr;
  const CLI::Option* regex_option_ = nullptr;
  const CLI::Option* grammar_option_ = nullptr;
};

}  // namespace mote::cli
