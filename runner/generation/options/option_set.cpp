#include "runner/generation/options/option_set.h"

#include <algorithm>
#include <random>
#include <vector>

#include "base/closest.h"
#include "base/utf8.h"
#include "runner/generation/defaults.h"
#include "runner/generation/options/compiled_grammars.h"
#include "runner/generation/options/other_names.h"
#include "runner/generation/options/read_value.h"
#include "runner/generation/options/token_lists.h"

namespace mote {
namespace {

constexpr size_t kMaxOptionsDepth = 100;  // of a schema among the values
constexpr size_t kMostNameShown = 60;     // bytes of a name in a message
constexpr const char* kDrySequenceBreakers[] = {"\n", ":", "\"", "*"};

bool has(int32_t scopes, OptionScope scope) { return (scopes & static_cast<int32_t>(scope)) != 0; }

const char* owner_of(OptionScope scope) {
  switch (scope) {
    case OptionScope::kGeneration: return "a generation";
    case OptionScope::kBeamSearch: return "a beam search";
    case OptionScope::kSession: return "a session";
    case OptionScope::kModel: return "a model that is loaded";
  }
  return "";
}

// Whether a value is, or has, texts that stand for tokens.
bool has_texts_of_tokens(const Option& option, const JsonTree& value) {
  if (option.kind != OptionKind::kTokens && std::string_view(option.name) != "bad_words") return false;
  const auto is_text = [](const JsonTree& item) { return item.kind == JsonTree::Kind::kString; };
  return is_text(value) || std::ranges::any_of(value.children, is_text);
}

// The last token of each of the usual ones; none where there is no tokenizer.
Result<std::vector<int32_t>> usual_breakers(const Model& model) {
  std::vector<int32_t> ids;
  MOTE_ASSIGN(const Tokenizer* tokenizer, model.tokenizer());
  if (tokenizer == nullptr) return ids;
  for (const char* text : kDrySequenceBreakers) {
    MOTE_ASSIGN(const std::vector<int32_t> of_text,
                tokenizer->encode(text, {.add_special = false, .parse_special = false}));
    if (!of_text.empty()) ids.push_back(of_text.back());
  }
  return ids;
}

}  // namespace

Result<const Option*> OptionSet::find(std::string_view name) const {
  const Option* option = find_option(name);
  if (option != nullptr && has(scopes_, option->scope)) return option;
  std::vector<std::string_view> names;
  for (const Option& each : all_options()) {
    if (has(scopes_, each.scope)) names.emplace_back(each.name);
  }
  std::string_view shown = name.substr(0, kMostNameShown);
  shown.remove_suffix(incomplete_utf8_suffix(shown));
  std::string text = "there is no option '" + std::string(shown) + "'";
  if (const std::string_view answer = answer_for(name); !answer.empty()) {
    return Status(Code::kInvalidArgument, text + ": " + std::string(answer));
  }
  if (option != nullptr) {
    text += std::string(" here, it is one of ") + owner_of(option->scope);
  } else if (const std::string meant = did_you_mean(name, names); !meant.empty()) {
    return Status(Code::kInvalidArgument, text + meant);
  }
  text += ": must be one of ";
  for (const std::string_view each : names) text += (each == names[0] ? "" : ", ") + std::string(each);
  return Status(Code::kInvalidArgument, text);
}

bool OptionSet::is_given(std::string_view name) const { return given_.find(name) != given_.end(); }

Status OptionSet::set(std::string_view name, std::string_view text) {
  MOTE_ASSIGN(const Option* option, find(name));
  MOTE_ASSIGN(given_[option->name], value_of_text(*option, text));
  return {};
}

Status OptionSet::unset(std::string_view name) {
  MOTE_ASSIGN(const Option* option, find(name));
  given_.erase(option->name);
  return {};
}

Status OptionSet::set_json(std::string_view json) {
  auto parsed = parse_json_tree(json, kMaxOptionsDepth);
  MOTE_REQUIRE(parsed.has_value() && parsed->kind == JsonTree::Kind::kObject, Code::kInvalidArgument,
               "the options must be a JSON object that nests at most %zu deep", kMaxOptionsDepth);
  auto changed = given_;
  std::map<const Option*, std::string_view> seen;
  for (size_t i = 0; i < parsed->names.size(); ++i) {
    MOTE_ASSIGN(const Option* option, find(parsed->names[i]));
    const auto [other, is_first] = seen.emplace(option, parsed->names[i]);
    MOTE_REQUIRE(is_first || other->second == parsed->names[i], Code::kInvalidArgument,
                 "%s and %s are the same option: only one of them can be given", std::string(other->second).c_str(),
                 parsed->names[i].c_str());
    changed.erase(option->name);
    if (parsed->children[i].kind == JsonTree::Kind::kNull) continue;
    OptionValues scratch;
    MOTE_RETURN_IF_ERROR(option->read(*option, parsed->children[i], scratch, nullptr));
    changed.emplace(option->name, std::move(parsed->children[i]));
  }
  given_ = std::move(changed);
  return {};
}

Status OptionSet::apply(OptionScope scope, OptionValues& values, const Model* model) const {
  for (const auto& [name, value] : given_) {
    const Option& option = *find_option(name);
    if (option.scope == scope) MOTE_RETURN_IF_ERROR(option.read(option, value, values, model));
  }
  return {};
}

void OptionSet::resolve_sampling(SamplingOptions& sampling) const {
  const bool is_asked_for = std::ranges::any_of(
      all_options(), [&](const Option& option) { return option.asks_for_sampling && is_given(option.name); });
  if (is_asked_for && !is_given("do_sample")) sampling.do_sample = true;
  if (!is_given("seed")) sampling.seed = std::random_device()();
}

Result<GenerationOptions> OptionSet::generation(const Model& model) const {
  OptionValues values;
  MOTE_ASSIGN(const auto defaults, generation_defaults(model));
  values.generation = *defaults;
  MOTE_RETURN_IF_ERROR(apply(OptionScope::kGeneration, values, &model));
  SamplingOptions& sampling = values.generation.sampling;
  resolve_sampling(sampling);
  const bool has_breakers = is_given("dry_sequence_breakers") || !sampling.dry_sequence_breakers.empty();
  if (sampling.dry_multiplier != 0.0f && !has_breakers) {
    MOTE_ASSIGN(sampling.dry_sequence_breakers, usual_breakers(model));
  }
  MOTE_ASSIGN(values.generation.grammar, compiled_grammar(model, values.grammar));
  MOTE_REQUIRE(grammar_ == nullptr || values.generation.grammar == nullptr, Code::kInvalidArgument,
               "json_schema, regex and grammar: only one of them can be given");
  if (grammar_ != nullptr) values.generation.grammar = grammar_;
  return std::move(values.generation);
}

Result<GenerationOptions> OptionSet::reply(const Model& model) const {
  auto options = generation(model);
  if (options.ok() && !is_given("max_new_tokens")) options->max_new_tokens = 0;
  return options;
}

Result<SamplingOptions> OptionSet::sampling() const {
  for (const auto& [name, value] : given_) {
    MOTE_REQUIRE(!has_texts_of_tokens(*find_option(name), value), Code::kInvalidArgument,
                 "%s has texts, but there is no tokenizer here: must be token ids", name.c_str());
  }
  OptionValues values;
  MOTE_RETURN_IF_ERROR(apply(OptionScope::kGeneration, values, nullptr));
  resolve_sampling(values.generation.sampling);
  return std::move(values.generation.sampling);
}

Result<BeamSearchOptions> OptionSet::beam_search(const Model& model) const {
  OptionValues values;
  MOTE_RETURN_IF_ERROR(apply(OptionScope::kBeamSearch, values, nullptr));
  MOTE_ASSIGN(GenerationOptions generation, this->generation(model));
  values.beam_search.max_new_tokens = generation.max_new_tokens;
  values.beam_search.ignore_eos = generation.ignore_eos;
  values.beam_search.edits = std::move(generation.sampling);
  return std::move(values.beam_search);
}

Result<SessionOptions> OptionSet::session() const {
  OptionValues values;
  MOTE_RETURN_IF_ERROR(apply(OptionScope::kSession, values, nullptr));
  values.session.prefix_cache = prefix_cache_;
  return std::move(values.session);
}

Result<OpenOptions> OptionSet::model() const {
  OptionValues values;
  MOTE_RETURN_IF_ERROR(apply(OptionScope::kModel, values, nullptr));
  values.model.progress = progress_;
  return std::move(values.model);
}

Result<std::string> OptionSet::show(const Model* model) const {
  OptionValues values = default_values();
  if (model != nullptr) {
    MOTE_ASSIGN(const auto defaults, generation_defaults(*model));
    values.generation = *defaults;
  }
  resolve_sampling(values.generation.sampling);
  std::string text;
  for (const Option& option : all_options()) {
    if (!has(scopes_, option.scope)) continue;
    const auto given = given_.find(option.name);
    text += (text.empty() ? "{" : ", ") + json_of(std::string_view(option.name)) + ": " +
            (given != given_.end() ? given->second.dump() : option.show_default(values));
  }
  return text.empty() ? "{}" : text + "}";
}

}  // namespace mote
