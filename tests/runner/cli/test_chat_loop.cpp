// Chats from their first line to their last, with a script in the model's place.
#include <filesystem>
#include <fstream>

#include "runner/cli/verbs.h"
#include "tests/runner/cli/scripted.h"

namespace mote::cli {
namespace {

using test::kInterrupt;
using test::ScriptedChat;

const std::string kCall = R"(<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>)";

Json said(const char* role, const char* content) { return {{"role", role}, {"content", content}}; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "mote_chat_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return (path_ / name).string(); }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

TEST(ChatLoop, replies_become_messages) {
  ScriptedChat chat({"Hello", "", "And?"}, {"Hi", "Well"});
  chat.run();
  EXPECT_EQ(chat.messages(),
            Json({said("user", "Hello"), said("assistant", "Hi"), said("user", "And?"), said("assistant", "Well")}));
  EXPECT_EQ(chat.out, "Hi\nWell\n");
  EXPECT_EQ(chat.status, 0);
  ASSERT_EQ(chat.responder.asked.size(), 2u);
  EXPECT_EQ(chat.responder.asked[1].messages.size(), 3u);
}

TEST(ChatLoop, reasoning_and_calls_become_messages) {
  ScriptedChat chat({"Weather?", "/result 21 degrees", "Thanks"},
                    {"<think>I look.</think>Wait.\n" + kCall, "Sunny.", "Yes"});
  chat.run();
  const Json call{{"type", "function"},
                  {"id", "call00000"},
                  {"function", {{"name", "get_weather"}, {"arguments", {{"city", "Paris"}}}}}};
  EXPECT_EQ(chat.messages()[1]["reasoning_content"], "I look.");
  EXPECT_EQ(chat.messages()[1]["content"], "Wait.");
  ASSERT_EQ(chat.messages()[1]["tool_calls"].size(), 1u);
  EXPECT_EQ(chat.messages()[1]["tool_calls"][0]["id"], "call00000");
  EXPECT_EQ(chat.messages()[1]["tool_calls"][0]["function"], call["function"]);
  const Json result{
      {"role", "tool"}, {"name", "get_weather"}, {"tool_call_id", "call00000"}, {"content", "21 degrees"}};
  EXPECT_EQ(chat.messages()[2], result);
  EXPECT_EQ(chat.messages()[3], said("assistant", "Sunny."));
  EXPECT_EQ(chat.out, "Wait.\nget_weather({\"city\": \"Paris\"})\nSunny.\nYes\n");
  EXPECT_TRUE(has(chat.err, "I look.\n\n")) << chat.err;
  EXPECT_TRUE(has(chat.err, "get_weather waits for /result TEXT")) << chat.err;
}

TEST(ChatLoop, calls_are_answered_in_order) {
  ScriptedChat chat({"Weather?", "/result one", "/result two", "/result three"}, {kCall + "\n" + kCall, "Done."});
  chat.run();
  std::string roles;
  for (const Json& message : chat.messages()) roles += message["role"].get<std::string>()[0];
  EXPECT_EQ(roles, "uatta");
  EXPECT_EQ(chat.messages()[2]["tool_call_id"], "call00000");
  EXPECT_EQ(chat.messages()[3]["tool_call_id"], "call00001");
  EXPECT_EQ(chat.responder.asked.size(), 2u);
  EXPECT_TRUE(has(chat.err, "no tool call waits for a result"));
}

TEST(ChatLoop, malformed_calls_are_shown_as_text) {
  ScriptedChat chat({"Go"}, {R"(<tool_call>{"name": "g", "arguments": {x)"});
  chat.run();
  EXPECT_EQ(chat.out, "g({ is no call:\n<tool_call>{\"name\": \"g\", \"arguments\": {x\n");
  EXPECT_FALSE(chat.messages()[1].contains("tool_calls"));
}

TEST(ChatLoop, a_reply_that_is_stopped_counts_as_far_as_it_came) {
  ScriptedChat chat({"Count", "Again", "x"}, {std::string("One, two") + kInterrupt, "Three"});
  chat.run();
  EXPECT_EQ(chat.messages(), Json({said("user", "Count"), said("assistant", "One, two"), said("user", "Again"),
                                   said("assistant", "Three")}));
  EXPECT_TRUE(has(chat.err, "[stopped]"));
}

TEST(ChatLoop, a_template_that_wants_a_result_first_ends_nothing) {
  ScriptedChat chat({"Weather?", "Well?", "/result 21"}, {kCall, "Sunny."});
  chat.responder.refuses = [](const Conversation& conversation) {
    return conversation.messages.size() > 1 && conversation.messages.back()["role"] != "tool";
  };
  chat.run();
  EXPECT_TRUE(has(chat.err, "results first. /reset starts anew")) << chat.err;
  EXPECT_EQ(chat.messages().size(), 4u);
  EXPECT_EQ(chat.messages()[3], said("assistant", "Sunny."));
  EXPECT_EQ(chat.status, 0);
}

TEST(ChatLoop, a_pipe_whose_messages_get_no_reply_ends_with_an_error) {
  ScriptedChat chat({"a", "b"}, {"x"});
  chat.responder.refuses = [](const Conversation& conversation) { return conversation.messages.size() == 1; };
  EXPECT_EQ(chat.run(false).status, kExitBadInput);
  EXPECT_EQ(ScriptedChat({"a", "/nothing"}, {"x"}).run(false).status, 0);
}

TEST(ChatLoop, interrupts_clear_the_line_and_end_a_pipe) {
  ScriptedChat terminal({kInterrupt, "Hello"}, {"Hi"});
  EXPECT_EQ(terminal.run().messages().size(), 2u);
  ScriptedChat pipe({kInterrupt, "Hello"}, {"Hi"});
  EXPECT_EQ(pipe.run(false).status, kExitInterrupted);
  EXPECT_TRUE(pipe.messages().empty());
}

TEST(ChatLoop, undo_and_retry_go_back) {
  ScriptedChat chat({"a", "b", "/undo", "/retry", "/undo", "/undo", "/retry"}, {"one", "two", "three"});
  chat.state.settings.set("seed", "7");
  chat.run();
  EXPECT_TRUE(chat.messages().empty());
  ASSERT_EQ(chat.responder.asked.size(), 3u);
  EXPECT_EQ(chat.responder.asked[2].messages, Json({said("user", "a")}));
  EXPECT_EQ(chat.responder.given[1].at("seed")[0], "7");
  EXPECT_EQ(chat.responder.given[2].at("seed")[0], "8");
  EXPECT_TRUE(has(chat.err, "took back: b"));
  EXPECT_TRUE(has(chat.err, "there is nothing to take back"));
  EXPECT_TRUE(has(chat.err, "there is no message to reply to"));
}

TEST(ChatLoop, a_retry_of_which_nothing_comes_keeps_the_reply) {
  ScriptedChat chat({"a", "/retry"}, {"one"});
  chat.run();
  EXPECT_EQ(chat.messages(), Json({said("user", "a"), said("assistant", "one")}));
}

TEST(ChatLoop, undo_takes_calls_and_results_back_too) {
  ScriptedChat chat({"a", "Weather?", "/result 1", "/undo"}, {"one", kCall, "Sunny."});
  chat.run();
  EXPECT_EQ(chat.messages(), Json({said("user", "a"), said("assistant", "one")}));
}

TEST(ChatLoop, reset_keeps_the_system_message) {
  ScriptedChat chat({"/system Be \\", "brief.", "a", "/reset", "/system", "b"}, {"one", "two"});
  chat.run();
  EXPECT_EQ(chat.state.conversation.system, "Be \nbrief.");
  EXPECT_EQ(chat.messages(), Json({said("user", "b"), said("assistant", "two")}));
  EXPECT_EQ(chat.responder.asked[1].all_messages()[0], said("system", "Be \nbrief."));
  EXPECT_TRUE(has(chat.err, "Be \nbrief."));
  EXPECT_EQ(ScriptedChat({"/system x", "/system \"\""}, {}).run().state.conversation.system, "");
}

TEST(ChatLoop, set_changes_options_and_variables) {
  ScriptedChat chat({"/set temperature 0.5", "/set top_k=3", "/set enable_thinking false",
                     R"(/set stop ["###", "User:"])", "a", "/set temperature default", "/set"},
                    {"one"});
  chat.run();
  const GivenOptions expected{{"temperature", {"0.5"}}, {"top_k", {"3"}}, {"stop_strings", {"###", "User:"}}};
  EXPECT_EQ(chat.responder.given[0], expected) << chat.err;
  EXPECT_EQ(chat.responder.asked[0].variables, Json({{"enable_thinking", false}}));
  EXPECT_EQ(chat.state.settings.given().count("temperature"), 0u);
  EXPECT_TRUE(has(chat.err, "top_k"));
  EXPECT_TRUE(has(chat.err, "enable_thinking"));
}

TEST(ChatLoop, set_refuses_what_cannot_be) {
  ScriptedChat chat({"/set temperature hot", "/set top_p 2", "/set colour red", "/set top-k", "/set stop [1]",
                     "/set max-new-tokens -1", "/set top_k 99", "/set logprobs true"},
                    {});
  chat.run();
  EXPECT_TRUE(chat.state.settings.given().empty());
  for (const char* part :
       {"temperature", "hot", "top_p = 2: must be a number, 0..1 (1: off)", "there is no option 'colour'",
        "'logprobs' cannot be set in a chat", "top_k = 99", "/set top-k needs a value", "list of texts", "-1"}) {
    EXPECT_TRUE(has(chat.err, part)) << part << " in " << chat.err;
  }
}

TEST(ChatLoop, commands_say_how_they_are_used) {
  ScriptedChat chat({"/nothing", "/help", "/undo now", "/save", "/stats", "/exit", "never"}, {});
  chat.run();
  for (const char* part : {"there is no command '/nothing': /help lists", "/retry", "/undo takes nothing",
                           "/save needs FILE", "there was no reply yet"}) {
    EXPECT_TRUE(has(chat.err, part)) << part << " in " << chat.err;
  }
  EXPECT_TRUE(chat.responder.asked.empty());
}

TEST(ChatLoop, stats_tell_what_was_kept) {
  ScriptedChat chat({"a", "/stats"}, {"one"});
  chat.run();
  EXPECT_TRUE(has(chat.err, "prompt 10 tokens (7 kept) at ")) << chat.err;
}

TEST(ChatLoop, conversations_are_saved_and_loaded) {
  const TemporaryFolder folder;
  const std::string path = folder / "chat.json";
  ScriptedChat first({"/system Be brief.", "/set temperature 0.5", R"(/set stop ["a", "b"])",
                      "/set enable_thinking false", "Weather?", "/save " + path},
                     {"<think>Hm.</think>" + kCall});
  first.state.conversation.tools = Json::array({{{"type", "function"}}});
  first.run();
  ScriptedChat second({"x", "/load " + path}, {"y"});
  second.run();
  EXPECT_EQ(second.messages(), first.messages());
  EXPECT_EQ(second.state.conversation.system, "Be brief.");
  EXPECT_EQ(second.state.conversation.tools, first.state.conversation.tools);
  EXPECT_EQ(second.state.conversation.variables, first.state.conversation.variables);
  EXPECT_EQ(second.state.settings.given(), first.state.settings.given());
  EXPECT_TRUE(has(second.err, "get_weather waits for /result TEXT"));
  EXPECT_EQ(folder.num_files(), 1u);
}

TEST(ChatLoop, a_bad_file_leaves_the_conversation_as_it_was) {
  const TemporaryFolder folder;
  const std::string path = folder / "bad.json";
  const std::pair<std::string, const char*> cases[] = {
      {"", "is no valid JSON"},
      {"{\"messages\": [", "is no valid JSON"},
      {"7", "must be what /save writes"},
      {"{}", "has no \"messages\""},
      {R"({"messages": {}})", "must be a list of messages"},
      {R"([{"role": "robot", "content": "x"}])", "messages[0].role: \"robot\": must be user"},
      {R"([{"role": "user"}])", "messages[0].content: null: must be a string"},
      {R"([{"role": "assistant", "content": "", "tool_calls": [{}]}])", "messages[0].tool_calls[0]"},
      {R"([{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": 1}}]}])",
       "function.name: must be a string"},
      {R"({"format": "other", "messages": []})", "must be \"mote-chat\""},
      {R"({"version": 2, "messages": []})", "version: 2: must be 1"},
      {R"({"system": 1, "messages": []})", "system: 1: must be a string"},
      {R"({"tools": [1], "messages": []})", "tools: must be a JSON list"},
      {R"({"settings": {"heat": 1}, "messages": []})", "there is no option 'heat'"},
      {R"({"settings": {"top-p": 2}, "messages": []})", "top_p = 2"},
      {R"({"variables": 1, "messages": []})", "variables: 1"},
      {R"({"more": 1, "messages": []})", "there is no field \"more\""},
      {std::string(100, '[') + std::string(100, ']'), "64 levels"},
  };
  for (const auto& [text, part] : cases) {
    std::ofstream(path) << text;
    ScriptedChat chat({"a", "/set top-k 2", "/load " + path}, {"one"});
    chat.run();
    EXPECT_TRUE(has(chat.err, part)) << text << ": " << chat.err;
    EXPECT_TRUE(has(chat.err, "bad.json")) << chat.err;
    EXPECT_EQ(chat.messages().size(), 2u);
    EXPECT_EQ(chat.state.settings.given().size(), 1u);
  }
  ScriptedChat missing({"/load " + (folder / "none.json"), "/save " + (folder / "no/such/folder.json")}, {});
  missing.run();
  EXPECT_TRUE(has(missing.err, "none.json: cannot be opened"));
  EXPECT_TRUE(has(missing.err, "folder.json: cannot be written"));
}

TEST(ChatLoop, replies_can_come_from_another_backend) {
  ScriptedChat chat({"/backend", "a", "/backend npu", "/backend cpu", "b"}, {"one", "two"});
  chat.run();
  EXPECT_TRUE(has(chat.err, "runs on vulkan")) << chat.err;
  EXPECT_TRUE(has(chat.err, "has no target npu: it has vulkan, cpu")) << chat.err;
  EXPECT_TRUE(has(chat.err, "runs on cpu")) << chat.err;
  EXPECT_EQ(chat.responder.backend, "cpu");
  EXPECT_EQ(chat.messages().size(), 4u);
}

TEST(ChatLoop, text_that_is_no_utf8_can_be_said_and_saved) {
  const TemporaryFolder folder;
  const std::string path = folder / "chat.json";
  ScriptedChat chat({"\xff\xfe", "/save " + path, "/load " + path}, {"one"});
  chat.run();
  EXPECT_EQ(chat.messages()[0]["content"], "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Screen, control_characters_become_visible_on_terminals) {
  EXPECT_EQ(without_controls("a\tb\n\x1b[31mc\x7f\xc2\x9b\xc3\xa9"), "a\tb\n^[[31mc^?\xef\xbf\xbd\xc3\xa9");
}

}  // namespace
}  // namespace mote::cli
