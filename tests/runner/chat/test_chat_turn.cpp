// Turns of a chat: what is read, what comes of it, what the message is.
#include <gtest/gtest.h>

#include <thread>

#include "runner/generation/batch.h"
#include "tests/runner/chat/scripted_model.h"

namespace mote {
namespace {

using test::ScriptedModel;
using test::written;

constexpr const char* kHello = R"([{"role": "user", "content": "Hello"}])";
constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties":
    {"city": {"enum": ["Rome"]}}, "required": ["city"], "additionalProperties": false}}}])";
constexpr const char* kCall = R"(<tool_call>
{"name": "look", "arguments": {"city": "Rome"}}
</tool_call>)";

std::unique_ptr<ChatTurn> begin(Conversation& conversation, const ChatPlace& place, const GenerationOptions& options) {
  auto turn = ChatTurn::begin(conversation, place, options);
  EXPECT_TRUE(turn.ok()) << turn.status().message();
  return turn.ok() ? *std::move(turn) : nullptr;
}

TEST(ChatTurn, splits_reasoning_content_and_calls) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello, kTools);
  ASSERT_TRUE(conversation.set(ChatField::kVariables, R"({"think": true})").ok());
  const auto turn = begin(conversation, scripted.place, scripted.saying("hm</think>Let me see." + std::string(kCall)));
  EXPECT_EQ(written(*turn),
            "reasoning hm\ncontent Let me see.\nbegin look#call00000\narguments {\"city\": \"Rome\"}\nend #call00000");
  EXPECT_EQ(turn->message(),
            R"({"role": "assistant", "content": "Let me see.", "reasoning_content": "hm", "tool_calls": [{"type": )"
            R"("function", "id": "call00000", "function": {"name": "look", "arguments": {"city": "Rome"}}}]})");
  EXPECT_EQ(turn->finish_reason(), FinishReason::kEos);
  EXPECT_EQ(turn->next()->kind, ChatEventKind::kDone);
}

TEST(ChatTurn, every_token_comes_once) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  GenerationOptions options = scripted.saying("a<think>b</think>c <tool_call> d");
  options.top_logprobs = 2;
  const auto turn = begin(conversation, scripted.place, options);
  std::vector<int32_t> ids;
  while (true) {
    const ChatEvent event = *turn->next();
    if (event.token_id >= 0) {
      ids.push_back(event.token_id);
      EXPECT_EQ(event.top_logprobs.size(), 2u);
    } else {
      EXPECT_TRUE(event.top_logprobs.empty());
    }
    if (event.kind == ChatEventKind::kDone) break;
  }
  EXPECT_EQ(ids, scripted.ids("a<think>b</think>c <tool_call> d<eos>"));
}

TEST(ChatTurn, a_further_turn_reads_its_new_text_only) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  const auto first = begin(conversation, scripted.place, scripted.saying("Yes"));
  EXPECT_EQ(written(*first), "content Yes");
  EXPECT_EQ(first->statistics().kept_tokens, 0);
  const int64_t read = scripted.place.session->position();
  ASSERT_TRUE(conversation.take_reply(first->message()).ok());
  ASSERT_TRUE(conversation.append(R"({"role": "user", "content": "And"})").ok());
  const auto second = begin(conversation, scripted.place, scripted.saying("No"));
  EXPECT_EQ(second->statistics().kept_tokens, read);
  EXPECT_EQ(second->statistics().prompt_tokens, static_cast<int64_t>((*conversation.plan())->ids.size()));
  EXPECT_EQ(written(*second), "content No");
}

TEST(ChatTurn, an_edited_message_goes_back_to_what_is_shared) {
  ScriptedModel scripted;
  Conversation conversation =
      scripted.conversation(R"([{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hello"}])");
  const auto first = begin(conversation, scripted.place, scripted.saying("Yes"));
  (void)written(*first);
  ASSERT_TRUE(conversation.take_reply(first->message()).ok());
  ASSERT_TRUE(conversation.edit(1, R"({"role": "user", "content": "Help"})").ok());
  EXPECT_EQ(conversation.num_messages(), 2u);
  const auto second = begin(conversation, scripted.place, scripted.saying("No"));
  EXPECT_EQ(second->statistics().kept_tokens,
            static_cast<int64_t>(scripted.ids("<system>Be brief<eos><user>Hel").size()));
  EXPECT_EQ(written(*second), "content No");
}

TEST(ChatTurn, replies_go_on_where_they_were_cut_off) {
  ScriptedModel scripted;
  Conversation conversation =
      scripted.conversation(R"([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Ye"}])");
  ASSERT_TRUE(conversation.continue_reply().ok());
  EXPECT_TRUE((*conversation.plan())->text.ends_with("<assistant>Ye"));
  const auto turn = begin(conversation, scripted.place, scripted.saying("s, yes"));
  EXPECT_EQ(written(*turn), "content s, yes");
  ASSERT_TRUE(conversation.take_reply(turn->message()).ok());
  EXPECT_EQ(conversation.messages(),
            R"([{"role":"user","content":"Hello"}, {"role":"assistant","content":"Yes, yes"}])");
  ASSERT_TRUE(conversation.append(R"({"role": "user", "content": "And"})").ok());
  EXPECT_EQ(conversation.continue_reply().code(), Code::kInvalidState);
  EXPECT_TRUE((*conversation.plan())->text.ends_with("And<eos><assistant>"));
}

TEST(ChatTurn, reasoning_goes_on_too) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(
      R"([{"role": "user", "content": "Hello"}, {"role": "assistant", "reasoning_content": "h", "content": ""}])");
  ASSERT_TRUE(conversation.continue_reply().ok());
  const auto turn = begin(conversation, scripted.place, scripted.saying("m</think>Yes"));
  EXPECT_EQ(written(*turn), "reasoning m\ncontent Yes");
  ASSERT_TRUE(conversation.take_reply(turn->message()).ok());
  EXPECT_NE(conversation.messages().find(R"("reasoning_content":"hm","content":"Yes")"), std::string::npos)
      << conversation.messages();
}

TEST(ChatTurn, a_call_that_must_be_is_one) {
  ScriptedModel scripted;
  for (const char* choice : {"required", "\"required\"", R"({"type": "function", "function": {"name": "look"}})"}) {
    Conversation conversation = scripted.conversation(kHello, kTools);
    ASSERT_TRUE(conversation.set(ChatField::kToolChoice, choice).ok());
    ASSERT_TRUE(conversation.set(ChatField::kVariables, R"({"think": true})").ok());
    GenerationOptions options = scripted.saying(R"({"name":"look","arguments":{"city":"Rome"}})");
    const auto turn = begin(conversation, scripted.place, options);
    EXPECT_EQ(written(*turn), "begin look#call00000\narguments {\"city\":\"Rome\"}\nend #call00000");
    options.max_new_tokens = 28;
    const auto cut_off = begin(conversation, scripted.place, options);
    EXPECT_EQ(written(*cut_off),
              "begin look#call00000\narguments {\ndiscarded \ncontent {\"name\":\"look\",\"arguments\":{");
    EXPECT_EQ(cut_off->message(), R"({"role": "assistant", "content": "{\"name\":\"look\",\"arguments\":{"})");
    EXPECT_EQ(cut_off->finish_reason(), FinishReason::kLength);
  }
}

TEST(ChatTurn, tools_are_not_shown_where_none_may_be_called) {
  ScriptedModel scripted;
  Conversation without = scripted.conversation(kHello);
  Conversation none = scripted.conversation(kHello, kTools);
  EXPECT_NE((*none.plan())->text, (*without.plan())->text);
  ASSERT_TRUE(none.set(ChatField::kToolChoice, "none").ok());
  EXPECT_EQ((*none.plan())->text, (*without.plan())->text);
}

TEST(ChatTurn, replies_have_the_format_that_is_asked_for) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  ASSERT_TRUE(conversation.set(ChatField::kVariables, R"({"think": true})").ok());
  ASSERT_TRUE(conversation
                  .set(ChatField::kResponseFormat,
                       R"({"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}})")
                  .ok());
  const auto turn = begin(conversation, scripted.place, scripted.saying("\"no\""));
  EXPECT_EQ(written(*turn), "content \"no\"");
  ASSERT_TRUE(conversation.set(ChatField::kResponseFormat, R"({"type": "json_object"})").ok());
  const auto object = begin(conversation, scripted.place, scripted.saying("[] {}"));
  EXPECT_EQ(written(*object).substr(0, 9), "content {");
}

std::string refusal(Conversation& conversation) {
  const auto plan = conversation.plan();
  EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
  return plan.status().message();
}

TEST(ChatTurn, refuses_what_cannot_be_met_naming_the_field) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  const auto set = [&](ChatField field, const char* text) { ASSERT_TRUE(conversation.set(field, text).ok()); };
  set(ChatField::kToolChoice, "required");
  EXPECT_EQ(refusal(conversation), "tool_choice: required needs tools");
  set(ChatField::kTools, kTools);
  set(ChatField::kToolChoice, R"({"type": "function", "function": {"name": "fly"}})");
  EXPECT_EQ(refusal(conversation), "tool_choice: \"fly\" is not one of the tools");
  set(ChatField::kToolChoice, "sometimes");
  EXPECT_EQ(refusal(conversation).substr(0, 33), "tool_choice = sometimes: must be ");
  set(ChatField::kToolChoice, "required");
  set(ChatField::kResponseFormat, R"({"type": "json_object"})");
  EXPECT_EQ(refusal(conversation).substr(0, 31), "response_format: cannot be met ");
  set(ChatField::kToolChoice, "auto");
  set(ChatField::kResponseFormat, R"({"type": "xml"})");
  EXPECT_EQ(refusal(conversation).substr(0, 29), "response_format.type = \"xml\":");
  set(ChatField::kResponseFormat, R"({"type": "json_schema", "json_schema": {"schema": {"type": "strnig"}}})");
  EXPECT_EQ(refusal(conversation).substr(0, 35), "response_format.json_schema.schema:");
}

TEST(ChatTurn, a_cancelled_reply_keeps_what_was_written) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  const auto turn = begin(conversation, scripted.place, scripted.saying("Yes, and more"));
  EXPECT_EQ(turn->next()->text, "Y");
  EXPECT_EQ(turn->next()->text, "e");
  turn->cancel();
  EXPECT_EQ(written(*turn), "");
  EXPECT_EQ(turn->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(turn->message(), R"({"role": "assistant", "content": "Ye"})");
  const auto stopped = begin(conversation, scripted.place, scripted.saying("Yes <tool"));
  for (int i = 0; i < 7; ++i) (void)stopped->next();
  ASSERT_TRUE(stopped->stop().ok());
  EXPECT_EQ(stopped->message(), R"({"role": "assistant", "content": "Yes <to"})");
}

TEST(ChatTurn, a_cancel_from_before_does_not_count) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(kHello);
  scripted.place.session->cancel();
  EXPECT_EQ(written(*begin(conversation, scripted.place, scripted.saying("Yes"))), "content Yes");
}

TEST(ChatTurn, ids_of_calls_are_taken_once) {
  ScriptedModel scripted;
  Conversation conversation = scripted.conversation(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls":
      [{"id": "call00001", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call00001", "content": "rain"}])",
      kTools);
  const auto turn = begin(conversation, scripted.place, scripted.saying(std::string(kCall) + kCall));
  const std::string lines = written(*turn);
  EXPECT_NE(lines.find("begin look#call00002"), std::string::npos) << lines;
  EXPECT_NE(lines.find("begin look#call00003"), std::string::npos) << lines;
  EXPECT_NE(turn->message().find("call00003"), std::string::npos);
}

TEST(ChatTurn, the_oldest_is_forgotten_and_the_system_message_kept) {
  SessionOptions options;
  options.context_length = 64;
  options.overflow = Overflow::kShift;
  ScriptedModel scripted(test::kThinkTemplate, options);
  Conversation conversation = scripted.conversation(R"([{"role": "system", "content": "Brief"}])");
  const std::vector<int32_t> system = scripted.ids("<system>Brief<eos>");
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(conversation.append(R"({"role": "user", "content": "Hello"})").ok());
    const auto turn = begin(conversation, scripted.place, scripted.saying("Yes"));
    EXPECT_EQ(written(*turn), "content Yes");
    const std::span<const int32_t> tokens = scripted.place.session->tokens();
    ASSERT_GE(tokens.size(), system.size());
    EXPECT_TRUE(std::equal(system.begin(), system.end(), tokens.begin())) << "turn " << i;
    ASSERT_TRUE(conversation.take_reply(turn->message()).ok());
  }
  EXPECT_GT(scripted.place.window->forgotten(), 0);
}

TEST(ChatTurn, a_conversation_that_does_not_fit_is_refused) {
  SessionOptions options;
  options.context_length = 16;
  ScriptedModel scripted(test::kThinkTemplate, options);
  Conversation conversation = scripted.conversation(kHello);
  const auto turn = ChatTurn::begin(conversation, scripted.place, {});
  EXPECT_EQ(turn.status().code(), Code::kContextFull);
}

TEST(ChatTurn, turns_of_a_batch_are_as_alone) {
  ScriptedModel scripted;
  const std::vector<std::string> says = {"Yes", "hm</think>No", "Let me see." + std::string(kCall), "A longer reply"};
  std::vector<std::string> alone;
  for (const std::string& text : says) {
    Conversation conversation = scripted.conversation(kHello, kTools);
    alone.push_back(written(*begin(conversation, scripted.place, scripted.saying(text))));
  }
  auto batch = Batch::open(scripted.model, {});
  ASSERT_TRUE(batch.ok());
  const std::shared_ptr<Batch> shared = *std::move(batch);
  std::vector<std::string> together(says.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < says.size(); ++i) {
    threads.emplace_back([&, i] {
      Conversation conversation = scripted.conversation(kHello, kTools);
      ChatPlace place;
      place.session = scripted.session();
      place.batch = shared;
      together[i] = written(*begin(conversation, place, scripted.saying(says[i])));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
  EXPECT_EQ(shared->num_sequences(), 0u);
}

TEST(ChatTurn, a_turn_of_a_batch_that_is_left_gives_its_session_back) {
  ScriptedModel scripted;
  auto batch = Batch::open(scripted.model, {});
  ASSERT_TRUE(batch.ok());
  scripted.place.batch = *std::move(batch);
  Conversation conversation = scripted.conversation(kHello);
  (void)begin(conversation, scripted.place, scripted.saying("A longer reply"))->next();
  EXPECT_EQ(scripted.place.batch->num_sequences(), 0u);
  EXPECT_EQ(written(*begin(conversation, scripted.place, scripted.saying("Yes"))), "content Yes");
}

}  // namespace
}  // namespace mote
