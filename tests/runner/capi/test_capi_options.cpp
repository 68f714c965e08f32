// Options by name through the C API.
#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "tests/runner/capi/fixture.h"

namespace mote {
namespace {

using CApiOptions = CApi;
using Json = nlohmann::json;

TEST_F(CApiOptions, the_table_tells_what_there_is) {
  char* json = nullptr;
  ASSERT_EQ(mote_describe_options(&json, &error_), MOTE_OK) << error_.message;
  const Json table = Json::parse(taken(json));
  std::map<std::string, int> scopes;
  for (const Json& row : table) ++scopes[row["scope"]];
  EXPECT_EQ(scopes.size(), 4u);
  const std::pair<std::string, int32_t> kScopes[] = {{"generation", MOTE_SCOPE_GENERATION},
                                                     {"beam_search", MOTE_SCOPE_BEAM_SEARCH},
                                                     {"session", MOTE_SCOPE_SESSION},
                                                     {"model", MOTE_SCOPE_MODEL}};
  for (const auto& [name, scope] : kScopes) {
    const GivenOptions options("{}", scope);
    EXPECT_EQ(Json::parse(options.values()).size(), static_cast<size_t>(scopes[name])) << name;
    for (const Json& row : table) {
      const std::string option = row["name"];
      EXPECT_EQ(options.refusal(option.c_str(), nullptr).empty(), row["scope"] == name) << option;
    }
  }
  EXPECT_EQ(mote_describe_options(nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
}

TEST_F(CApiOptions, are_set_by_name_and_unset_by_null) {
  const GivenOptions options;
  EXPECT_EQ(options.refusal("top_p", "0.5"), "");
  EXPECT_EQ(Json::parse(options.values())["top_p"], 0.5);
  EXPECT_EQ(options.refusal("top_p", nullptr), "");
  EXPECT_EQ(options.refusal("top_p", nullptr), "");
  EXPECT_EQ(Json::parse(options.values())["top_p"], 1);
  options.set(R"({"top_p": 0.25, "seed": 3})");
  options.set(R"({"top_p": null})");
  EXPECT_EQ(Json::parse(options.values())["top_p"], 1);
  EXPECT_EQ(Json::parse(options.values())["seed"], 3);
}

TEST_F(CApiOptions, what_is_wrong_is_named_with_what_would_be_accepted) {
  const GivenOptions options;
  EXPECT_EQ(options.refusal("top_p", "2"), "top_p = 2: must be a number, 0..1 (1: off)");
  EXPECT_EQ(options.refusal("top_p", "much"), "top_p = \"much\": must be a number, 0..1 (1: off)");
  EXPECT_EQ(options.refusal("top_k", "1.5"), "top_k = 1.5: must be an integer, 0 or more (0: off)");
  EXPECT_EQ(options.refusal("do_sample", "2"), "do_sample = \"2\": must be true or false");
  EXPECT_EQ(options.refusal("speculative", "4"), "speculative = \"4\": must be one of auto, off, lookup, draft, mtp");
  EXPECT_EQ(options.refusal("json_whitespace", "3"),
            "json_whitespace = \"3\": must be one of flexible, compact, spaced");
  EXPECT_EQ(options.refusal("grammar_syntax", "bnf"), "grammar_syntax = \"bnf\": must be one of auto, gbnf, lark");
  EXPECT_TRUE(options.refusal("workers", "1").starts_with("there is no option 'workers': must be one of "));
  EXPECT_TRUE(options.refusal("", "1").starts_with("there is no option '': must be one of "));
  EXPECT_TRUE(options.refusal("unknown", nullptr).starts_with("there is no option 'unknown': "));
  const auto refused_json = [&](std::string_view json) {
    EXPECT_EQ(mote_options_set_json(options, json.data(), json.size(), &error_), MOTE_ERROR_INVALID_ARGUMENT) << json;
    return std::string(error_.message);
  };
  EXPECT_EQ(refused_json(R"({"threads": "4"})").find("threads = \"4\": must be an integer, 0 or more"), 0u);
  EXPECT_EQ(refused_json(R"({"mmap": 1})"), "mmap = 1: must be true or false");
  EXPECT_EQ(refused_json(R"({"num_beams": 65})"), "num_beams = 65: must be an integer, 1..64");
  EXPECT_EQ(refused_json("[]"), "the options must be a JSON object that nests at most 100 deep");
  EXPECT_EQ(refused_json(""), "the options must be a JSON object that nests at most 100 deep");
}

TEST_F(CApiOptions, json_is_taken_whole_or_not_at_all) {
  const GivenOptions options(R"({"top_k": 7})");
  const std::string before = options.values();
  for (const std::string_view json :
       {R"({"top_k": 8, "top_p": 2})", R"({"top_k": null, "unknown": 1})", "{\"top_k\": 8"}) {
    EXPECT_EQ(mote_options_set_json(options, json.data(), json.size(), &error_), MOTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(options.values(), before) << json;
  }
  constexpr std::string_view kLonger = R"({"top_k": 9} and what does not belong to it)";
  EXPECT_EQ(mote_options_set_json(options, kLonger.data(), 12, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(Json::parse(options.values())["top_k"], 9);
}

TEST_F(CApiOptions, those_of_another_scope_are_refused) {
  const GivenOptions session("{}", MOTE_SCOPE_SESSION);
  EXPECT_TRUE(session.refusal("top_p", "1")
                  .starts_with("there is no option 'top_p' here, it is one of a generation: must be "));
  EXPECT_EQ(session.refusal("threads", "1"), "");
  const GivenOptions beams("{}", MOTE_SCOPE_BEAM_SEARCH | MOTE_SCOPE_GENERATION);
  EXPECT_EQ(beams.refusal("num_beams", "1"), "");
  EXPECT_EQ(beams.refusal("top_p", "1"), "");
  EXPECT_NE(beams.refusal("mmap", "true"), "");
  // What has no options of a kind of call gives it the defaults.
  const int32_t id = 1;
  mote_generation* generation = nullptr;
  ASSERT_EQ(mote_generation_begin(session_, &id, 1, session, &generation, &error_), MOTE_OK) << error_.message;
  mote_generation_end(generation);
}

TEST_F(CApiOptions, scopes_are_a_sum_of_those_there_are) {
  for (const int32_t scopes : {0, -1, 16, 31, INT32_MAX, INT32_MIN}) {
    auto* options = reinterpret_cast<mote_options*>(this);
    EXPECT_EQ(mote_options_open(scopes, &options, &error_), MOTE_ERROR_INVALID_ARGUMENT) << scopes;
    EXPECT_EQ(error_.message, "scopes = " + std::to_string(scopes) + ": must be a sum of MOTE_SCOPE_*, 1..15");
    EXPECT_EQ(options, nullptr);
  }
}

TEST_F(CApiOptions, null_is_an_error_everywhere) {
  const GivenOptions options;
  char* json = nullptr;
  for (const int32_t code :
       {mote_options_open(kEveryScope, nullptr, &error_), mote_options_set(nullptr, "top_p", "1", &error_),
        mote_options_set(options, nullptr, "1", &error_), mote_options_set(options, nullptr, nullptr, &error_),
        mote_options_set_json(nullptr, "{}", 2, &error_), mote_options_set_json(options, nullptr, 0, &error_),
        mote_options_set_json(options, nullptr, 2, nullptr), mote_options_set_grammar(nullptr, nullptr, &error_),
        mote_options_set_prefix_cache(nullptr, nullptr, &error_),
        mote_options_set_progress(nullptr, nullptr, nullptr, &error_),
        mote_options_values(nullptr, model_, &json, &error_), mote_options_values(options, model_, nullptr, &error_),
        mote_options_check(options, nullptr, &error_), mote_options_check(nullptr, nullptr, &error_)}) {
    EXPECT_EQ(code, MOTE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(json, nullptr);
  mote_options_close(nullptr);
}

TEST_F(CApiOptions, values_are_what_was_given_or_the_models_default) {
  test::ProgramBuilder builder = test::tiny_program();
  builder.program.generation_config = R"({"do_sample": true, "top_k": 20, "stop_strings": ["x"]})";
  const test::TinyFile file(builder);
  mote_model* model = nullptr;
  ASSERT_EQ(mote_model_open(file.path().c_str(), nullptr, &model, &error_), MOTE_OK) << error_.message;
  const GivenOptions options(R"({"top_p": 0.5, "json_schema": {"type": "integer"}})");
  const Json with = Json::parse(options.values(model)), without = Json::parse(options.values());
  EXPECT_EQ(with["top_k"], 20);
  EXPECT_EQ(with["stop_strings"], Json::parse(R"(["x"])"));
  EXPECT_EQ(with["top_p"], 0.5);
  EXPECT_EQ(without["top_k"], 50);
  EXPECT_EQ(without["speculative"], "auto");
  EXPECT_EQ(without["seed"], nullptr);
  EXPECT_EQ(without["json_schema"], Json::parse(R"({"type": "integer"})"));
  EXPECT_EQ(without["regex"], nullptr);
  mote_model_close(model);
}

TEST_F(CApiOptions, a_check_says_what_a_generation_would) {
  const int32_t id = 1;
  mote_generation* generation = nullptr;
  EXPECT_EQ(mote_options_check(nullptr, model_, &error_), MOTE_OK) << error_.message;
  for (const char* json : {R"({"stop_token_ids": [19]})", R"({"suppress_tokens": [19]})", R"({"regex": "("})",
                           R"({"json_schema": {}, "regex": "a"})", R"({"grammar_syntax": "lark"})",
                           R"({"dry_sequence_breakers": [400]})"}) {
    const GivenOptions options(json);
    EXPECT_EQ(mote_options_check(options, model_, &error_), MOTE_ERROR_INVALID_ARGUMENT) << json;
    const std::string said = error_.message;
    EXPECT_EQ(mote_generation_begin(session_, &id, 1, options, &generation, &error_), MOTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(error_.message, said);
  }
}

TEST_F(CApiOptions, one_set_serves_a_model_a_session_and_generations_and_may_change_between) {
  const GivenOptions options(R"({"mmap": false, "context_length": 5, "ignore_eos": true, "max_new_tokens": 2})");
  mote_model* model = nullptr;
  mote_session* session = nullptr;
  ASSERT_EQ(mote_model_open(file_.path().c_str(), options, &model, &error_), MOTE_OK) << error_.message;
  ASSERT_EQ(mote_session_open(model, options, &session, &error_), MOTE_OK) << error_.message;
  auto info = sized<mote_session_info>();
  ASSERT_EQ(mote_session_get_info(session, &info, &error_), MOTE_OK);
  EXPECT_EQ(info.context_length, 5);
  for (const int expected : {2, 1}) {
    const int32_t id = 1;
    mote_generation* generation = nullptr;
    ASSERT_EQ(mote_generation_begin(session, &id, 1, options, &generation, &error_), MOTE_OK) << error_.message;
    EXPECT_EQ(options.refusal("max_new_tokens", "1"), "") << "what runs does not notice";
    auto piece = sized<mote_piece>();
    int count = 0;
    for (; piece.finished == 0; ++count) ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK);
    EXPECT_EQ(count, expected);
    mote_generation_end(generation);
  }
  mote_session_close(session);
  mote_model_close(model);
}

TEST_F(CApiOptions, keep_the_grammar_and_the_cache_that_they_were_given) {
  mote_vocabulary* vocabulary = nullptr;
  ASSERT_EQ(mote_model_vocabulary(model_, &vocabulary, &error_), MOTE_OK) << error_.message;
  auto source = sized<mote_grammar_options>();
  source.syntax = MOTE_SYNTAX_REGEX;
  source.source = "ab";
  source.source_bytes = 2;
  mote_grammar* grammar = nullptr;
  ASSERT_EQ(mote_grammar_open(vocabulary, &source, &grammar, &error_), MOTE_OK) << error_.message;
  const GivenOptions options(R"({"max_new_tokens": 9})"), by_source(R"({"max_new_tokens": 9, "regex": "ab"})");
  options.set(grammar);
  mote_grammar_close(grammar);
  mote_vocabulary_close(vocabulary);
  for (const GivenOptions* each : {&options, &by_source}) {
    const int32_t id = 1;
    mote_generation* generation = nullptr;
    ASSERT_EQ(mote_generation_begin(session_, &id, 1, *each, &generation, &error_), MOTE_OK) << error_.message;
    std::string text;
    auto piece = sized<mote_piece>();
    while (piece.finished == 0) {
      ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK) << error_.message;
      text += piece.text;
    }
    EXPECT_EQ(text, "ab");
    mote_generation_end(generation);
  }
}

TEST_F(CApiOptions, two_threads_may_change_and_use_them) {
  const GivenOptions options(R"({"max_new_tokens": 1})");
  const auto work = [&](const char* value) {
    auto error = sized<mote_error>();
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(mote_options_set(options, "top_k", value, &error), MOTE_OK);
      EXPECT_EQ(mote_options_set(options, "top_k", i % 2 == 0 ? nullptr : "9", &error), MOTE_OK);
      EXPECT_EQ(mote_options_set_json(options, R"({"top_p": 0.5})", 14, &error), MOTE_OK);
      EXPECT_EQ(mote_options_check(options, model_, &error), MOTE_OK) << error.message;
      const Json values = Json::parse(options.values(model_));
      const int top_k = values["top_k"];
      EXPECT_TRUE(top_k == 3 || top_k == 4 || top_k == 9 || top_k == 50) << top_k;
      EXPECT_EQ(values["top_p"], 0.5);
    }
  };
  std::thread other([&] { work("3"); });
  work("4");
  other.join();
}

}  // namespace
}  // namespace mote
