// Conversations: their messages as templates take them, and what is done to them.
#include "runner/chat/conversation.h"

#include <gtest/gtest.h>

#include "tests/runner/chat/scripted_model.h"

namespace mote {
namespace {

using test::ScriptedModel;

TemplateHabits habits(const char* source) {
  const auto parsed = ChatTemplate::parse(source);
  EXPECT_TRUE(parsed.ok());
  return (*parsed)->habits();
}

constexpr const char* kPartsOnly =
    "{% for m in messages %}{% for p in m.content %}{% if p is mapping %}{{ p.text }}{% endif %}{% endfor %}{% endfor "
    "%}";
constexpr const char* kTextOrParts =
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content or [] %}"
    "{{ p.text }}{% endfor %}{% endif %}{% endfor %}";
constexpr const char* kTextArguments =
    "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{{ 'c' + c.function.arguments }}"
    "{% endfor %}{% else %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ 'c' + c.function.arguments }}{% endfor %}"
    "{% endif %}{% endfor %}";

TEST(TemplateHabits, are_found_by_rendering) {
  EXPECT_FALSE(habits(test::kThinkTemplate).takes_parts);
  EXPECT_FALSE(habits(test::kThinkTemplate).takes_no_content);
  EXPECT_FALSE(habits(test::kThinkTemplate).takes_text_arguments);
  EXPECT_TRUE(habits(kPartsOnly).takes_parts);
  EXPECT_TRUE(habits(kPartsOnly).needs_parts);
  EXPECT_TRUE(habits(kTextOrParts).takes_parts);
  EXPECT_FALSE(habits(kTextOrParts).needs_parts);
  EXPECT_TRUE(habits(kTextArguments).takes_text_arguments);
  EXPECT_TRUE(habits(kTextArguments).takes_no_content);
  EXPECT_FALSE(habits("{{ messages[0].content | tojson }}").takes_parts);
  EXPECT_TRUE(habits("{# developer #}").knows_developer);
}

std::string prepared(const std::string& messages, const TemplateHabits& form) {
  const auto list = parse_json_tree(messages, 64);
  EXPECT_TRUE(list.has_value());
  auto result = template_messages(list->children, form);
  return result.ok() ? *result : result.status().message();
}

TEST(Messages, parts_are_joined_where_the_template_knows_none) {
  const std::string parts =
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]}])";
  EXPECT_EQ(prepared(parts, {}), R"([{"role":"user","content":"ab"}])");
  EXPECT_EQ(prepared(parts, {.takes_parts = true}),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(prepared(R"([{"role":"user","content":"a"}])", {.takes_parts = true, .needs_parts = true}),
            R"([{"role":"user","content":[{"type":"text","text":"a"}]}])");
  EXPECT_EQ(prepared(R"([{"role":"user","content":[{"type":"image_url"}]}])", {.takes_parts = true}),
            "messages[0].content[0].type = \"image_url\": must be text: this model reads text only");
  EXPECT_EQ(prepared(R"([{"role":"user","content":[{"type":"text","text":5}]}])", {}),
            "messages[0].content[0].text = 5: must be a string");
}

TEST(Messages, calls_have_the_form_that_the_template_takes) {
  const std::string with_text =
      R"([{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"x\":1}"}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"r"}])";
  EXPECT_EQ(
      prepared(with_text, {}),
      R"([{"role":"assistant","content":"","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"x":1}}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"r","name":"f"}])");
  const std::string as_given = prepared(with_text, {.takes_no_content = true, .takes_text_arguments = true});
  EXPECT_EQ(as_given.substr(0, as_given.find("},{\"role\":\"tool\"")),
            with_text.substr(0, with_text.find("},{\"role\":\"tool\"")));
  EXPECT_EQ(prepared(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{x"}}]}])", {}),
            R"(messages[0].tool_calls[0].function.arguments = "{x": must be the JSON of an object)");
  EXPECT_EQ(prepared(R"([{"role":"developer","content":"a"}])", {}), R"([{"role":"system","content":"a"}])");
  EXPECT_EQ(prepared(R"([{"role":"developer","content":"a"}])", {.knows_developer = true}),
            R"([{"role":"developer","content":"a"}])");
}

TEST(Conversation, a_missing_special_token_is_undefined) {
  ScriptedModel scripted("{{ bos_token is defined }}|{{ eos_token }}|{{ messages[0].content }}");
  Conversation conversation = scripted.conversation(R"([{"role": "user", "content": "x"}])");
  EXPECT_EQ((*conversation.plan())->text, "False|<eos>|x");
  ASSERT_TRUE(conversation.set(ChatField::kVariables, R"({"eos_token": "e"})").ok());
  EXPECT_EQ((*conversation.plan())->text, "False|e|x");
}

TEST(Conversation, another_template_can_be_given) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(R"([{"role": "user", "content": "x"}])");
  ASSERT_TRUE(conversation.set(ChatField::kChatTemplate, "({{ messages[0].content }})").ok());
  EXPECT_EQ((*conversation.plan())->text, "(x)");
  ASSERT_TRUE(conversation.set(ChatField::kChatTemplate, "").ok());
  EXPECT_EQ((*conversation.plan())->text, "<user>x<eos><assistant>");
  EXPECT_EQ(conversation.set(ChatField::kChatTemplate, "{% if %}").code(), Code::kInvalidTemplate);
}

TEST(Conversation, messages_are_appended_edited_and_dropped) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation("[]");
  for (const char* content : {"a", "b", "c"})
    ASSERT_TRUE(conversation.append(R"({"role":"user","content":")" + std::string(content) + "\"}").ok());
  ASSERT_TRUE(conversation.edit(1, R"({"role":"user","content":"d"})").ok());
  EXPECT_EQ(conversation.messages(), R"([{"role":"user","content":"a"}, {"role":"user","content":"d"}])");
  EXPECT_EQ(conversation.edit(2, "{}").message(), "index = 2: there are 2 messages");
  EXPECT_EQ(conversation.append("[]").code(), Code::kInvalidArgument);
  EXPECT_EQ(conversation.set(ChatField::kMessages, "{}").message(), "messages: must be a JSON list of objects");
  EXPECT_EQ(conversation.num_messages(), 2u);
}

TEST(Conversation, another_reply_takes_the_place_of_the_last) {
  ScriptedModel scripted;
  const std::string user = R"({"role":"user","content":"a"})", reply = R"({"role":"assistant","content":"b"})";
  const std::string call =
      R"({"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":{}}}]})";
  const std::string result = R"({"role":"tool","content":"r"})";
  const std::pair<std::string, std::string> cases[] = {
      {user, user},
      {user + ", " + reply, user},
      {user + ", " + call, user},
      {user + ", " + call + ", " + result, user + ", " + call + ", " + result},
      {user + ", " + call + ", " + result + ", " + reply, user + ", " + call + ", " + result},
  };
  for (const auto& [before, after] : cases) {
    Conversation conversation = scripted.conversation("[" + before + "]");
    EXPECT_TRUE(conversation.drop_reply().ok());
    EXPECT_EQ(conversation.messages(), "[" + after + "]");
  }
  Conversation conversation = scripted.conversation("[]");
  EXPECT_EQ(conversation.drop_reply().code(), Code::kInvalidState);
}

}  // namespace
}  // namespace mote
