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
  int32_t syntax = 0;           // MOTE_SYNTAX_*
  int32_t json_whitespace = 0;  // MOTE_JSON_WHITESPACE_*
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
