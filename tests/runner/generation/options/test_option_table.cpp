#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string>

#include "base/utf8.h"
#include "runner/generation/options/option_table.h"
#include "runner/generation/options/read_value.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

bool is_numeric(const Option& option) {
  return option.kind == OptionKind::kInteger || option.kind == OptionKind::kNumber;
}

// What the option has after the text was given, as JSON; or why it is refused.
std::string after(const Option& option, std::string_view text) {
  const auto value = value_of_text(option, text);
  if (!value.ok()) {
    EXPECT_EQ(value.status().code(), Code::kInvalidArgument);
    return value.status().message();
  }
  OptionValues values = default_values();
  EXPECT_TRUE(option.read(option, *value, values, nullptr).ok()) << option.name << " = " << text;
  return option.show(values);
}
std::string after(const char* name, std::string_view text) { return after(*find_option(name), text); }

bool is_refused(const Option& option, std::string_view text) {
  const auto value = value_of_text(option, text);
  if (value.ok()) return false;
  const std::string& message = value.status().message();
  EXPECT_EQ(message.find(std::string(option.name) + " = "), 0u) << message;
  EXPECT_TRUE(message.ends_with(": must be " + option.accepted_text())) << message;
  EXPECT_TRUE(is_valid_utf8(message)) << message;
  return true;
}
bool is_refused(const char* name, std::string_view text) { return is_refused(*find_option(name), text); }

// ---- rows ----

TEST(OptionTable, every_row_has_a_name_of_its_own_and_says_in_one_sentence_what_it_does) {
  std::set<std::string_view> names;
  for (const Option& option : all_options()) {
    const std::string_view name = option.name, help = option.help;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(find_option(name), &option) << name;
    EXPECT_TRUE(std::ranges::all_of(name, [](char c) { return std::islower(c) || std::isdigit(c) || c == '_'; }))
        << name;
    EXPECT_GE(help.size(), 10u) << name;
    EXPECT_EQ(help.find(". "), std::string_view::npos) << name;
    EXPECT_EQ(help.find('\n'), std::string_view::npos) << name;
    EXPECT_FALSE(help.ends_with('.') || help.ends_with(' ')) << name;
    EXPECT_STRNE(name_of(option.kind), "") << name;
    EXPECT_NE(option.accepted_text(), "") << name;
    EXPECT_EQ(option.choices.empty(), option.kind != OptionKind::kChoice) << name;
  }
  EXPECT_GT(names.size(), 50u);
  for (const char* unknown : {"", "TOP_P", "top-p", "top_p ", "workers", "load_mode"})
    EXPECT_EQ(find_option(unknown), nullptr) << unknown;
}

TEST(OptionTable, every_default_is_a_value_that_the_option_takes) {
  for (const Option& option : all_options()) {
    const std::string shown = option.show(default_values());
    const auto json = parse_json_tree(shown, 8);
    ASSERT_TRUE(json.has_value()) << option.name << ": " << shown;
    if (json->kind == Kind::kNull) continue;
    OptionValues values;
    const Status status = option.read(option, *json, values, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(option.show(values), shown) << option.name;
  }
}

TEST(OptionTable, every_choice_is_taken_and_shown_by_its_name) {
  for (const Option& option : all_options()) {
    for (const std::string_view choice : option.choices)
      EXPECT_EQ(after(option, choice), "\"" + std::string(choice) + "\"") << option.name;
    if (option.choices.empty()) continue;
    for (const std::string& other : {std::string(), std::string(option.choices[0]) + " ", std::string("None")})
      EXPECT_TRUE(is_refused(option, other)) << option.name << " = " << other;
  }
  EXPECT_EQ(after("speculative", "fast"), "speculative = \"fast\": must be one of auto, off, lookup, draft, mtp");
}

TEST(OptionTable, every_range_is_kept) {
  for (const Option& option : all_options()) {
    if (!is_numeric(option)) continue;
    const Accepted& accepted = option.accepted;
    for (const char* never : {"inf", "-inf", "nan", "infinity", "1e999", "", "-", "+", "+-5", "++5", "0x10", "1_000",
                              " 5", "5 ", "five", "5,5", "[5]", "\"5\"", "true"})
      EXPECT_TRUE(is_refused(option, never)) << option.name << " = " << never;
    if (std::isfinite(accepted.least)) {
      EXPECT_EQ(is_refused(option, json_of(accepted.least)), accepted.excludes_least) << option.name;
      EXPECT_TRUE(is_refused(option, json_of(accepted.least - 1))) << option.name;
    }
    if (std::isfinite(accepted.most)) {
      EXPECT_FALSE(is_refused(option, json_of(accepted.most))) << option.name;
      EXPECT_TRUE(is_refused(option, json_of(accepted.most + 1))) << option.name;
    }
  }
}

TEST(OptionTable, json_of_another_kind_is_refused_in_the_same_words) {
  const JsonTree values[] = {{},
                             {Kind::kBoolean, 1.0, {}, {}, {}},
                             {Kind::kInteger, -7.0, "-7", {}, {}},
                             {Kind::kFloat, 0.5, "0.5", {}, {}},
                             {Kind::kString, 0.0, "\xFF", {}, {}},
                             {Kind::kArray, 0.0, {}, {}, {{}}},
                             {Kind::kObject, 0.0, {}, {"a"}, {{}}}};
  for (const Option& option : all_options()) {
    size_t num_refused = 0;
    for (const JsonTree& value : values) {
      OptionValues to;
      const Status status = option.read(option, value, to, nullptr);
      if (status.ok()) continue;
      ++num_refused;
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_EQ(status.message().find(std::string(option.name) + " = "), 0u) << status.message();
      EXPECT_TRUE(status.message().ends_with(": must be " + option.accepted_text())) << status.message();
    }
    const bool is_any_json = std::string_view(option.name) == "json_schema";
    EXPECT_GE(num_refused, is_any_json ? 0u : 4u) << option.name;
  }
}

TEST(OptionTable, a_message_shows_the_beginning_of_a_long_value) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "\xC3\xA9";
  const std::string message = after("overflow", text);
  EXPECT_TRUE(is_valid_utf8(message));
  EXPECT_TRUE(message.ends_with("...: must be one of refuse, shift")) << message;
  EXPECT_LT(message.size(), 120u);
}

TEST(OptionTable, describes_all_of_it_as_json) {
  const auto described = parse_json_tree(describe_options(), 8);
  ASSERT_TRUE(described.has_value() && described->kind == Kind::kArray);
  ASSERT_EQ(described->children.size(), all_options().size());
  const auto text = [](const JsonTree& row, const char* field) { return row.find(field)->text; };
  for (size_t i = 0; i < all_options().size(); ++i) {
    const Option& option = all_options()[i];
    const JsonTree& row = described->children[i];
    ASSERT_EQ(row.names.size(), 12u);
    EXPECT_EQ(text(row, "name"), option.name);
    EXPECT_EQ(text(row, "type"), name_of(option.kind));
    EXPECT_EQ(text(row, "unit"), option.unit);
    EXPECT_EQ(text(row, "accepted"), option.accepted_text());
    EXPECT_EQ(text(row, "help"), option.help);
    EXPECT_EQ(row.find("choices")->children.size(), option.choices.size());
    EXPECT_EQ(row.find("asks_for_sampling")->number != 0.0, option.asks_for_sampling);
    EXPECT_EQ(row.find("minimum")->is_number(), is_numeric(option) && std::isfinite(option.accepted.least));
    EXPECT_EQ(row.find("maximum")->is_number(), is_numeric(option) && std::isfinite(option.accepted.most));
    const bool is_seed = text(row, "name") == "seed";  // another one each time
    EXPECT_EQ(row.find("default")->dump(),
              is_seed ? "null" : parse_json_tree(option.show(default_values()), 8)->dump());
  }
  const auto scope_of = [&](const char* name) {
    return text(described->children[static_cast<size_t>(find_option(name) - all_options().data())], "scope");
  };
  EXPECT_EQ(scope_of("top_p"), "generation");
  EXPECT_EQ(scope_of("num_beams"), "beam_search");
  EXPECT_EQ(scope_of("kv_dtype"), "session");
  EXPECT_EQ(scope_of("mmap"), "model");
}

// ---- values as text ----

TEST(OptionText, flags_have_four_words_each) {
  for (const char* word : {"true", "1", "on", "yes"}) EXPECT_EQ(after("ignore_eos", word), "true");
  for (const char* word : {"false", "0", "off", "no"}) EXPECT_EQ(after("skip_special_tokens", word), "false");
  for (const char* word : {"", "True", "2", "1.0", "null", "[true]", "\"true\""})
    EXPECT_TRUE(is_refused("ignore_eos", word)) << word;
  EXPECT_EQ(after("ignore_eos", "maybe"), "ignore_eos = \"maybe\": must be true or false");
}

TEST(OptionText, integers_are_whole_and_fit_their_type) {
  const std::pair<const char*, const char*> kTaken[] = {{"0", "0"},   {"-0", "0"},     {"+5", "5"},
                                                        {"007", "7"}, {"1e3", "1000"}, {"5.", "5"},
                                                        {"5.0", "5"}, {"00", "0"},     {"2147483647", "2147483647"}};
  for (const auto& [given, shown] : kTaken) EXPECT_EQ(after("top_k", given), shown) << given;
  for (const char* given : {"1.5", "-1", "1e-3", "2147483648", "1e10", "99999999999999999999999"})
    EXPECT_FALSE(value_of_text(*find_option("top_k"), given).ok()) << given;
  EXPECT_EQ(after("top_k", "-3"), "top_k = -3: must be an integer, 0 or more (0: off)");
  EXPECT_EQ(after("top_k", "1.5"), "top_k = 1.5: must be an integer, 0 or more (0: off)");
  EXPECT_EQ(after("top_k", "2147483648"), "top_k = 2147483648: must be an integer, 0..2147483647 (0: off)");
  EXPECT_EQ(after("max_new_tokens", "2147483648"),
            "max_new_tokens = 2147483648: must be an integer, 0..2147483647 (0: until the context is full)");
  EXPECT_EQ(after("num_keep", "-1"), "-1");
  EXPECT_EQ(after("num_keep", "-001"), "-1");
  EXPECT_EQ(after("context_length", "9223372036854775807"), "9223372036854775807");
  EXPECT_NE(after("context_length", "9223372036854775808").find(": must be"), std::string::npos);
  EXPECT_EQ(after("context_length", "9007199254740993"), "9007199254740993");
  EXPECT_TRUE(is_refused("context_length", "1e18")) << "no more exact than a double";
  EXPECT_EQ(after("seed", "18446744073709551615"), "18446744073709551615");
  EXPECT_NE(after("seed", "18446744073709551616").find(": must be"), std::string::npos);
  EXPECT_TRUE(is_refused("seed", "-1"));
}

TEST(OptionText, numbers_are_finite_and_fit_their_type) {
  const std::pair<const char*, const char*> kTaken[] = {
      {"0", "0"},        {"0.7", "0.7"}, {".5", "0.5"}, {"+2", "2"},
      {"1e-3", "0.001"}, {"1E2", "100"}, {"2.", "2"},   {"0.1000000000000000000001", "0.1"}};
  for (const auto& [given, shown] : kTaken) EXPECT_EQ(after("temperature", given), shown) << given;
  for (const char* given : {"-0.5", "1e39", "1e-999x", "0x1p3", "1e", "e1", "--1", "1.2.3", "None"})
    EXPECT_TRUE(is_refused("temperature", given)) << given;
  EXPECT_EQ(after("temperature", "nan"),
            "temperature = \"nan\": must be a number, 0 or more (0: always the likeliest)");
  EXPECT_EQ(after("top_p", "2"), "top_p = 2: must be a number, 0..1 (1: off)");
  EXPECT_EQ(after("max_time", "1e39"), "1e+39") << "a double";
  OptionValues values;
  const Option& temperature = *find_option("temperature");
  ASSERT_TRUE(temperature.read(temperature, *value_of_text(temperature, "-0"), values, nullptr).ok());
  EXPECT_EQ(values.generation.sampling.temperature, 0.0f);
}

TEST(OptionText, whatever_is_taken_is_kept_as_json) {
  for (const Option& option : all_options()) {
    for (const char* text : {"+5", "007", ".5", "5.", "-0", "-00.10", "1e3", "1E+2", "[", "\"", "\xFF", "a\nb"}) {
      const auto value = value_of_text(option, text);
      if (!value.ok()) continue;
      EXPECT_TRUE(parse_json_tree(value->dump(), 8).has_value())
          << option.name << " = " << text << ": " << value->dump();
    }
  }
}

TEST(OptionText, texts_are_one_text_or_a_list) {
  const std::pair<const char*, const char*> kTaken[] = {{"###", R"(["###"])"},
                                                        {R"(["a", "b"])", R"(["a", "b"])"},
                                                        {"[", R"(["["])"},
                                                        {R"(["a")", R"(["[\"a\""])"},
                                                        {R"("a")", R"(["a"])"},
                                                        {"[]", "[]"},
                                                        {"5", R"(["5"])"},
                                                        {"null", R"(["null"])"},
                                                        {"\n", R"(["\n"])"},
                                                        {R"(["\ud83d\ude00"])", "[\"\xF0\x9F\x98\x80\"]"},
                                                        {R"(["\ud800"])", R"(["[\"\\ud800\"]"])"}};
  for (const auto& [given, shown] : kTaken) EXPECT_EQ(after("stop_strings", given), shown) << given;
  for (const char* given : {"", "\"\"", R"(["a", ""])", "[1]", "[null]", R"([["a"]])", "{}", R"({"a": "b"})"}) {
    EXPECT_TRUE(is_refused("stop_strings", given)) << given;
    EXPECT_TRUE(is_refused("bad_words", given)) << given;
  }
  EXPECT_EQ(after("stop_strings", "a\xFF"), "[\"a\xEF\xBF\xBD\"]") << "shown as U+FFFD, refused by the generation";
}

TEST(OptionText, a_text_is_taken_as_it_is) {
  for (const char* given : {"", "[", "null", "5", "\"a\"", "{\"type\": \"integer\"}"})
    EXPECT_EQ(parse_json_tree(after("regex", given), 2)->text, given);
  EXPECT_EQ(after("cpus", "0-3,6"), "\"0-3,6\"");
  EXPECT_TRUE(is_refused("cpus", ""));
}

TEST(OptionText, tokens_are_lists_of_ids) {
  EXPECT_EQ(after("stop_token_ids", "[1, 2, 2147483647]"), "[1, 2, 2147483647]");
  EXPECT_EQ(after("stop_token_ids", "[1.0]"), "[1]");
  EXPECT_EQ(after("dry_sequence_breakers", "[3, 1]"), "[3, 1]");
  for (const char* given :
       {"", "5", "[", "[-1]", "[1.5]", "[2147483648]", "[[1]]", "[\"1\"]", "[null]", "{}", "\"1\""}) {
    EXPECT_TRUE(is_refused("stop_token_ids", given)) << given;
    EXPECT_TRUE(is_refused("suppress_tokens", given)) << given;
    EXPECT_TRUE(is_refused("bad_words_ids", given == std::string_view("[[1]]") ? "[1]" : given)) << given;
  }
  for (const char* given : {"[-1]", "[1.5]", "[[1]]", "[null]", "{}"})
    EXPECT_FALSE(value_of_text(*find_option("dry_sequence_breakers"), given).ok()) << given;
  for (const char* given : {"ab", "[\"ab\", 3]", "[]", "\"ab\""})
    EXPECT_TRUE(value_of_text(*find_option("dry_sequence_breakers"), given).ok()) << given;
  EXPECT_TRUE(is_refused("bad_words_ids", "[[]]"));
  EXPECT_FALSE(is_refused("bad_words_ids", "[[1, 2], [3]]"));
}

TEST(OptionText, biases_are_finite_or_never) {
  EXPECT_EQ(after("sequence_bias", R"([[[5, 6], -1.5], [[7], "-inf"]])"), R"([[[5, 6], -1.5], [[7], "-inf"]])");
  for (const char* given : {"", "[", "[[1, 2]]", "[[[1]]]", "[[[], 1]]", "[[[1], \"inf\"]]", "[[[1], 1e39]]",
                            "[[[1], null]]", "[[[-1], 1]]", "[[[1], 1, 1]]", "{}", "[[[1], 1e999]]"})
    EXPECT_FALSE(value_of_text(*find_option("sequence_bias"), given).ok()) << given;
  EXPECT_FALSE(is_refused("logit_bias", R"({"42": -1.5, "7": "-inf"})"));
  for (const char* given : {"", "[]", R"({"a": 1})", R"({"-1": 1})", R"({"1.5": 1})", R"({"1": null})",
                            R"({"1": "inf"})", R"({"": 1})", R"({"2147483648": 1})", R"({" 1": 1})"})
    EXPECT_TRUE(is_refused("logit_bias", given)) << given;
}

TEST(OptionText, huge_lists_and_deep_ones_are_read_or_refused) {
  std::string ids = "[0", biases = "{\"0\": 1";
  for (int i = 1; i < 100'000; ++i) {
    ids += "," + std::to_string(i);
    biases += ",\"" + std::to_string(i) + "\": 1";
  }
  OptionValues values;
  const Option& suppress = *find_option("suppress_tokens");
  ASSERT_TRUE(suppress.read(suppress, *value_of_text(suppress, ids + "]"), values, nullptr).ok());
  const Option& bias = *find_option("logit_bias");
  ASSERT_TRUE(bias.read(bias, *value_of_text(bias, biases + "}"), values, nullptr).ok());
  EXPECT_EQ(values.generation.sampling.sequence_bias.size(), 200'000u);
  EXPECT_TRUE(is_refused("stop_strings", ids + "]"));
  EXPECT_LT(after("stop_strings", ids + "]").size(), 200u);
  for (const char* name : {"stop_token_ids", "bad_words_ids", "sequence_bias", "logit_bias"}) {
    const std::string deep = after(name, std::string(100'000, '['));
    EXPECT_NE(deep.find(": must be"), std::string::npos) << name;
    EXPECT_LT(deep.size(), 300u) << name;
  }
}

}  // namespace
}  // namespace mote
