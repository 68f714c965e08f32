// A chat without a model and without a terminal.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runner/cli/chat/chat_loop.h"
#include "runner/cli/handles.h"

namespace mote::cli::test {

inline const char kInterrupt[] = "\x03";

// Lines that were prepared; kInterrupt is Ctrl-C.
class ScriptedInput : public Input {
 public:
  explicit ScriptedInput(std::vector<std::string> lines) : lines_(lines.begin(), lines.end()) {}

  InputLine read_line(const std::string& prompt) override {
    prompts.push_back(prompt);
    if (lines_.empty()) return {};
    std::string line = lines_.front();
    lines_.pop_front();
    if (line == kInterrupt) return {InputEvent::kInterrupt, ""};
    return {InputEvent::kLine, line};
  }
  void remember(const std::string& text) override { remembered.push_back(text); }

  std::vector<std::string> prompts;
  std::vector<std::string> remembered;

 private:
  std::deque<std::string> lines_;
};

// Says what it is told to, read as a model's text of this format is.
class ScriptedResponder : public Responder {
 public:
  explicit ScriptedResponder(std::vector<std::string> replies) : replies_(replies.begin(), replies.end()) {}

  Reply respond(const Conversation& conversation, const Settings& settings, const Show& show) override {
    asked.push_back(conversation);
    given.push_back(settings.given());
    Reply reply;
    if (refuses != nullptr && refuses(conversation)) {
      reply.error = "model.mote: its chat template refuses the conversation: results first";
      return reply;
    }
    if (replies_.empty()) {
      reply.is_stopped = true;
      return reply;
    }
    std::string text = replies_.front();
    replies_.pop_front();
    const bool is_stopped = text.ends_with(kInterrupt);
    if (is_stopped) text.pop_back();
    auto options = sized<mote_reply_options>();
    options.format = "hermes";
    mote_reply* handle = nullptr;
    check([&](mote_error* error) { return mote_reply_open(&options, &handle, error); });
    const std::unique_ptr<mote_reply, Closer<mote_reply_close>> reader(handle);
    for (size_t i = 0; i < text.size(); i += 3) {
      const std::string piece = text.substr(i, 3);
      check([&](mote_error* error) { return mote_reply_push(handle, piece.data(), piece.size(), error); });
    }
    check([&](mote_error* error) { return mote_reply_finish(handle, error); });
    auto event = sized<mote_reply_event>();
    for (mote_reply_next_event(handle, &event, nullptr); event.kind != MOTE_REPLY_NONE;
         mote_reply_next_event(handle, &event, nullptr)) {
      auto shown = sized<mote_chat_event>();
      shown.kind = static_cast<mote_chat_event_kind>(event.kind);
      shown.text = event.text;
      shown.text_bytes = event.text_bytes;
      show(shown);
    }
    reply.message = Json::parse(
        take_string([&](char** json, mote_error* error) { return mote_reply_message(handle, json, error); }));
    if (reply.message.contains("tool_calls")) {
      for (Json& call : reply.message["tool_calls"]) call["id"] = "call0000" + std::to_string(num_calls_++);
    }
    reply.is_whole = !is_stopped;
    reply.is_stopped = is_stopped;
    reply.statistics.prompt_tokens = 10;
    reply.statistics.kept_tokens = 7;
    reply.statistics.generated_tokens = 5;
    reply.statistics.context_length = 100;
    return reply;
  }
  void validate(const Settings& settings) override {
    if (settings.given().count("top_k") > 0 && settings.given().at("top_k")[0] == "99")
      throw InputError("top_k = 99: too many for this model");
  }
  std::vector<Settings::Line> lines(const Settings& settings) const override {
    std::vector<Settings::Line> lines;
    for (const auto& [name, values] : settings.given()) lines.push_back({name, values[0], true});
    return lines;
  }
  std::string move_to(const std::string& name) override {
    if (name == "npu") throw InputError("model.mote: has no target npu: it has vulkan, cpu");
    if (!name.empty()) backend = name;
    return backend;
  }
  bool reads_variable(const std::string& name) const override { return name == "enable_thinking"; }

  bool (*refuses)(const Conversation&) = nullptr;
  std::string backend = "vulkan";
  std::vector<Conversation> asked;
  std::vector<GivenOptions> given;

 private:
  std::deque<std::string> replies_;
  int num_calls_ = 0;
};

class MemoryFile {
 public:
  ~MemoryFile() { std::fclose(file_); }
  FILE* get() const { return file_; }
  std::string text() const {
    std::string result(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    result.resize(std::fread(result.data(), 1, result.size(), file_));
    return result;
  }

 private:
  FILE* file_ = std::tmpfile();
};

// What a chat of these lines with these replies shows and becomes.
struct ScriptedChat {
  ScriptedChat(std::vector<std::string> lines, std::vector<std::string> replies)
      : input(std::move(lines)), responder(std::move(replies)) {}

  ScriptedChat& run(bool is_interactive = true) {
    Screen screen(out_file.get(), err_file.get());
    ChatLoop loop(responder, input, screen, state, {is_interactive, false});
    status = loop.run();
    state = loop.state();
    out = out_file.text();
    err = err_file.text();
    return *this;
  }
  const Json& messages() const { return state.conversation.messages; }

  ScriptedInput input;
  ScriptedResponder responder;
  ChatState state;
  MemoryFile out_file, err_file;
  std::string out, err;
  int status = -1;
};

}  // namespace mote::cli::test
