#include "runner/generation/options/option_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "base/decimal.h"
#include "runner/generation/options/other_names.h"
#include "runner/generation/options/read_value.h"
#include "runner/generation/options/token_lists.h"

namespace mote {
namespace {

using Names = std::span<const std::string_view>;

// In the order of the enums' values.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kNames{};
template <>
inline constexpr std::array<std::string_view, 4> kNames<KvType>{"float32", "float16", "int8", "int4"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<ThreadPriority>{"normal", "low", "high"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Overflow>{"refuse", "shift"};
template <>
inline constexpr std::array<std::string_view, 5> kNames<SpeculationMode>{"auto", "off", "lookup", "draft", "mtp"};
template <>
inline constexpr std::array<std::string_view, 2> kNames<Mirostat>{"0", "2"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<EarlyStopping>{"false", "true", "never"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<GrammarSyntax>{"auto", "gbnf", "lark"};
template <>
inline constexpr std::array<std::string_view, 3> kNames<constraints::JsonWhitespace>{"flexible", "compact", "spaced"};
static_assert(KvType::kInt4 == KvType{3} && ThreadPriority::kHigh == ThreadPriority{2} &&
              Overflow::kShift == Overflow{1});
static_assert(SpeculationMode::kMtp == SpeculationMode{4} && EarlyStopping::kNever == EarlyStopping{2});
static_assert(GrammarSyntax::kLark == GrammarSyntax{2});
static_assert(constraints::JsonWhitespace::kSpaced == constraints::JsonWhitespace{2});

template <typename T>
constexpr OptionKind kind_of() {
  if constexpr (std::is_enum_v<T>) return OptionKind::kChoice;
  if constexpr (std::is_same_v<T, bool>) return OptionKind::kFlag;
  if constexpr (std::is_integral_v<T>) return OptionKind::kInteger;
  if constexpr (std::is_floating_point_v<T>) return OptionKind::kNumber;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return OptionKind::kTexts;
  if constexpr (std::is_same_v<T, std::vector<int32_t>>) return OptionKind::kTokenIds;
  return OptionKind::kText;
}

template <typename T>
constexpr Names names_of() {
  if constexpr (std::is_enum_v<T>) return kNames<T>;
  return {};
}

template <auto place>
Status read_place(const Option& option, const JsonTree& from, OptionValues& to, const Model*) {
  auto& field = place(to);
  if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(field)>>) {
    MOTE_ASSIGN(const size_t choice, read_choice(option, from));
    field = static_cast<std::remove_cvref_t<decltype(field)>>(choice);
    return {};
  } else {
    return read_value(option, from, field);
  }
}

template <auto place>
std::string show_place(const OptionValues& values) {
  const auto& field = place(values);
  using Field = std::remove_cvref_t<decltype(field)>;
  if constexpr (std::is_enum_v<Field>)
    return json_of(kNames<Field>[static_cast<size_t>(field)]);
  else
    return json_of(field);
}

enum Trait : bool { kPlain = false, kAsksForSampling = true };

// The option whose value lies at place(values).
template <auto place>
constexpr Option at(const char* name, OptionScope scope, Accepted accepted, const char* unit, Trait trait,
                    const char* help) {
  using Field = std::remove_cvref_t<decltype(place(std::declval<OptionValues&>()))>;
  return {name,  scope, kind_of<Field>(),  accepted,          unit,
          trait, help,  names_of<Field>(), read_place<place>, show_place<place>};
}

// A schema as text or as JSON itself.
Status read_json_schema(const Option&, const JsonTree& from, OptionValues& to, const Model*) {
  to.grammar.json_schema = from.kind == JsonTree::Kind::kString ? from.text : from.dump();
  return {};
}

// The CPUs as "0-3,6", or a list of their numbers.
Status read_cpus(const Option& option, const JsonTree& from, OptionValues& to, const Model*) {
  std::string text = from.kind == JsonTree::Kind::kString ? from.text : "";
  if (from.kind == JsonTree::Kind::kArray) {
    std::vector<int32_t> cpus;
    MOTE_RETURN_IF_ERROR(read_value(option, from, cpus));
    for (const int32_t cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  }
  if (text.empty()) return wrong_value(option, from);
  to.session.cpus = std::move(text);
  return {};
}

constexpr auto kGenerationScope = OptionScope::kGeneration;

#define MOTE_ROW(scope, member, name, type, default_value, accepted, unit, trait, help) \
  at<[](auto& values) -> auto& { return values.member.name; }>(#name, scope, accepted, unit, trait, help),
#define MOTE_SAMPLING_ROW(...) MOTE_ROW(kGenerationScope, generation.sampling, __VA_ARGS__)
#define MOTE_GENERATION_ROW(...) MOTE_ROW(kGenerationScope, generation, __VA_ARGS__)
#define MOTE_SPECULATION_ROW(...) MOTE_ROW(kGenerationScope, generation.speculation, __VA_ARGS__)
#define MOTE_BEAM_SEARCH_ROW(...) MOTE_ROW(OptionScope::kBeamSearch, beam_search, __VA_ARGS__)
#define MOTE_SESSION_ROW(...) MOTE_ROW(OptionScope::kSession, session, __VA_ARGS__)
#define MOTE_MODEL_ROW(...) MOTE_ROW(OptionScope::kModel, model, __VA_ARGS__)
#define MOTE_GRAMMAR_ROW(name, help) \
  at<[](auto& values) -> auto& { return values.grammar.name; }>(#name, kGenerationScope, anything(), "", kPlain, help)

constexpr Option list(const char* name, OptionKind kind, const char* note, const char* help,
                      decltype(Option::read) read, decltype(Option::show) show) {
  return {name, kGenerationScope, kind, noted(note), "", false, help, {}, read, show};
}

std::string show_nothing(const OptionValues&) { return "null"; }

// What is also accepted as JSON of another kind.
template <size_t count>
constexpr std::array<Option, count> with_readers(std::array<Option, count> options) {
  for (Option& option : options) {
    if (std::string_view(option.name) == "json_schema") option.read = read_json_schema;
    if (std::string_view(option.name) == "cpus") option.read = read_cpus;
  }
  return options;
}

constexpr auto kOptions = with_readers(std::to_array<Option>(
    {MOTE_GENERATION_OPTIONS(MOTE_GENERATION_ROW) MOTE_SAMPLING_OPTIONS(MOTE_SAMPLING_ROW)
         MOTE_SPECULATION_OPTIONS(MOTE_SPECULATION_ROW)
             list("dry_sequence_breakers", OptionKind::kTokens, "\"\\n\", \":\", \"\\\"\" and \"*\" unless given",
                  "DRY: no repetition goes across the last token of these", read_dry_sequence_breakers,
                  show_dry_sequence_breakers),
     list("sequence_bias", OptionKind::kBiases, "-inf: never",
          "Added to the logit of the last token of a sequence where the others stand at the end of the text",
          read_sequence_bias, show_sequence_bias),
     list("logit_bias", OptionKind::kBiases, "-inf: never", "Added to the logits of tokens", read_logit_bias,
          show_nothing),
     list("bad_words", OptionKind::kTexts, "", "Texts that are never generated, nor with a space before them",
          read_bad_words, show_nothing),
     list("bad_words_ids", OptionKind::kTokenIdLists, "", "Sequences of tokens that are never generated",
          read_bad_words_ids, show_nothing),
     list("suppress_tokens", OptionKind::kTokenIds, "", "Tokens that are never generated", read_suppress_tokens,
          show_nothing),
     at<[](auto& values) -> auto& { return values.generation.stop_strings; }>(
         "stop_strings", kGenerationScope, anything(), "", kPlain, "End before the first of these texts"),
     at<[](auto& values) -> auto& { return values.generation.stop_token_ids; }>(
         "stop_token_ids", kGenerationScope, anything(), "", kPlain,
         "End at the first of these tokens, which are no text"),
     MOTE_GRAMMAR_ROW(json_schema, "The text is JSON that this schema accepts"),
     MOTE_GRAMMAR_ROW(regex, "The whole text matches this regular expression"),
     MOTE_GRAMMAR_ROW(grammar, "The text follows this grammar"),
     MOTE_GRAMMAR_ROW(grammar_syntax, "Of the grammar; auto: gbnf if there is a ::= in it, else lark"),
     MOTE_GRAMMAR_ROW(json_whitespace, "Between the parts of JSON that a schema asks for"),
     MOTE_BEAM_SEARCH_OPTIONS(MOTE_BEAM_SEARCH_ROW) MOTE_SESSION_OPTIONS(MOTE_SESSION_ROW)
         MOTE_MODEL_OPTIONS(MOTE_MODEL_ROW)}));

// Literals of the language of shells and of C, as JSON writes them: +5, 007, .5
JsonTree number_of_text(std::string_view text) {
  using Kind = JsonTree::Kind;
  std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
  const bool is_signed_twice = digits.size() < text.size() && digits.starts_with('-');
  const std::optional<double> number = read_decimal(digits);
  if (is_signed_twice || !number.has_value() || !std::isfinite(*number))
    return {Kind::kString, 0.0, std::string(text), {}, {}};
  if (digits.find_first_not_of("-0123456789") != std::string_view::npos)
    return {Kind::kFloat, *number, json_of(*number + 0.0), {}, {}};  // no -0, which JSON would read as an integer
  digits.remove_prefix(std::min(digits.find_first_not_of("-0"), digits.size() - 1));
  return {Kind::kInteger, *number, (*number < 0.0 ? "-" : "") + std::string(digits), {}, {}};
}

constexpr size_t kMaxValueDepth = 64;

}  // namespace

const char* name_of(OptionKind kind) {
  switch (kind) {
    case OptionKind::kFlag: return "flag";
    case OptionKind::kInteger: return "integer";
    case OptionKind::kNumber: return "number";
    case OptionKind::kChoice: return "choice";
    case OptionKind::kText: return "text";
    case OptionKind::kTexts: return "texts";
    case OptionKind::kTokenIds: return "token_ids";
    case OptionKind::kTokens: return "tokens";
    case OptionKind::kTokenIdLists: return "token_id_lists";
    case OptionKind::kBiases: return "biases";
  }
  return "";
}

OptionValues default_values() {
  OptionValues values;
  values.generation.sampling.top_k = 50;
  values.generation.speculation.speculative = SpeculationMode::kAuto;
  return values;
}

std::string Option::accepted_text() const {
  switch (kind) {
    case OptionKind::kFlag: return "true or false";
    case OptionKind::kInteger: return mote::accepted_text("an integer", accepted);
    case OptionKind::kNumber: return mote::accepted_text("a number", accepted);
    case OptionKind::kText: return mote::accepted_text("a text", accepted);
    case OptionKind::kTexts: return mote::accepted_text("a text or a list of texts, none of them empty", accepted);
    case OptionKind::kTokenIds: return mote::accepted_text("a list of token ids", accepted);
    case OptionKind::kTokens: return mote::accepted_text("a list of texts or token ids", accepted);
    case OptionKind::kTokenIdLists:
      return mote::accepted_text("a list of lists of token ids, none of them empty", accepted);
    case OptionKind::kBiases:
      return mote::accepted_text(std::string_view(name) == "logit_bias"
                                     ? "an object of token ids and numbers, such as {\"42\": -1.5}"
                                     : "a list of token ids with a number, such as [[[5, 6], -1.5]]",
                                 accepted);
    case OptionKind::kChoice: break;
  }
  std::string text = "one of ";
  for (const std::string_view choice : choices) text += (choice == choices[0] ? "" : ", ") + std::string(choice);
  return text;
}

std::string Option::show_default(const OptionValues& defaults) const {
  return std::string_view(name) == "seed" ? "null" : show(defaults);
}

std::span<const Option> all_options() { return kOptions; }

const Option* find_option(std::string_view name) {
  const auto other = std::ranges::find(other_names(), name, &OtherName::name);
  const std::string_view own = other == other_names().end() ? name : other->option;
  const auto found = std::ranges::find(kOptions, own, &Option::name);
  return found == std::end(kOptions) ? nullptr : found;
}

Result<JsonTree> value_of_text(const Option& option, std::string_view text) {
  using Kind = JsonTree::Kind;
  JsonTree value{Kind::kString, 0.0, std::string(text), {}, {}};
  switch (option.kind) {
    case OptionKind::kFlag:
      for (const std::string_view word : {"true", "1", "on", "yes"})
        if (text == word) return JsonTree{Kind::kBoolean, 1.0, {}, {}, {}};
      for (const std::string_view word : {"false", "0", "off", "no"})
        if (text == word) return JsonTree{Kind::kBoolean, 0.0, {}, {}, {}};
      return wrong_value(option, value);
    case OptionKind::kInteger:
    case OptionKind::kNumber: value = number_of_text(text); break;
    case OptionKind::kChoice:
    case OptionKind::kText: break;
    case OptionKind::kTexts:
    case OptionKind::kTokens:
    case OptionKind::kTokenIds:
    case OptionKind::kTokenIdLists:
    case OptionKind::kBiases:
      if (auto parsed = parse_json_tree(text, kMaxValueDepth); parsed.has_value()) {
        const bool is_list = parsed->kind == Kind::kArray || parsed->kind == Kind::kObject;
        if (is_list || parsed->kind == Kind::kString) value = *std::move(parsed);
      }
      break;
  }
  OptionValues scratch;
  MOTE_RETURN_IF_ERROR(option.read(option, value, scratch, nullptr));
  return value;
}

std::string describe_options() {
  static constexpr std::array<std::string_view, 4> kScopes{"generation", "beam_search", "session", "model"};
  const OptionValues defaults = default_values();
  std::string text;
  for (const Option& option : kOptions) {
    std::string choices;
    for (const std::string_view choice : option.choices) choices += (choices.empty() ? "" : ", ") + json_of(choice);
    std::string others;
    for (const auto& [name, own] : other_names()) {
      if (own == option.name) others += (others.empty() ? "" : ", ") + json_of(name);
    }
    const auto bit = static_cast<uint32_t>(option.scope);
    const auto limit = [](double value) { return std::isfinite(value) ? json_of(value) : std::string("null"); };
    text += text.empty() ? "[" : ",\n ";
    text += "{\"name\": " + json_of(std::string_view(option.name)) + ", \"other_names\": [" + others + "]" +
            ", \"scope\": " + json_of(kScopes[static_cast<size_t>(std::countr_zero(bit))]) +
            ", \"type\": " + json_of(std::string_view(name_of(option.kind))) + ", \"choices\": [" + choices +
            "], \"minimum\": " + limit(option.accepted.least) + ", \"maximum\": " + limit(option.accepted.most) +
            ", \"default\": " + option.show_default(defaults) +
            ", \"unit\": " + json_of(std::string_view(option.unit)) +
            ", \"asks_for_sampling\": " + json_of(option.asks_for_sampling) +
            ", \"accepted\": " + json_of(option.accepted_text()) +
            ", \"help\": " + json_of(std::string_view(option.help)) + "}";
  }
  return text + "]";
}

}  // namespace mote
