// A conversation from its first line to its last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/cli/chat/conversation.h"
#include "runner/cli/chat/entry_reader.h"
#include "runner/cli/chat/responder.h"
#include "runner/cli/chat/screen.h"
#include "runner/cli/chat/settings.h"

namespace mote::cli {

struct ChatState {
  Conversation conversation;
  Settings settings;
};

struct ChatOptions {
  bool is_interactive = false;
  bool shows_statistics = false;  // after each reply
};

class ChatLoop {
 public:
  ChatLoop(Responder& responder, Input& input, Screen& screen, ChatState state, const ChatOptions& options);

  // Returns the exit status: 0, kExitBadInput where a message of a pipe got no whole reply, kExitInterrupted where
  // Ctrl-C came while a pipe was read.
  int run();
  // Replies to one message. Returns the exit status, as run does; kExitInterrupted where Ctrl-C stopped the reply.
  int ask(const std::string& text);

  const ChatState& state() const { return state_; }

  // "/help" and so on.
  static std::vector<std::string> command_names();
  // A line for each command.
  static std::string command_help();

 private:
  struct Row {
    const char* name;
    const char* argument;
    const char* help;  // "": another name of the one before
    void (ChatLoop::*run)(const std::string&);
  };
  static std::span<const Row> rows();  // in the order of /help

  void say(const std::string& text);
  void answer(const ChatState& before);
  void finish(Reply reply, const ChatState& before);
  void show_statistics() const;
  void show_open_call() const;
  void obey(const Command& command);

  void help(const std::string&);
  void leave(const std::string&);
  void reset(const std::string&);
  void undo(const std::string&);
  void retry(const std::string&);
  void system(const std::string& text);
  void set(const std::string& text);
  void save(const std::string& path);
  void load(const std::string& path);
  void stats(const std::string&);
  void backend(const std::string& name);
  void result(const std::string& text);

  void list_settings() const;

  Responder& responder_;
  EntryReader entries_;
  Screen& screen_;
  ChatState state_;
  const ChatOptions options_;
  ReplyStatistics statistics_;
  bool has_statistics_ = false;
  bool has_left_ = false;
  bool has_failed_ = false;
  uint64_t num_retries_ = 0;  // of the last message
};

}  // namespace mote::cli
