// A reply to a conversation, from its prompt to the message that is appended to the conversation.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/chat/context_window.h"
#include "runner/chat/conversation.h"
#include "runner/generation/generation.h"
#include "runner/generation/piece_stream.h"
#include "runner/replies/parser.h"

namespace mote {

enum class ChatEventKind : int32_t {
  kNone = 0,           // a token of which nothing is known yet: text that may be part of a mark is held back
  kContent = 1,        // text: what was added
  kReasoning = 2,      // likewise
  kCallBegin = 3,      // text: the tool's name; call_id
  kCallArguments = 4,  // text: a piece of the arguments as JSON
  kCallEnd = 5,        // call_id: as the message has it
  kCallDiscarded = 6,  // the call that was begun is malformed; what was written of it follows as content
  kDone = 7,           // finish_reason
};

struct ChatEvent {
  ChatEventKind kind = ChatEventKind::kNone;
  size_t call_index = 0;  // of a call, from 0; the call after one that was discarded has its index
  std::string text{};
  std::string call_id{};
  // The first event of a step has the step's token; -1: none.
  int32_t token_id = -1;
  float logprob = 0.0f;
  std::vector<TokenLogprob> top_logprobs{};
  std::optional<FinishReason> finish_reason{};
};

struct ChatStatistics {
  Statistics generation;
  int64_t prompt_tokens = 0;
  int64_t kept_tokens = 0;       // of the prompt, that needed no computation
  int64_t forgotten_tokens = 0;  // of the conversation, because the context was full
  int64_t position = 0;
  int64_t context_length = 0;
};

// What a session's conversations leave for its next turn.
struct ChatPlace : Place {
  std::shared_ptr<ContextWindow> window{};  // nullptr: a new one
};

// Thread safety: one thread at a time, but for cancel.
class ChatTurn {
 public:
  // Renders the conversation and takes the session back, or forth from its prefix cache, to what it shares with the
  // prompt; the rest is read by the first call of next. Where the session shifts, the system message and the tools are
  // kept, unless its num_keep says otherwise. A cancel of the session from before does not count.
  // options: where the conversation or its tool choice or format say what the reply must be, without a grammar
  // Errors: those of Conversation::plan, Session::rewind_to_prefix and Generation::begin.
  static Result<std::unique_ptr<ChatTurn>> begin(Conversation& conversation, const ChatPlace& place,
                                                 const GenerationOptions& options);

  // The next event; at most one step of the model. After kDone: kDone again. Errors: those of Generation::next; the
  // turn is then over, and its message is what was written.
  Result<ChatEvent> next();
  // Events that next gives without computing.
  size_t num_pending() const { return events_.size(); }
  // From any thread: the step under way, or the next one, ends the turn with FinishReason::kCancelled.
  void cancel() { stream_->cancel(); }
  // The same, and takes the events that are left: the message is what was written.
  Status stop();
  bool is_over() const { return is_over_; }
  std::optional<FinishReason> finish_reason() const { return finish_reason_; }

  // What was written so far as a message of the conversation, a JSON object: "role", "content", and where there are any
  // "reasoning_content" and "tool_calls", each with an id.
  std::string message();
  ChatStatistics statistics() const;

 private:
  ChatTurn(std::shared_ptr<const ReplyPlan> plan, const ChatPlace& place, CallIds call_ids)
      : plan_(std::move(plan)), place_(place), call_ids_(std::move(call_ids)) {}
  Status open_parser(Conversation& conversation);
  Result<std::vector<int32_t>> fitting(Conversation& conversation) const;
  Status start(Conversation& conversation, GenerationOptions options);
  Status step();
  Status take_piece();
  void add(std::vector<ReplyEvent> events);
  ChatEvent done() const;
  void end();

  std::shared_ptr<const ReplyPlan> plan_;
  ChatPlace place_;
  CallIds call_ids_;
  std::unique_ptr<ReplyParser> parser_;
  std::unique_ptr<PieceStream> stream_;
  std::deque<ChatEvent> events_;
  std::optional<FinishReason> finish_reason_;
  bool is_over_ = false;
  bool is_incomplete_ = false;  // a step was left by an exception
  ChatStatistics statistics_;
  int64_t forgotten_before_ = 0;  // by the session, when the turn began
};

}  // namespace mote
