// The flags of `run` that make text follow a grammar.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "runner/cli/handles.h"

namespace mote::cli {

using Grammar = std::unique_ptr<mote_grammar, Closer<mote_grammar_close>>;

class GrammarFlags {
 public:
  void add_to(CLI::App& app);
  // Compiled for the model; nullptr: no flag was given.
  Grammar compile(const Model& model) const;

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
