#include <gtest/gtest.h>

#include <set>

#include "runner/replies/format.h"

namespace mote::reply {
namespace {

std::vector<Rule> rules_of(const Format& format) {
  std::vector<Rule> rules(format.reasoning.begin(), format.reasoning.end());
  rules.insert(rules.end(), format.calls.begin(), format.calls.end());
  return rules;
}

TEST(Formats, every_state_that_is_entered_can_be_left) {
  for (const Format& format : formats()) {
    const std::vector<Rule> rules = rules_of(format);
    std::set<State> left;
    for (const Rule& rule : rules) left.insert(rule.from);
    for (const Rule& rule : rules) {
      EXPECT_TRUE(rule.to == State::kContent || left.contains(rule.to)) << format.name << ": " << rule.mark;
    }
  }
}

TEST(Formats, no_state_has_a_mark_twice) {
  for (const Format& format : formats()) {
    std::set<std::tuple<State, std::string_view>> seen;
    for (const Rule& rule : rules_of(format))
      EXPECT_TRUE(seen.insert({rule.from, rule.mark}).second) << format.name << ": " << rule.mark;
  }
}

// Text would be read again without an end.
TEST(Formats, text_that_is_read_again_is_read_in_another_state) {
  for (const Format& format : formats()) {
    for (const Rule& rule : rules_of(format)) {
      EXPECT_TRUE(rule.mark != kAny || rule.effects == kAgain) << format.name;
      if ((rule.effects & kAgain) == 0) continue;
      EXPECT_NE(rule.from, rule.to) << format.name;
      for (const Rule& next : rules_of(format)) {
        EXPECT_FALSE(next.from == rule.to && next.mark == kAny) << format.name << ": " << next.mark;
      }
    }
  }
}

TEST(Formats, calls_that_begin_end) {
  for (const Format& format : formats()) {
    bool begins = false;
    bool ends = false;
    for (const Rule& rule : rules_of(format)) {
      const bool is_whole = rule.to == State::kObject || rule.to == State::kBareObject || rule.to == State::kPython;
      begins = begins || is_whole || (rule.effects & (kBegin | kRoute)) != 0;
      ends = ends || (rule.effects & kEnd) != 0;
    }
    EXPECT_EQ(begins, ends) << format.name;
  }
}

TEST(Formats, the_last_fits_any_template) {
  EXPECT_EQ(formats().back().name, "text");
  EXPECT_EQ(recognise_format("").name, "text");
  EXPECT_EQ(recognise_format("{{ messages[0].content }}").name, "text");
}

TEST(Formats, templates_are_recognised_by_what_they_write) {
  EXPECT_EQ(recognise_format("'<tool_call>\\n'").name, "hermes");
  EXPECT_EQ(recognise_format("'<tool_call>\\n<function=' + name + '<parameter='").name, "qwen3-coder");
  EXPECT_EQ(recognise_format("'<tool_call>' + name + '<arg_key>'").name, "glm");
  EXPECT_EQ(recognise_format("'[TOOL_CALLS]['").name, "mistral-list");
  EXPECT_EQ(recognise_format("'[TOOL_CALLS]' + name + '[ARGS]'").name, "mistral");
  EXPECT_EQ(recognise_format("content.split('</think>')[-1]").name, "think");
  EXPECT_EQ(recognise_format("'<\uFF5Ctool\u2581sep\uFF5C>'").name, "deepseek-v3.1");
}

TEST(Formats, the_prompt_says_where_the_reply_begins) {
  const Format& format = *find_format("hermes");
  EXPECT_EQ(beginning_after(format, "<|im_start|>assistant\n<think>\n").state, State::kReasoning);
  EXPECT_EQ(beginning_after(format, "<|im_start|>assistant\n<think>\n\n</think>\n\n").state, State::kContent);
  EXPECT_TRUE(beginning_after(format, "<|im_start|>assistant\n<think>\n\n</think>\n\n").follows_mark);
  EXPECT_EQ(beginning_after(format, "What is <think>?<|im_end|>\n<|im_start|>assistant\n").state, State::kContent);
  EXPECT_FALSE(beginning_after(format, "").follows_mark);
  EXPECT_EQ(beginning_after(*find_format("gpt-oss"), "<|start|>assistant").state, State::kHeader);
  EXPECT_EQ(find_format("nothing"), nullptr);
}

}  // namespace
}  // namespace mote::reply
