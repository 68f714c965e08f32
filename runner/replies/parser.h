// Splits a model's reply into content, reasoning and tool calls, while it is written.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runner/replies/call_readers.h"
#include "runner/replies/format.h"
#include "runner/replies/message.h"
#include "runner/replies/tool_types.h"

namespace mote {

struct ReplyOptions {
  std::string_view format;         // a name of the table; empty: recognised by the chat template
  std::string_view chat_template;  // its source
  std::string_view prompt;         // what the reply follows, or the end of it: it may have begun the reasoning
  std::string_view tools;          // JSON, as templates take them: which parameters are strings; empty: not known
  bool is_reasoning = false;       // it goes on with reasoning that the prompt ends in
};

using ReplyEvent = reply::Event;
using ReplyEventKind = reply::EventKind;

// Those that ReplyOptions::format accepts, in the order in which templates are compared with them.
std::vector<std::string_view> reply_format_names();

// The message does not depend on how the text is split. Text that looks like a call and is none comes out as content,
// as it was written. Thread safety: one thread at a time. Cost: linear in the text.
class ReplyParser {
 public:
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  // Errors: kInvalidArgument naming what is wrong with `format` or `tools`.
  static Result<std::unique_ptr<ReplyParser>> make(const ReplyOptions& options);

  // Appends what the text adds; special tokens are spelled out. Text that may be part of a mark is held back, bytes
  // that are no UTF-8 become U+FFFD. Errors: kInvalidArgument if the reply is finished or longer than kMaxBytes.
  Status push(std::string_view text, std::vector<ReplyEvent>& events);
  // Appends what was held back. Nothing if the reply is finished.
  void finish(std::vector<ReplyEvent>& events);

  // What was read so far, as transformers has messages: a JSON object {"role", "content", "reasoning_content",
  // "tool_calls"}, the last two only where there are any. call_ids: of the calls that the model gave none; may be
  // fewer.
  std::string message(std::span<const std::string> call_ids = {}) const { return message_.json(call_ids); }
  size_t num_calls() const { return message_.num_calls(); }
  // NUL-terminated; lives as long as the process.
  std::string_view format_name() const { return format_.name; }

 private:
  ReplyParser(const reply::Format& format, reply::ToolTypes types);
  struct Found {
    std::string_view mark;              // empty: none
    const reply::Rule* rule = nullptr;  // nullptr: it ends the turn
    bool may_grow = false;              // more text could make it a mark, or a longer one
  };
  void consume(std::string_view bytes);
  void step(char c);
  bool is_active(const reply::Rule& rule) const;
  const reply::Rule* rule_for(std::string_view mark) const;
  Found find_mark() const;
  void match(char c);
  void resolve_held();
  bool take_held(const Found& found);
  bool take_text(char c);
  bool take_captured(char c);
  bool may_capture(char c) const;
  void take_any(char c);
  void apply(const reply::Rule& rule, std::string_view mark);
  bool leave(const reply::Rule& rule);
  void enter(reply::State state);
  bool begin_call();
  bool route(reply::State& to);
  void add_key();
  void add_parameter(std::string_view text, bool is_typed);
  void fail();

  const reply::Format& format_;
  reply::ToolTypes types_;
  reply::Message message_;
  reply::State state_;
  std::unique_ptr<reply::CallReader> reader_;  // of what the state holds
  bool is_complete_ = false;                   // the reader has all
  std::string held_;                           // may be the beginning of a mark
  std::string written_;                        // of what may become a call, from the mark that opens it
  std::string captured_;                       // a header, an id, a name, a key or a parameter
  std::string header_;
  std::string name_;
  std::string key_;
  bool has_parameters_ = false;  // of the call that was begun
  std::string bytes_;            // the beginning of a character
  size_t num_bytes_ = 0;
  bool is_finished_ = false;
};

}  // namespace mote
