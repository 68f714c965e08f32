// The part of the C API that renders chat templates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runner/capi/callers.h"
#include "runner/capi/mote.h"
#include "tests/runner/session/tiny_file.h"

namespace mote {
namespace {

// "c" closes a turn as <eos> does; users spell <eos> too.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{{ eos_token }}{% endfor %}{% if tools %}d{% endif %}"
    "{% if add_generation_prompt %}a{% endif %}";

test::ProgramBuilder program_with_template() {
  test::ProgramBuilder builder = test::tiny_program();
  builder.chat_template = kTemplate;
  return builder;
}

class CApiChat : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mote_model_open(file_.path().c_str(), nullptr, &model_, &error_), MOTE_OK) << error_.message;
  }
  void TearDown() override {
    mote_prompt_close(prompt_);
    mote_model_close(model_);
  }

  int32_t render(const char* messages) {
    conversation_.messages = messages;
    mote_prompt_close(prompt_);
    return mote_model_render(model_, &conversation_, &prompt_, &error_);
  }
  std::string text() {
    const char* text = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(mote_prompt_text(prompt_, &text, &bytes, &error_), MOTE_OK);
    EXPECT_EQ(std::strlen(text), bytes);
    return text;
  }
  std::vector<int32_t> ids() {
    size_t count = 0;
    EXPECT_EQ(mote_prompt_tokenize(model_, prompt_, nullptr, 0, &count, &error_), MOTE_OK) << error_.message;
    std::vector<int32_t> ids(count);
    EXPECT_EQ(mote_prompt_tokenize(model_, prompt_, ids.data(), count, &count, &error_), MOTE_OK);
    return ids;
  }

  test::TinyFile file_{program_with_template()};
  mote_error error_ = sized<mote_error>();
  mote_conversation conversation_ = sized<mote_conversation>();
  mote_model* model_ = nullptr;
  mote_prompt* prompt_ = nullptr;
};

TEST_F(CApiChat, texts_of_a_struct_may_have_a_length_instead_of_a_nul) {
  const std::string messages = R"([{"role": "a", "content": "bc"}])";
  const std::string tools = R"([{"type": "function"}])";
  const std::string variables = R"({"eos_token": "<eos>"})";
  const std::string all = messages + tools + variables + "]}";
  conversation_.tools = all.data() + messages.size();
  conversation_.variables = conversation_.tools + tools.size();
  conversation_.messages_bytes = messages.size();
  conversation_.tools_bytes = tools.size();
  conversation_.variables_bytes = variables.size();
  ASSERT_EQ(render(all.c_str()), MOTE_OK) << error_.message;
  EXPECT_EQ(text(), "abc<eos>d");
  conversation_.variables_bytes = 0;  // up to the NUL, behind which there is too much
  EXPECT_NE(render(all.c_str()), MOTE_OK);
}

TEST_F(CApiChat, renders_with_the_models_template) {
  conversation_.variables = R"({"eos_token": "<eos>"})";
  conversation_.tools = R"([{"type": "function"}])";
  conversation_.add_generation_prompt = 1;
  ASSERT_EQ(render(R"([{"role": "a", "content": "bc"}])"), MOTE_OK) << error_.message;
  EXPECT_EQ(text(), "abc<eos>da");
  EXPECT_EQ(ids(), (std::vector<int32_t>{10, 0, 4, 1}));
}

TEST_F(CApiChat, a_special_token_that_a_user_spells_is_text) {
  conversation_.variables = R"({"eos_token": "<eos>"})";
  ASSERT_EQ(render(R"([{"role": "a", "content": "b<eos>b"}])"), MOTE_OK) << error_.message;
  EXPECT_EQ(text(), "ab<eos>b<eos>");
  size_t count = 0;
  ASSERT_EQ(mote_prompt_user_text(prompt_, nullptr, 0, &count, &error_), MOTE_OK);
  ASSERT_EQ(count, 1u);
  size_t pair[2] = {};
  ASSERT_EQ(mote_prompt_user_text(prompt_, pair, 1, &count, &error_), MOTE_OK);
  EXPECT_EQ(text().substr(pair[0], pair[1] - pair[0]), "b<eos>b");
  const std::vector<int32_t> found = ids();
  EXPECT_EQ(std::count(found.begin(), found.end(), 0), 1);
  EXPECT_EQ(found.back(), 0);
}

TEST_F(CApiChat, the_template_sees_the_models_special_tokens) {
  const char* messages = R"([{"role": "a", "content": "d"}])";
  for (const char* variables : {static_cast<const char*>(nullptr), "{}", " { }", R"({"x": {"eos_token": 1}})"}) {
    conversation_.variables = variables;
    ASSERT_EQ(render(messages), MOTE_OK) << error_.message;
    EXPECT_EQ(text(), "adb");  // "b" is the tiny model's end of sequence
  }
  mote_session* session = nullptr;
  ASSERT_EQ(mote_session_open(model_, nullptr, &session, &error_), MOTE_OK) << error_.message;
  ASSERT_EQ(mote_session_append_messages(session, &conversation_, nullptr, &error_), MOTE_OK) << error_.message;
  std::vector<int32_t> held(16);
  size_t count = 0;
  ASSERT_EQ(mote_session_tokens(session, held.data(), held.size(), &count, &error_), MOTE_OK);
  held.resize(count);
  EXPECT_EQ(held, ids());
  mote_session_close(session);
  conversation_.variables = R"({"eos_token": "!"})";
  ASSERT_EQ(render(messages), MOTE_OK) << error_.message;
  EXPECT_EQ(text(), "ad!");
}

TEST_F(CApiChat, ids_are_cut_to_the_room_there_is) {
  conversation_.variables = R"({"eos_token": ""})";
  ASSERT_EQ(render(R"([{"role": "a", "content": "dd"}])"), MOTE_OK) << error_.message;
  int32_t few[2] = {-7, -7};
  size_t count = 0;
  ASSERT_EQ(mote_prompt_tokenize(model_, prompt_, few, 1, &count, &error_), MOTE_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(few[0], 1);
  EXPECT_EQ(few[1], -7);
}

TEST_F(CApiChat, bad_conversations_are_named) {
  for (const char* messages : {"", "{", "7", "[1]", "[{\"role\": }]"}) {
    EXPECT_EQ(render(messages), MOTE_ERROR_TEMPLATE) << messages;
    EXPECT_NE(std::strstr(error_.message, "messages"), nullptr) << error_.message;
    EXPECT_EQ(prompt_, nullptr);
  }
  EXPECT_EQ(render(nullptr), MOTE_ERROR_INVALID_ARGUMENT);
  conversation_.variables = "[]";
  EXPECT_EQ(render("[]"), MOTE_ERROR_TEMPLATE);
  EXPECT_NE(std::strstr(error_.message, "variables"), nullptr) << error_.message;
}

TEST_F(CApiChat, templates_of_ones_own_outlive_what_they_were_made_from) {
  std::string source = "{{ messages[0].content | upper }}";
  mote_chat_template* own = nullptr;
  ASSERT_EQ(mote_chat_template_open(source.data(), source.size(), &own, &error_), MOTE_OK);
  source.assign(source.size(), 'x');
  conversation_.messages = R"([{"content": "ab"}])";
  ASSERT_EQ(mote_chat_template_render(own, &conversation_, &prompt_, &error_), MOTE_OK) << error_.message;
  mote_chat_template_close(own);
  EXPECT_EQ(text(), "AB");
}

TEST_F(CApiChat, errors_of_templates_are_those_of_jinja2) {
  mote_chat_template* own = nullptr;
  EXPECT_EQ(mote_chat_template_open("{{ 1 +", 6, &own, &error_), MOTE_ERROR_TEMPLATE);
  EXPECT_EQ(own, nullptr);
  EXPECT_EQ(mote_chat_template_open("\xFF", 1, &own, &error_), MOTE_ERROR_TEMPLATE);
  const char* raises = "{{ raise_exception('only users') }}";
  ASSERT_EQ(mote_chat_template_open(raises, std::strlen(raises), &own, &error_), MOTE_OK);
  conversation_.messages = "[]";
  EXPECT_EQ(mote_chat_template_render(own, &conversation_, &prompt_, &error_), MOTE_ERROR_TEMPLATE);
  EXPECT_STREQ(error_.message, "only users");
  mote_chat_template_close(own);
}

TEST_F(CApiChat, null_is_an_error_everywhere) {
  mote_chat_template* own = nullptr;
  const char* text = nullptr;
  size_t count = 0;
  const int32_t codes[] = {
      mote_chat_template_open(nullptr, 3, &own, &error_),
      mote_chat_template_open("x", 1, nullptr, &error_),
      mote_chat_template_render(nullptr, &conversation_, &prompt_, &error_),
      mote_model_render(nullptr, &conversation_, &prompt_, &error_),
      mote_model_render(model_, nullptr, &prompt_, &error_),
      mote_model_render(model_, &conversation_, nullptr, nullptr),
      mote_prompt_text(nullptr, &text, nullptr, &error_),
      mote_prompt_user_text(nullptr, nullptr, 0, &count, &error_),
      mote_prompt_tokenize(model_, nullptr, nullptr, 0, &count, &error_),
  };
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], MOTE_ERROR_INVALID_ARGUMENT) << "call " << i;
  mote_prompt_close(nullptr);
  mote_chat_template_close(nullptr);
}

TEST(CApiWithoutTemplate, says_so) {
  test::TinyFile file{test::tiny_program()};
  auto error = sized<mote_error>();
  mote_model* model = nullptr;
  ASSERT_EQ(mote_model_open(file.path().c_str(), nullptr, &model, &error), MOTE_OK);
  auto conversation = sized<mote_conversation>();
  conversation.messages = "[]";
  mote_prompt* prompt = nullptr;
  EXPECT_EQ(mote_model_render(model, &conversation, &prompt, &error), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error.message, "chat template"), nullptr) << error.message;
  mote_model_close(model);
}

}  // namespace
}  // namespace mote
