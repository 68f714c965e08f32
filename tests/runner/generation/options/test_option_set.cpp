#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "runner/generation/generation.h"
#include "runner/generation/options/option_set.h"
#include "runner/generation/options/other_names.h"
#include "runner/generation/sampling/sampler.h"
#include "runner/generation/vocabulary.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;

constexpr auto kGeneration = static_cast<int32_t>(OptionScope::kGeneration);

OptionSet given(const std::string& json, int32_t scopes = kAllScopes) {
  OptionSet options(scopes);
  const Status status = options.set_json(json);
  EXPECT_TRUE(status.ok()) << json << ": " << status.message();
  return options;
}

JsonTree shown(const OptionSet& options, const Model* model = nullptr) {
  const auto text = options.show(model);
  EXPECT_TRUE(text.ok()) << text.status().message();
  auto json = parse_json_tree(*text, 100);
  EXPECT_TRUE(json.has_value()) << *text;
  return json.has_value() ? *json : JsonTree();
}
std::string shown(const OptionSet& options, const char* name, const Model* model = nullptr) {
  const JsonTree json = shown(options, model);
  return json.find(name) == nullptr ? "" : json.find(name)->dump();
}

// The default of an option as JSON, if that is a value.
std::string default_of(const Option& option) { return option.show(default_values()); }

// ---- what is given ----

TEST(OptionSet, keeps_what_was_given_last) {
  OptionSet options(kAllScopes);
  EXPECT_FALSE(options.is_given("top_p"));
  ASSERT_TRUE(options.set("top_p", "0.5").ok());
  ASSERT_TRUE(options.set("top_p", "0.25").ok());
  EXPECT_TRUE(options.is_given("top_p"));
  EXPECT_EQ(shown(options, "top_p"), "0.25");
  EXPECT_EQ(options.set("top_p", "2").message(), "top_p = 2: must be a number, 0..1 (1: off)");
  EXPECT_EQ(shown(options, "top_p"), "0.25") << "after an error nothing has changed";
  EXPECT_FALSE(options.set("min_p", "2").ok());
  EXPECT_FALSE(options.is_given("min_p"));
  ASSERT_TRUE(options.unset("top_p").ok());
  ASSERT_TRUE(options.unset("top_p").ok());
  EXPECT_FALSE(options.is_given("top_p"));
  EXPECT_EQ(shown(options, "top_p"), "1");
}

TEST(OptionSet, unknown_options_and_those_of_other_scopes_are_refused) {
  for (const int32_t scopes : {1, 2, 4, 8, 3, 12, 15}) {
    for (const Option& option : all_options()) {
      OptionSet options(scopes);
      const std::string json = "{\"" + std::string(option.name) + "\": " + default_of(option) + "}";
      const bool is_of_it = (scopes & static_cast<int32_t>(option.scope)) != 0;
      EXPECT_EQ(options.unset(option.name).ok(), is_of_it) << option.name;
      EXPECT_EQ(options.set_json(json).ok(), is_of_it) << option.name;
      const Status status = options.set(option.name, "\x01");
      EXPECT_EQ(status.message().find("there is no option") == std::string::npos, is_of_it) << status.message();
      EXPECT_EQ(shown(options).find(option.name) != nullptr, is_of_it) << option.name;
    }
  }
  OptionSet options(static_cast<int32_t>(OptionScope::kModel));
  EXPECT_EQ(options.set("top_p", "1").message(),
            "there is no option 'top_p' here, it is one of a generation: must be one of backend, cache_dir, "
            "weights_file, name, mmap, "
            "sigbus_handler, tune");
  EXPECT_EQ(options.set("", "1").message().find("there is no option '': must be one of "), 0u);
  std::string longest;
  for (int i = 0; i < 100; ++i) longest += "\xE2\x82\xAC";
  const std::string message = options.set(longest, "1").message();
  EXPECT_TRUE(message.starts_with("there is no option '\xE2\x82\xAC"));
  EXPECT_NE(message.find("\xE2\x82\xAC': must be one of"), std::string::npos) << "cut behind a whole character";
}

TEST(OptionSet, names_of_other_software_are_taken_or_answered) {
  for (const auto& [name, option] : other_names()) {
    EXPECT_EQ(std::ranges::count(all_options(), name, &Option::name), 0) << name << " is an option itself";
    ASSERT_NE(find_option(name), nullptr) << name;
    EXPECT_EQ(find_option(name)->name, option);
    EXPECT_EQ(answer_for(name), "") << name << " has two meanings";
  }
  OptionSet options(kAllScopes);
  ASSERT_TRUE(options.set("temp", "0.5").ok());
  ASSERT_TRUE(options.set_json(R"({"max_tokens": 7, "stop": "x"})").ok());
  EXPECT_EQ(shown(options, "temperature"), "0.5");
  EXPECT_EQ(shown(options, "max_new_tokens"), "7");
  EXPECT_EQ(options.set("temp", "-1").message(),
            "temperature = -1: must be a number, 0 or more (0: always the likeliest)");
  EXPECT_EQ(options.set_json(R"({"stop": "x", "stop_strings": "y"})").message(),
            "stop and stop_strings are the same option: only one of them can be given");
  EXPECT_EQ(options.set("max_length", "5").message(),
            "there is no option 'max_length': it counts the prompt too; max_new_tokens does not");
  EXPECT_EQ(options.set("temprature", "5").message(), "there is no option 'temprature': did you mean 'temperature'?");
}

TEST(OptionSet, json_is_taken_whole_or_not_at_all) {
  OptionSet options = given(R"({"top_k": 7, "ignore_eos": true})");
  const auto before = *options.show(nullptr);
  for (const char* json :
       {R"({"top_k": 8, "top_p": 2})", R"({"top_k": 8, "unknown": 1})", R"({"ignore_eos": null, "top_k": "8"})",
        R"({"top_k": 8, "ignore_eos": 1})", "", "[]", "null", "7", "\"top_k\"", "{", "{\"top_k\": 8", "{\"top_k\": 8}}",
        "{\"top_k\": 1e999}", "{\"regex\": \"\xFF\"}"}) {
    const Status status = options.set_json(json);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    EXPECT_EQ(*options.show(nullptr), before) << json;
  }
  EXPECT_EQ(options.set_json("[]").message(), "the options must be a JSON object that nests at most 100 deep");
  const auto nested = [](size_t depth) {
    return "{\"json_schema\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(options.set_json(nested(99)).ok());
  EXPECT_FALSE(options.set_json(nested(100)).ok());
  EXPECT_FALSE(options.set_json(nested(200'000)).ok());
}

TEST(OptionSet, null_is_as_if_it_had_not_been_given) {
  OptionSet options = given(R"({"top_k": 7, "top_p": 0.5, "json_schema": {}})");
  ASSERT_TRUE(options.set_json(R"({"top_k": null, "json_schema": null, "min_p": null})").ok());
  for (const char* name : {"top_k", "json_schema", "min_p"}) EXPECT_FALSE(options.is_given(name)) << name;
  EXPECT_TRUE(options.is_given("top_p"));
  ASSERT_TRUE(options.set_json(R"({"top_p": 0.25, "top_p": 0.75})").ok());
  EXPECT_EQ(shown(options, "top_p"), "0.75");
  ASSERT_TRUE(options.set_json(R"({"top_p": 0.25, "top_p": null})").ok());
  EXPECT_FALSE(options.is_given("top_p"));
}

TEST(OptionSet, what_it_shows_gives_the_same_set_again) {
  OptionSet options = given(
      R"({"temperature": 1e-3, "seed": 18446744073709551615, "stop_strings": ["\n", "\"", "\u00e9"], "cpus": [0, 3],
          "logit_bias": {"5": "-inf"}, "sequence_bias": [[[1, 2], 0.1]], "json_schema": {"type": "integer"},
          "early_stopping": true, "dry_sequence_breakers": ["x", 3], "kv_dtype": "int8", "mmap": false})");
  for (const auto& [name, text] : {std::pair{"top_k", "007"}, std::pair{"min_p", ".5"}, std::pair{"top_p", "1E-1"},
                                   std::pair{"stop_token_ids", "[3]"}, std::pair{"backend", "cpu"}})
    ASSERT_TRUE(options.set(name, text).ok()) << name;
  OptionSet again(kAllScopes);
  const Status status = again.set_json(*options.show(nullptr));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(*again.show(nullptr), *options.show(nullptr));
  EXPECT_EQ(shown(OptionSet(kAllScopes), "seed"), "null") << "another one each time";
}

// ---- with a model ----

class OptionsOfModel : public testing::Test {
 protected:
  static std::shared_ptr<const Model> open(const std::string& generation_config, Ids eos = {},
                                           bool has_tokenizer = true) {
    test::ProgramBuilder builder = test::tiny_program();
    builder.program.generation_config = generation_config;
    builder.program.eos_token_ids = std::move(eos);
    if (!has_tokenizer) builder.tokenizer.clear();
    const test::TinyFile file(builder);
    auto model = Model::open(file.path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    return *model;
  }

  GenerationOptions generation(const OptionSet& options) const { return generation(options, *model_); }
  static GenerationOptions generation(const OptionSet& options, const Model& model) {
    auto resolved = options.generation(model);
    EXPECT_TRUE(resolved.ok()) << resolved.status().message();
    return *std::move(resolved);
  }
  // The message of what is refused.
  std::string refusal(const std::string& json) const {
    const Status status = given(json).generation(*model_).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    return status.message();
  }

  std::shared_ptr<const Model> model_ = open("{}");
};

TEST_F(OptionsOfModel, what_is_given_takes_the_place_of_the_models_default) {
  const auto model = open(R"({"top_k": 20, "top_p": 0.9, "max_new_tokens": 16, "stop_strings": ["a"]})");
  const OptionSet options = given(R"({"top_p": 0.5, "stop_strings": ["b", "c"], "max_time": 2})");
  const GenerationOptions found = generation(options, *model);
  EXPECT_EQ(found.sampling.top_k, 20);
  EXPECT_EQ(found.sampling.top_p, 0.5f);
  EXPECT_EQ(found.max_new_tokens, 16);
  EXPECT_EQ(OptionSet(kAllScopes).reply(*model)->max_new_tokens, 0);
  EXPECT_EQ(given(R"({"max_new_tokens": 5})").reply(*model)->max_new_tokens, 5);
  EXPECT_EQ(found.max_time, 2.0);
  EXPECT_EQ(found.stop_strings, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(shown(options, "top_k", model.get()), "20");
  EXPECT_EQ(shown(options, "top_p", model.get()), "0.5");
  EXPECT_EQ(shown(options, "top_k"), "50");
  EXPECT_EQ(generation(options).sampling.top_k, 50);
}

TEST_F(OptionsOfModel, without_one_what_was_not_given_is_off) {
  const auto sampling = given(R"({"min_p": 0.5})").sampling();
  ASSERT_TRUE(sampling.ok());
  EXPECT_EQ(sampling->top_k, 0);
  EXPECT_EQ(sampling->min_p, 0.5f);
  EXPECT_TRUE(sampling->do_sample);
  const auto dry = given(R"({"bad_words_ids": [[3]], "dry_multiplier": 1, "dry_sequence_breakers": [5]})").sampling();
  ASSERT_TRUE(dry.ok()) << dry.status().message();
  EXPECT_EQ(dry->sequence_bias.size(), 1u);
  EXPECT_EQ(dry->dry_sequence_breakers, Ids{5});
  EXPECT_FALSE(dry->do_sample);
  for (const char* json :
       {R"({"bad_words": ["ab"]})", R"({"bad_words": "ab"})", R"({"dry_sequence_breakers": [5, "ab"]})"}) {
    const Status status = given(json).sampling().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    EXPECT_NE(status.message().find("no tokenizer"), std::string::npos) << status.message();
  }
}

TEST_F(OptionsOfModel, options_that_ask_for_sampling_turn_it_on_and_no_others_do) {
  size_t num_asking = 0;
  for (const Option& option : all_options()) {
    const std::string value = default_of(option), name = option.name;
    if (value == "null" || name == "do_sample") continue;
    num_asking += option.asks_for_sampling;
    const OptionSet options = given("{\"" + name + "\": " + value + "}");
    EXPECT_EQ(generation(options).sampling.do_sample, option.asks_for_sampling) << name;
    EXPECT_EQ(options.sampling()->do_sample, option.asks_for_sampling) << name;
    EXPECT_EQ(shown(options, "do_sample"), option.asks_for_sampling ? "true" : "false") << name;
    const OptionSet greedy = given("{\"" + name + "\": " + value + ", \"do_sample\": false}");
    EXPECT_FALSE(generation(greedy).sampling.do_sample) << name;
    EXPECT_FALSE(greedy.sampling()->do_sample) << name;
  }
  EXPECT_GE(num_asking, 7u);
  for (const char* name : {"seed", "temperature", "top_k", "top_p", "min_p", "typical_p", "xtc_probability"})
    EXPECT_TRUE(find_option(name)->asks_for_sampling) << name;
  EXPECT_TRUE(generation(given(R"({"do_sample": true})")).sampling.do_sample);
  EXPECT_FALSE(generation(given("{}")).sampling.do_sample);
}

TEST_F(OptionsOfModel, a_model_that_samples_does_unless_told_not_to) {
  const auto model = open(R"({"do_sample": true, "temperature": 0.5})");
  EXPECT_TRUE(generation(given("{}"), *model).sampling.do_sample);
  EXPECT_EQ(generation(given("{}"), *model).sampling.temperature, 0.5f);
  EXPECT_FALSE(generation(given(R"({"do_sample": false, "top_p": 0.5})"), *model).sampling.do_sample);
}

TEST_F(OptionsOfModel, temperature_0_is_greedy) {
  for (const char* json : {R"({"temperature": 0})", R"({"temperature": 0, "do_sample": true, "top_p": 0.5})",
                           R"({"temperature": -0.0, "seed": 3})"}) {
    const GenerationOptions options = generation(given(json));
    EXPECT_TRUE(options.sampling.is_greedy()) << json;
    ASSERT_TRUE(check_generation(*model_, options).ok());
    Sampler sampler(options.sampling, 4);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 1.25f, 1.25f, 1.0f}), 1) << json;
  }
  EXPECT_FALSE(generation(given(R"({"temperature": 1e-30})")).sampling.is_greedy());
}

TEST_F(OptionsOfModel, a_seed_that_was_not_given_is_another_one_each_time) {
  const OptionSet with = given(R"({"seed": 7})"), without = given(R"({"do_sample": true})");
  std::set<uint64_t> seeds;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(generation(with).sampling.seed, 7u);
    EXPECT_EQ(with.sampling()->seed, 7u);
    seeds.insert(generation(without).sampling.seed);
    seeds.insert(without.sampling()->seed);
  }
  EXPECT_GE(seeds.size(), 15u);
  EXPECT_EQ(generation(given(R"({"seed": 0})")).sampling.seed, 0u);
}

// ---- tokens ----

TEST_F(OptionsOfModel, dry_has_the_usual_breakers_unless_others_were_given) {
  const auto breakers = [&](const char* json) { return generation(given(json)).sampling.dry_sequence_breakers; };
  EXPECT_EQ(breakers(R"({"dry_multiplier": 0.8})"), Ids{8});  // of the four the tokenizer has the line break
  EXPECT_EQ(breakers("{}"), Ids());
  EXPECT_EQ(breakers(R"({"dry_multiplier": 0})"), Ids());
  EXPECT_EQ(breakers(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": []})"), Ids());
  EXPECT_EQ(breakers(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": ["a ab", 7, "", "<eos>d"]})"), (Ids{9, 7, 4}));
  EXPECT_EQ(breakers(R"({"dry_sequence_breakers": "ab"})"), Ids{9});
  const auto own = open(R"({"dry_multiplier": 0.8, "dry_sequence_breakers": ["a"]})");
  EXPECT_EQ(generation(given("{}"), *own).sampling.dry_sequence_breakers, Ids{1});
  const auto dry = open(R"({"dry_multiplier": 0.8})");
  EXPECT_EQ(generation(given("{}"), *dry).sampling.dry_sequence_breakers, Ids{8});
  const auto wordless = open("{}", {}, false);
  EXPECT_EQ(generation(given(R"({"dry_multiplier": 0.8})"), *wordless).sampling.dry_sequence_breakers, Ids());
}

TEST_F(OptionsOfModel, bad_words_are_never_generated_nor_behind_a_space) {
  const auto banned = [](const GenerationOptions& options) {
    std::vector<Ids> all;
    for (const SequenceBias& entry : options.sampling.sequence_bias) {
      EXPECT_EQ(entry.bias, -HUGE_VALF);
      all.push_back(entry.ids);
    }
    return all;
  };
  EXPECT_EQ(banned(generation(given(R"({"bad_words": ["a", "ab"]})"))), (std::vector<Ids>{{1}, {11}, {9}, {5, 9}}));
  EXPECT_EQ(banned(generation(given(R"({"bad_words": "a"})"))), (std::vector<Ids>{{1}, {11}}));
  const auto ending = open("{}", {1});
  EXPECT_EQ(banned(generation(given(R"({"bad_words": ["a"], "bad_words_ids": [[1], [1, 1]]})"), *ending)),
            (std::vector<Ids>{{11}, {1, 1}}))
      << "an end-of-sequence token is no bad word";
  const auto wordless = open("{}", {}, false);
  const Status status = given(R"({"bad_words": ["a"]})").generation(*wordless).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("bad_words: ")) << status.message();
  EXPECT_TRUE(given(R"({"bad_words_ids": [[1]], "dry_sequence_breakers": [3]})").generation(*wordless).ok());
}

TEST_F(OptionsOfModel, biases_of_all_options_and_of_the_model_add_up) {
  const auto model = open(R"({"suppress_tokens": [3], "sequence_bias": [[[4], 1]]})");
  OptionSet options = given(
      R"({"sequence_bias": [[[1, 2], 0.5]], "logit_bias": {"5": -2}, "suppress_tokens": [6, 7], "bad_words_ids": [[8]]})");
  std::map<Ids, float> found;
  for (const SequenceBias& entry : generation(options, *model).sampling.sequence_bias) found[entry.ids] = entry.bias;
  const float never = -HUGE_VALF;
  EXPECT_EQ(found,
            (std::map<Ids, float>{
                {{1, 2}, 0.5f}, {{3}, never}, {{4}, 1.0f}, {{5}, -2.0f}, {{6}, never}, {{7}, never}, {{8}, never}}));
  ASSERT_TRUE(options.set("sequence_bias", "[[[9], 1]]").ok());
  EXPECT_EQ(generation(options, *model).sampling.sequence_bias.size(), 7u) << "in the place of what was given before";
}

// ---- grammars ----

TEST_F(OptionsOfModel, a_grammar_is_compiled_once_whatever_it_is_written_in) {
  for (const char* json : {R"({"json_schema": {"type": "integer"}})", R"({"json_schema": "{\"type\": \"integer\"}"})",
                           R"({"regex": "a+b"})", R"({"grammar": "root ::= \"a\""})", R"({"grammar": "start: \"a\""})",
                           R"({"grammar": "root ::= \"a\"", "grammar_syntax": "gbnf"})",
                           R"({"grammar": "start: \"a\"", "grammar_syntax": "lark"})"}) {
    const auto first = generation(given(json)).grammar;
    ASSERT_NE(first, nullptr) << json;
    EXPECT_EQ(generation(given(json)).grammar, first) << json;
    ASSERT_TRUE(check_generation(*model_, generation(given(json))).ok()) << json;
  }
  EXPECT_EQ(generation(given("{}")).grammar, nullptr);
  const auto compact = [&](const char* whitespace) {
    return generation(given(R"({"json_schema": {}, "json_whitespace": ")" + std::string(whitespace) + "\"}")).grammar;
  };
  EXPECT_NE(compact("compact"), compact("spaced"));
}

TEST_F(OptionsOfModel, grammars_are_kept_while_they_are_used) {
  const auto kept = generation(given(R"({"regex": "a"})")).grammar;
  std::weak_ptr<const constraints::Grammar> forgotten = generation(given(R"({"regex": "b"})")).grammar;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(generation(given(R"({"regex": "a"})")).grammar, kept);
    generation(given(R"({"regex": "c{)" + std::to_string(i) + "}\"}"));
  }
  EXPECT_TRUE(forgotten.expired());
}

TEST_F(OptionsOfModel, only_one_grammar_can_be_given) {
  const std::string several = "json_schema, regex and grammar: only one of them can be given";
  EXPECT_EQ(refusal(R"({"json_schema": {}, "regex": "a"})"), several);
  EXPECT_EQ(refusal(R"({"regex": "a", "grammar": "root ::= \"a\""})"), several);
  EXPECT_EQ(refusal(R"({"json_schema": {}, "grammar": "root ::= \"a\""})"), several);
  EXPECT_EQ(refusal(R"({"grammar_syntax": "lark"})"), "grammar_syntax = lark: needs a grammar");
  EXPECT_EQ(refusal(R"({"grammar_syntax": "gbnf", "regex": "a"})"), "grammar_syntax = gbnf: needs a grammar");
  OptionSet options = given(R"({"regex": "a"})");
  const auto other = constraints::Grammar::compile(*vocabulary_of(*model_), "b", {constraints::Syntax::kRegex});
  ASSERT_TRUE(other.ok());
  options.set_grammar(*other);
  EXPECT_EQ(options.generation(*model_).status().message(), several);
  ASSERT_TRUE(options.unset("regex").ok());
  EXPECT_EQ(generation(options).grammar, *other);
  options.set_grammar(nullptr);
  EXPECT_EQ(generation(options).grammar, nullptr);
}

TEST_F(OptionsOfModel, a_grammar_that_cannot_be_compiled_is_refused_with_its_place) {
  EXPECT_NE(refusal(R"({"json_schema": {"type": 3}})").find("#/type = 3"), std::string::npos);
  EXPECT_NE(refusal(R"({"grammar": "root ::=\n  ("})").find("line 2"), std::string::npos);
  EXPECT_NE(refusal(R"({"grammar": "root ::= \"a\"", "grammar_syntax": "lark"})"), "");
  EXPECT_NE(refusal(R"({"regex": "("})"), "");
  const auto wordless = open("{}", {}, false);
  EXPECT_EQ(given(R"({"regex": "a"})").generation(*wordless).status().code(), Code::kInvalidArgument);
}

// ---- other structs ----

TEST_F(OptionsOfModel, a_beam_search_has_its_own_options_and_edits_of_a_generation) {
  const auto options = given(R"({"num_beams": 8, "num_return_sequences": 2, "length_penalty": -0.5, "max_new_tokens": 9,
                                 "early_stopping": "never", "ignore_eos": true, "repetition_penalty": 1.5})")
                           .beam_search(*model_);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->num_beams, 8);
  EXPECT_EQ(options->num_return_sequences, 2);
  EXPECT_EQ(options->length_penalty, -0.5);
  EXPECT_EQ(options->early_stopping, EarlyStopping::kNever);
  EXPECT_EQ(options->max_new_tokens, 9);
  EXPECT_TRUE(options->ignore_eos);
  EXPECT_EQ(options->edits.repetition_penalty, 1.5f);
  const auto stopping = [&](const char* value) {
    return given(R"({"early_stopping": )" + std::string(value) + "}").beam_search(*model_)->early_stopping;
  };
  EXPECT_EQ(stopping("false"), EarlyStopping::kHeuristic);
  EXPECT_EQ(stopping("true"), EarlyStopping::kFull);
  EXPECT_EQ(stopping("\"true\""), EarlyStopping::kFull);
  const auto defaults = OptionSet(kGeneration).beam_search(*model_);
  EXPECT_EQ(defaults->num_beams, 4);
  EXPECT_EQ(defaults->num_return_sequences, 1);
}

TEST(OptionSet, sessions_and_models_have_theirs) {
  OptionSet options = given(
      R"({"context_length": 9, "kv_dtype": "int4", "threads": 2, "prefill_chunk": 3, "cpus": [0, 2], "priority": "low",
          "overflow": "shift", "num_keep": 4, "rewind_tokens": 7, "rewind_mb": 8, "backend": "cpu",
          "cache_dir": "/tmp", "name": "a", "mmap": false, "sigbus_handler": false, "tune": true})");
  const auto cache = std::make_shared<PrefixCache>(uint64_t{1} << 20);
  options.set_prefix_cache(cache);
  double told = -1.0;
  options.set_progress([&](double fraction) {
    told = fraction;
    return Status();
  });
  const auto session = options.session();
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->context_length, 9);
  EXPECT_EQ(session->kv_dtype, KvType::kInt4);
  EXPECT_EQ(session->threads, 2);
  EXPECT_EQ(session->prefill_chunk, 3);
  EXPECT_EQ(session->cpus, "0,2");
  EXPECT_EQ(session->priority, ThreadPriority::kLow);
  EXPECT_EQ(session->overflow, Overflow::kShift);
  EXPECT_EQ(session->num_keep, 4);
  EXPECT_EQ(session->rewind_tokens, 7);
  EXPECT_EQ(session->rewind_mb, 8);
  EXPECT_EQ(session->prefix_cache, cache);
  const auto model = options.model();
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->backend, "cpu");
  EXPECT_EQ(model->cache_dir, "/tmp");
  EXPECT_EQ(model->name, "a");
  EXPECT_FALSE(model->mmap);
  EXPECT_FALSE(model->sigbus_handler);
  EXPECT_TRUE(model->tune);
  ASSERT_TRUE(model->progress(0.5).ok());
  EXPECT_EQ(told, 0.5);
  EXPECT_EQ(OptionSet(kAllScopes).session()->cpus, std::nullopt);
  EXPECT_EQ(OptionSet(kAllScopes).model()->backend, "auto");
}

TEST_F(OptionsOfModel, threads_read_one_set_together) {
  const OptionSet options = given(R"({"regex": "ab*", "bad_words": ["d"], "dry_multiplier": 1, "seed": 1})");
  const std::string expected = *options.show(model_.get());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(generation(options).sampling.sequence_bias.size(), 2u);
        EXPECT_EQ(*options.show(model_.get()), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mote
