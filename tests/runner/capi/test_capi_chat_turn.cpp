// Chats through the C API.
#include <cstring>
#include <thread>

#include "tests/runner/capi/fixture.h"
#include "tests/runner/chat/scripted_model.h"

namespace mote {
namespace {

constexpr const char* kHello = R"([{"role": "user", "content": "Hello"}])";
constexpr const char* kTools = R"([{"type": "function", "function": {"name": "look", "parameters": {"enum": [{}]}}}])";

// The options of a generation that writes a text and ends.
class Script : public GivenOptions {
 public:
  Script(const mote_model* model, const std::string& text) {
    const std::string whole = text + "<eos>";
    std::vector<int32_t> ids(whole.size());
    size_t count = 0;
    EXPECT_EQ(mote_tokenize(model, whole.data(), whole.size(), 0, 1, ids.data(), ids.size(), &count, nullptr), MOTE_OK);
    std::string biases, so_far;
    for (size_t i = 0; i < count; ++i) {
      so_far += (i > 0 ? ", " : "") + std::to_string(ids[i]);
      biases += (i > 0 ? ", [[" : "[[") + so_far + "], " + std::to_string(i + 1) + "e6]";
    }
    set("{\"sequence_bias\": [" + biases + "]}");
  }
};

class CApiChatTurn : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(mote_model_open(file_.path().c_str(), nullptr, &model_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_session_open(model_, nullptr, &session_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(mote_chat_open(model_, &chat_, &error_), MOTE_OK) << error_.message;
    ASSERT_EQ(set(MOTE_CHAT_MESSAGES, kHello), MOTE_OK) << error_.message;
  }
  void TearDown() override {
    mote_chat_close(chat_);
    mote_session_close(session_);
    mote_model_close(model_);
    EXPECT_EQ(num_handle_objects(), 0u);
  }

  int32_t set(mote_chat_field field, const std::string& text) {
    return mote_chat_set(chat_, field, text.data(), text.size(), &error_);
  }
  int32_t append(const std::string& message) {
    return mote_chat_append(chat_, message.data(), message.size(), &error_);
  }
  mote_chat_turn* reply(const std::string& text, mote_session* session = nullptr) {
    const Script script(model_, text);
    mote_chat_turn* turn = nullptr;
    const mote_error_code code =
        mote_chat_reply(chat_, session == nullptr ? session_ : session, script, &turn, &error_);
    EXPECT_EQ(code, MOTE_OK) << error_.message;
    return turn;
  }
  std::string messages() {
    return given([&](char** json) { return mote_chat_messages(chat_, json, nullptr, &error_); });
  }
  std::string message(const mote_chat_turn* turn) {
    return given([&](char** json) { return mote_chat_turn_message(turn, json, &error_); });
  }
  int64_t kept(const mote_chat_turn* turn) {
    auto statistics = sized<mote_chat_statistics>();
    EXPECT_EQ(mote_chat_turn_statistics(turn, &statistics, nullptr, &error_), MOTE_OK) << error_.message;
    return statistics.kept_tokens;
  }
  template <typename Call>
  std::string given(const Call& call) {
    char* text = nullptr;
    EXPECT_EQ(call(&text), MOTE_OK) << error_.message;
    return taken(text);
  }
  // All text, and the reason.
  static std::pair<std::string, mote_finish_reason> run(mote_chat_turn* turn) {
    auto event = sized<mote_chat_event>();
    auto error = sized<mote_error>();
    std::string text;
    do {
      EXPECT_EQ(mote_chat_turn_next(turn, &event, &error), MOTE_OK) << error.message;
      text.append(event.text, event.text_bytes);
    } while (event.kind != MOTE_CHAT_DONE);
    return {text, event.finish_reason};
  }

  test::TinyFile file_{test::ascii_program()};
  mote_error error_ = sized<mote_error>();
  mote_model* model_ = nullptr;
  mote_session* session_ = nullptr;
  mote_chat* chat_ = nullptr;
};

TEST_F(CApiChatTurn, a_message_is_sent_only_if_a_reply_begins) {
  const std::string message = R"({"role":"user","content":"And"})";
  const auto send = [&](const mote_options* options, mote_chat_turn** turn) {
    return mote_chat_send(chat_, session_, message.data(), message.size(), options, turn, &error_);
  };
  const std::string before = messages();
  mote_chat_turn* turn = nullptr;
  ASSERT_EQ(set(MOTE_CHAT_TOOL_CHOICE, "required"), MOTE_OK);
  EXPECT_EQ(send(nullptr, &turn), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(turn, nullptr);
  EXPECT_EQ(messages(), before);
  ASSERT_EQ(set(MOTE_CHAT_TOOL_CHOICE, ""), MOTE_OK);
  ASSERT_EQ(send(Script(model_, "Yes"), &turn), MOTE_OK) << error_.message;
  EXPECT_EQ(run(turn).first, "Yes");
  mote_chat_turn_close(turn);
  EXPECT_EQ(messages(), before.substr(0, before.size() - 1) + ", " + message + "]");
}

TEST_F(CApiChatTurn, a_conversation_goes_on) {
  mote_chat_turn* turn = reply("Yes");
  EXPECT_EQ(kept(turn), 0);
  EXPECT_EQ(run(turn), (std::pair<std::string, mote_finish_reason>{"Yes", MOTE_FINISH_EOS}));
  ASSERT_EQ(mote_chat_take_reply(chat_, turn, &error_), MOTE_OK) << error_.message;
  mote_chat_turn_close(turn);
  ASSERT_EQ(append(R"({"role": "user", "content": "And"})"), MOTE_OK);
  turn = reply("No");
  const int64_t position = mote_session_position(session_);
  EXPECT_EQ(kept(turn), position);
  EXPECT_EQ(run(turn).first, "No");
  mote_chat_turn_close(turn);
  EXPECT_EQ(messages(), R"([{"role":"user","content":"Hello"}, {"role":"assistant","content":"Yes"}, )"
                        R"({"role":"user","content":"And"}])");
  const std::string edited = R"({"role": "user", "content": "Help"})";
  ASSERT_EQ(mote_chat_edit(chat_, 0, edited.data(), edited.size(), &error_), MOTE_OK);
  size_t count = 0;
  std::vector<int32_t> ids(64);
  ASSERT_EQ(mote_chat_prompt(chat_, ids.data(), ids.size(), &count, &error_), MOTE_OK);
  const std::string prompt = "<user>Help<eos><assistant>";
  std::vector<int32_t> expected(prompt.size());
  size_t num_expected = 0;
  ASSERT_EQ(mote_tokenize(model_, prompt.data(), prompt.size(), 0, 1, expected.data(), expected.size(), &num_expected,
                          &error_),
            MOTE_OK);
  ids.resize(count);
  expected.resize(num_expected);
  EXPECT_EQ(ids, expected);
}

TEST_F(CApiChatTurn, another_reply_and_the_rest_of_one) {
  ASSERT_EQ(append(R"({"role": "assistant", "content": "Ye"})"), MOTE_OK);
  const Script script(model_, "s!");
  mote_chat_turn* turn = nullptr;
  ASSERT_EQ(mote_chat_continue(chat_, session_, script, &turn, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(run(turn).first, "s!");
  ASSERT_EQ(mote_chat_take_reply(chat_, turn, &error_), MOTE_OK);
  mote_chat_turn_close(turn);
  EXPECT_EQ(messages(), R"([{"role":"user","content":"Hello"}, {"role":"assistant","content":"Yes!"}])");
  const Script other(model_, "No");
  ASSERT_EQ(mote_chat_regenerate(chat_, session_, other, &turn, &error_), MOTE_OK) << error_.message;
  EXPECT_EQ(run(turn).first, "No");
  ASSERT_EQ(mote_chat_take_reply(chat_, turn, &error_), MOTE_OK);
  mote_chat_turn_close(turn);
  EXPECT_EQ(messages(), R"([{"role":"user","content":"Hello"}, {"role":"assistant","content":"No"}])");
  ASSERT_EQ(mote_chat_truncate(chat_, 0, &error_), MOTE_OK);
  EXPECT_EQ(mote_chat_regenerate(chat_, session_, other, &turn, &error_), MOTE_ERROR_INVALID_STATE);
  EXPECT_EQ(mote_chat_continue(chat_, session_, other, &turn, &error_), MOTE_ERROR_INVALID_STATE);
}

TEST_F(CApiChatTurn, events_of_a_call) {
  ASSERT_EQ(set(MOTE_CHAT_TOOLS, kTools), MOTE_OK);
  ASSERT_EQ(set(MOTE_CHAT_TOOL_CHOICE, "required"), MOTE_OK);
  mote_chat_turn* turn = reply("");
  std::vector<mote_chat_event_kind> kinds;
  auto event = sized<mote_chat_event>();
  std::string arguments;
  int num_tokens = 0;
  do {
    ASSERT_EQ(mote_chat_turn_next(turn, &event, &error_), MOTE_OK) << error_.message;
    num_tokens += event.token_id >= 0;
    if (event.kind == MOTE_CHAT_NONE) continue;
    if (kinds.empty() || kinds.back() != event.kind) kinds.push_back(event.kind);
    if (event.kind == MOTE_CHAT_CALL_BEGIN) {
      EXPECT_STREQ(event.text, "look");
      EXPECT_STREQ(event.call_id, "call00000");
    }
    if (event.kind == MOTE_CHAT_CALL_ARGUMENTS) arguments += event.text;
  } while (event.kind != MOTE_CHAT_DONE);
  EXPECT_EQ(kinds, (std::vector<mote_chat_event_kind>{MOTE_CHAT_CALL_BEGIN, MOTE_CHAT_CALL_ARGUMENTS,
                                                      MOTE_CHAT_CALL_END, MOTE_CHAT_DONE}));
  auto statistics = sized<mote_statistics>();
  ASSERT_EQ(mote_chat_turn_statistics(turn, nullptr, &statistics, &error_), MOTE_OK);
  EXPECT_EQ(statistics.generated_tokens, num_tokens);
  EXPECT_EQ(statistics.finish_reason, MOTE_FINISH_EOS);
  EXPECT_NE(message(turn).find(R"("name": "look", "arguments": )" + arguments), std::string::npos);
  mote_chat_turn_close(turn);
}

TEST_F(CApiChatTurn, a_turn_that_is_stopped_keeps_what_was_written) {
  mote_chat_turn* turn = reply("A longer reply");
  auto event = sized<mote_chat_event>();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(mote_chat_turn_next(turn, &event, &error_), MOTE_OK);
  ASSERT_EQ(mote_chat_turn_stop(turn, &error_), MOTE_OK) << error_.message;
  EXPECT_NE(message(turn).find("\"A l\""), std::string::npos) << message(turn);
  ASSERT_EQ(mote_chat_turn_next(turn, &event, &error_), MOTE_OK);
  EXPECT_EQ(event.kind, MOTE_CHAT_DONE);
  EXPECT_EQ(event.finish_reason, MOTE_FINISH_CANCELLED);
  mote_chat_turn_close(turn);
}

TEST_F(CApiChatTurn, a_turn_whose_session_was_changed_says_so) {
  mote_chat_turn* turn = reply("Yes");
  auto event = sized<mote_chat_event>();
  ASSERT_EQ(mote_chat_turn_next(turn, &event, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_reset(session_, &error_), MOTE_OK);
  EXPECT_EQ(mote_chat_turn_next(turn, &event, &error_), MOTE_ERROR_INVALID_STATE);
  mote_chat_turn_close(turn);
}

TEST_F(CApiChatTurn, sessions_of_a_batch_decode_together) {
  mote_batch* batch = nullptr;
  ASSERT_EQ(mote_batch_open(model_, 0, nullptr, &batch, &error_), MOTE_OK) << error_.message;
  mote_session* other = nullptr;
  ASSERT_EQ(mote_session_open(model_, nullptr, &other, &error_), MOTE_OK);
  for (mote_session* session : {session_, other}) ASSERT_EQ(mote_session_set_batch(session, batch, &error_), MOTE_OK);
  mote_chat_turn* turns[] = {reply("Yes, that"), reply("No", other)};
  EXPECT_EQ(mote_batch_num_sequences(batch), 2);
  auto info = sized<mote_session_info>();
  EXPECT_EQ(mote_session_get_info(session_, &info, &error_), MOTE_ERROR_INVALID_STATE);
  std::string texts[2];
  std::thread thread([&] { texts[1] = run(turns[1]).first; });
  texts[0] = run(turns[0]).first;
  thread.join();
  EXPECT_EQ(texts[0], "Yes, that");
  EXPECT_EQ(texts[1], "No");
  EXPECT_EQ(mote_session_get_info(session_, &info, &error_), MOTE_OK) << error_.message;
  for (mote_chat_turn* turn : turns) mote_chat_turn_close(turn);
  // A generation does likewise, and one that is left gives its session back.
  mote_generation* generation = nullptr;
  const Script script(model_, "abc");
  const int32_t id = 3;
  ASSERT_EQ(mote_generation_begin(session_, &id, 1, script, &generation, &error_), MOTE_OK);
  auto piece = sized<mote_piece>();
  ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK) << error_.message;
  EXPECT_STREQ(piece.text, "a");
  mote_generation_end(generation);
  EXPECT_EQ(mote_batch_num_sequences(batch), 0);
  EXPECT_EQ(mote_session_get_info(session_, &info, &error_), MOTE_OK) << error_.message;
  mote_chat_turn* last = reply("A longer reply");
  mote_batch_close(batch);
  EXPECT_EQ(run(last).second, MOTE_FINISH_CANCELLED);
  mote_chat_turn_close(last);
  ASSERT_EQ(mote_session_set_batch(session_, nullptr, &error_), MOTE_OK);
  last = reply("Yes");
  EXPECT_EQ(run(last).first, "Yes");
  mote_chat_turn_close(last);
  mote_session_close(other);
}

TEST_F(CApiChatTurn, bad_calls_are_errors) {
  mote_chat* chat = nullptr;
  mote_chat_turn* turn = nullptr;
  char* json = nullptr;
  auto event = sized<mote_chat_event>();
  const int32_t codes[] = {
      mote_chat_open(nullptr, &chat, &error_),
      mote_chat_open(model_, nullptr, &error_),
      mote_chat_set(chat_, static_cast<mote_chat_field>(-1), "", 0, &error_),
      mote_chat_set(chat_, static_cast<mote_chat_field>(8), "", 0, &error_),
      mote_chat_set(chat_, MOTE_CHAT_TOOLS, nullptr, 1, &error_),
      set(MOTE_CHAT_MESSAGES, "[1"),
      append("{"),
      mote_chat_append(chat_, nullptr, 0, &error_),
      mote_chat_edit(chat_, 9, "{}", 2, &error_),
      mote_chat_truncate(chat_, 9, &error_),
      mote_chat_messages(chat_, nullptr, nullptr, &error_),
      mote_chat_reply(chat_, nullptr, nullptr, &turn, &error_),
      mote_chat_reply(nullptr, session_, nullptr, &turn, &error_),
      mote_chat_reply(chat_, session_, nullptr, nullptr, &error_),
      mote_chat_send(chat_, session_, nullptr, 2, nullptr, &turn, &error_),
      mote_chat_send(chat_, session_, "{", 1, nullptr, &turn, &error_),
      mote_chat_turn_next(nullptr, &event, &error_),
      mote_chat_turn_message(nullptr, &json, &error_),
      mote_chat_turn_stop(nullptr, &error_),
      mote_chat_take_reply(chat_, nullptr, &error_),
      mote_session_set_batch(nullptr, nullptr, &error_),
  };
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], MOTE_ERROR_INVALID_ARGUMENT) << "call " << i;
  mote_chat_close(nullptr);
  mote_chat_turn_close(nullptr);
  mote_chat_turn_cancel(nullptr);
  ASSERT_EQ(set(MOTE_CHAT_TOOL_CHOICE, "required"), MOTE_OK);
  EXPECT_EQ(mote_chat_reply(chat_, session_, nullptr, &turn, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "tool_choice: required needs tools");
}

}  // namespace
}  // namespace mote
