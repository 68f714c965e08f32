// What was said, and what else the prompt of the next reply is made of.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "runner/chat/chat_template.h"
#include "runner/chat/messages.h"
#include "runner/chat/reply_constraint.h"
#include "runner/model/model.h"

namespace mote {

// Each is JSON as OpenAI's API spells it, but for kChatTemplate, the source of a template, and kContinueFinalMessage,
// the name of the last message's field that the reply goes on with.
enum class ChatField : int32_t {
  kMessages = 0,
  kTools = 1,
  kDocuments = 2,
  kVariables = 3,  // of the template, such as {"enable_thinking": false}
  kChatTemplate = 4,
  kContinueFinalMessage = 5,
  kToolChoice = 6,
  kResponseFormat = 7,
};
inline constexpr size_t kNumChatFields = 8;

// The prompt of a reply and how the reply is read.
struct ReplyPlan {
  std::string text;
  std::vector<int32_t> ids;
  ReplyConstraint constraint;
  std::string tools;  // as the template saw them
};

// Thread safety: one thread at a time.
class Conversation {
 public:
  explicit Conversation(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  // An empty text: none, or the model's own template. Errors: kInvalidArgument naming messages; kInvalidTemplate. What
  // is wrong with the other fields is told by plan.
  Status set(ChatField field, std::string_view text);

  size_t num_messages() const { return messages_.size(); }
  std::string messages() const;  // a JSON list
  // message: JSON. Errors: kInvalidArgument.
  Status append(std::string_view message);
  // Replaces the index-th message and drops those that followed. Errors: kInvalidArgument naming the index.
  Status edit(size_t index, std::string_view message);
  // Keeps the first `count` messages. Errors: likewise.
  Status truncate(size_t count);
  // Drops the last reply and what followed it, so that another can be given; nothing where the conversation waits for a
  // reply. Errors: kInvalidState if there is nothing to reply to.
  Status drop_reply();
  // The next reply goes on with the last message, which was cut off: with its reasoning, where it has nothing else yet.
  // Errors: kInvalidState if that is no reply.
  Status continue_reply();
  // The reply of a turn that this conversation had: appended, or added to the message that it went on with, which then
  // is not gone on with any more.
  Status take_reply(std::string_view message);

  // Asked while plan compiles a grammar; may be empty.
  void set_is_cancelled(std::function<bool()> is_cancelled) { is_cancelled_ = std::move(is_cancelled); }
  // Kept until a field or a message changes. Errors: kInvalidArgument naming the field, kInvalidTemplate with the
  // message of jinja2 or transformers, kCancelled.
  Result<std::shared_ptr<const ReplyPlan>> plan();
  // How many of the first ids of the plan are those of the system message and the tools.
  Result<size_t> num_system_ids();

  const std::shared_ptr<const Model>& model() const { return model_; }
  Result<std::shared_ptr<const ChatTemplate>> chat_template() const;
  bool continues_reasoning() const;
  CallIds call_ids() const { return CallIds(messages_); }

 private:
  const std::string& field(ChatField field) const { return fields_[static_cast<size_t>(field)]; }
  Result<Prompt> render(std::span<const JsonTree> messages, bool is_opening, std::string_view tools) const;
  Result<std::vector<int32_t>> encode(const Prompt& prompt) const;

  std::shared_ptr<const Model> model_;
  std::vector<JsonTree> messages_;
  std::array<std::string, kNumChatFields> fields_;
  std::shared_ptr<const ChatTemplate> own_template_;  // nullptr: the model's
  std::shared_ptr<const ReplyPlan> plan_;             // nullptr: to be made
  std::function<bool()> is_cancelled_;
};

}  // namespace mote
