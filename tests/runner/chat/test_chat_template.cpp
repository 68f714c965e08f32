#include "runner/chat/chat_template.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/tokenizer/tiny_tokenizer.h"
#include "tokenizer/compile/compile.h"

namespace mote {
namespace {

using Ids = std::vector<int32_t>;

Result<Prompt> render(std::string_view source, std::string_view messages, std::string_view variables = {}) {
  MOTE_ASSIGN(const auto parsed, ChatTemplate::parse(source));
  TemplateInput conversation;
  conversation.messages = messages;
  conversation.variables = variables;
  return parsed->render(conversation);
}

std::string refusal(std::string_view source, std::string_view messages = "[]") {
  return render(source, messages).status().message();
}

TEST(ChatTemplate, marks_what_came_from_messages) {
  const Result<Prompt> prompt =
      render("<{{ messages[0].content | upper }}>{{ x }}", R"([{"content": "ab"}])", R"({"x": "y"})");
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  EXPECT_EQ(prompt->text, "<AB>y");
  ASSERT_EQ(prompt->marked.size(), 1u);
  EXPECT_EQ(prompt->marked[0].begin, 1u);
  EXPECT_EQ(prompt->marked[0].end, 3u);
}

TEST(ChatTemplate, special_tokens_of_messages_become_text) {
  Result<std::vector<std::byte>> segment = tokenizer::compile_json(test::TinyTokenizer().json());
  ASSERT_TRUE(segment.ok());
  const Result<Tokenizer> tokenizer = Tokenizer::open(std::move(*segment));
  ASSERT_TRUE(tokenizer.ok());
  const char* source = "{% for m in messages %}{{ m.content }}<eos>{% endfor %}";
  const Result<Prompt> prompt = render(source, R"([{"content": "a<eos>b"}, {"content": "<eo"}, {"content": "s>"}])");
  ASSERT_TRUE(prompt.ok());
  const Result<Ids> ids = encode_prompt(*tokenizer, *prompt);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (Ids{1, 2, 0, 0, 0}));  // of "<eos>" as text this vocabulary has no bytes
}

TEST(ChatTemplate, names_the_variable_that_is_no_json) {
  EXPECT_NE(refusal("", "{").find("messages: JSON"), std::string::npos);
  EXPECT_NE(refusal("", "{}").find("messages: must be a JSON list"), std::string::npos);
  EXPECT_NE(refusal("", "[99999999999999999999]").find("integers must fit 64 bits"), std::string::npos);
  EXPECT_NE(refusal("", "[1]").find("Chat messages should be dicts"), std::string::npos);
  EXPECT_NE(render("", "[]", "[]").status().message().find("variables: must be a JSON object"), std::string::npos);
}

TEST(ChatTemplate, refuses_sources_that_are_too_long_or_no_text) {
  EXPECT_EQ(refusal(std::string(jinja::kMaxTemplateBytes + 1, 'x')),
            "the template has 1048577 bytes: at most 1048576 are accepted");
  EXPECT_EQ(refusal("ab\xff"), "the template is not UTF-8 at byte 2");
}

TEST(ChatTemplate, limits_can_be_lower) {
  const Result<std::shared_ptr<const ChatTemplate>> parsed =
      ChatTemplate::parse("{% for i in range(1000) %}x{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  TemplateInput conversation;
  conversation.messages = "[]";
  jinja::RenderOptions options;
  EXPECT_TRUE((*parsed)->render(conversation, options).ok());
  options.limits.max_steps = 100;
  EXPECT_EQ((*parsed)->render(conversation, options).status().message(), "the template takes more than 100 steps");
  options.limits.max_steps = 1000000;
  options.limits.max_output_bytes = 10;
  EXPECT_FALSE((*parsed)->render(conversation, options).ok());
}

TEST(ChatTemplate, threads_share_a_template) {
  const Result<std::shared_ptr<const ChatTemplate>> parsed = ChatTemplate::parse(
      "{% macro m(x) %}{{ x | upper }}{% endmacro %}{% for x in messages %}{{ m(x.content) }}{{ loop.index }}{% endfor "
      "%}");
  ASSERT_TRUE(parsed.ok());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      TemplateInput conversation;
      conversation.messages = R"([{"content": "a"}, {"content": "b"}])";
      for (int i = 0; i < 50; ++i) text = (*parsed)->render(conversation)->text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "A1B2");
}

}  // namespace
}  // namespace mote
