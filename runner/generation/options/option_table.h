// Everything that a user may set, one row each: what the C API's set-by-name, the command line, Python, the server,
// generation_config.json and the docs know of options.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "runner/generation/beam_search.h"
#include "runner/generation/generation_options.h"
#include "runner/generation/options/accepted.h"
#include "runner/session/options.h"

namespace mote {

// What an option belongs to; a set of options has those of one or several.
enum class OptionScope : int32_t { kGeneration = 1, kBeamSearch = 2, kSession = 4, kModel = 8 };
inline constexpr int32_t kAllScopes = 15;

enum class OptionKind : uint8_t {
  kFlag,
  kInteger,
  kNumber,
  kChoice,
  kText,
  kTexts,
  kTokenIds,
  kTokens,        // texts or token ids
  kTokenIdLists,  // lists of token ids
  kBiases,        // lists of token ids, each with a number
};
const char* name_of(OptionKind kind);

// How the source of a grammar is written. kAuto: GBNF if there is a ::= in it, else Lark.
enum class GrammarSyntax : uint8_t { kAuto = 0, kGbnf, kLark };

// A grammar by its source, of which at most one is given.
struct GrammarRequest {
  std::optional<std::string> json_schema;
  std::optional<std::string> regex;
  std::optional<std::string> grammar;
  GrammarSyntax grammar_syntax = GrammarSyntax::kAuto;
  constraints::JsonWhitespace json_whitespace = constraints::JsonWhitespace::kFlexible;
};

// A value for each option.
struct OptionValues {
  GenerationOptions generation{};
  GrammarRequest grammar{};
  BeamSearchOptions beam_search{};
  SessionOptions session{};
  OpenOptions model{};
};

// Values before anything is given: what the core has, but as transformers and as front ends begin: top_k 50,
// speculative auto.
OptionValues default_values();

struct Option {
  const char* name;
  OptionScope scope;
  OptionKind kind;
  Accepted accepted;
  const char* unit;
  bool asks_for_sampling;
  const char* help;
  std::span<const std::string_view> choices;
  // Writes a JSON value to the option's place. `model`: for what is tokens of it; nullptr: that is only checked.
  // Errors: kInvalidArgument with the name, the value and what would be accepted.
  Status (*read)(const Option& option, const JsonTree& from, OptionValues& to, const Model* model);
  // The option's value as JSON.
  std::string (*show)(const OptionValues& values);

  // The same where nothing was given; null for the seed, which is then another one each time.
  std::string show_default(const OptionValues& defaults) const;
  std::string accepted_text() const;
};

std::span<const Option> all_options();
// Also by another name of it (other_names.h). nullptr: there is none of that name.
const Option* find_option(std::string_view name);

// A JSON list of objects: name, other_names, scope, type, choices, minimum, maximum, default, unit, asks_for_sampling,
// accepted, help.
std::string describe_options();

// What a user wrote as a JSON value of the option's kind. Errors: as Option::read.
Result<JsonTree> value_of_text(const Option& option, std::string_view text);

}  // namespace mote
