#include "runner/chat/conversation.h"

#include <algorithm>

namespace mote {
namespace {

using Kind = JsonTree::Kind;

Result<JsonTree> read_message(std::string_view json) {
  auto message = parse_json_tree(json, kMaxMessageDepth);
  MOTE_REQUIRE(message.has_value() && message->kind == Kind::kObject, Code::kInvalidArgument,
               "message = %s: must be a JSON object with a role and a content", beginning(json).c_str());
  return *std::move(message);
}

bool has_role(const JsonTree& message, std::string_view role) { return text_of(message.find("role")) == role; }

// Whether calls of the last reply have no result yet.
bool waits_for_results(std::span<const JsonTree> messages) {
  size_t answered = 0;
  for (size_t i = messages.size(); i-- > 0; ++answered) {
    if (has_role(messages[i], "tool")) continue;
    const JsonTree* calls = messages[i].find("tool_calls");
    return calls != nullptr && calls->children.size() > answered;
  }
  return false;
}

}  // namespace

Status Conversation::set(ChatField field, std::string_view text) {
  if (field == ChatField::kMessages) {
    auto list = parse_json_tree(text.empty() ? "[]" : text, kMaxMessageDepth);
    MOTE_REQUIRE(list.has_value() && list->kind == Kind::kArray, Code::kInvalidArgument,
                 "messages: must be a JSON list of objects");
    messages_ = std::move(list->children);
  } else if (field == ChatField::kChatTemplate) {
    own_template_ = nullptr;
    if (!text.empty()) { MOTE_ASSIGN(own_template_, ChatTemplate::parse(text)); }
  } else {
    fields_[static_cast<size_t>(field)] = text;
  }
  plan_ = nullptr;
  return {};
}

std::string Conversation::messages() const {
  std::string all = "[";
  for (const JsonTree& message : messages_) all += (all.size() == 1 ? "" : ", ") + message.dump();
  return all + "]";
}

Status Conversation::append(std::string_view json) {
  MOTE_ASSIGN(JsonTree message, read_message(json));
  messages_.push_back(std::move(message));
  plan_ = nullptr;
  return {};
}

Status Conversation::edit(size_t index, std::string_view json) {
  MOTE_ASSIGN(JsonTree message, read_message(json));
  MOTE_REQUIRE(index < messages_.size(), Code::kInvalidArgument, "index = %zu: there are %zu messages", index,
               messages_.size());
  MOTE_RETURN_IF_ERROR(truncate(index));
  messages_.push_back(std::move(message));
  return {};
}

Status Conversation::truncate(size_t count) {
  MOTE_REQUIRE(count <= messages_.size(), Code::kInvalidArgument, "count = %zu: there are %zu messages", count,
               messages_.size());
  messages_.resize(count);
  plan_ = nullptr;
  return {};
}

Status Conversation::drop_reply() {
  size_t count = messages_.size();
  const bool waits_for_reply = count > 0 && !has_role(messages_.back(), "assistant") && !waits_for_results(messages_);
  if (waits_for_reply) return {};
  while (count > 0 && !has_role(messages_[count - 1], "assistant")) --count;
  MOTE_REQUIRE(count > 1, Code::kInvalidState, "there is no message to reply to");
  return truncate(count - 1);
}

Status Conversation::continue_reply() {
  MOTE_REQUIRE(!messages_.empty() && has_role(messages_.back(), "assistant"), Code::kInvalidState,
               "the last message is no reply: there is nothing to go on with");
  const JsonTree& last = messages_.back();
  const JsonTree* content = last.find("content");
  const bool has_content = content != nullptr && (!content->text.empty() || !content->children.empty());
  const bool has_reasoning = !text_of(last.find("reasoning_content")).empty();
  return set(ChatField::kContinueFinalMessage, !has_content && has_reasoning ? "reasoning_content" : "content");
}

Status Conversation::take_reply(std::string_view json) {
  MOTE_ASSIGN(JsonTree reply, read_message(json));
  std::string& continued_field = fields_[static_cast<size_t>(ChatField::kContinueFinalMessage)];
  if (continued_field.empty() || messages_.empty()) {
    messages_.push_back(std::move(reply));
  } else {
    messages_.back() = continued(std::move(messages_.back()), continued_field, std::move(reply));
    continued_field.clear();
  }
  plan_ = nullptr;
  return {};
}

Result<std::shared_ptr<const ChatTemplate>> Conversation::chat_template() const {
  if (own_template_ != nullptr) return own_template_;
  return chat_template_of(*model_);
}

bool Conversation::continues_reasoning() const {
  const std::string& name = field(ChatField::kContinueFinalMessage);
  return !name.empty() && name != "content";
}

Result<std::shared_ptr<const ReplyPlan>> Conversation::plan() {
  if (plan_ != nullptr) return plan_;
  auto plan = std::make_shared<ReplyPlan>();
  MOTE_ASSIGN(const ToolChoiceAndName choice, read_tool_choice(field(ChatField::kToolChoice)));
  if (choice.choice != ToolChoice::kNone) plan->tools = field(ChatField::kTools);
  MOTE_ASSIGN(Prompt prompt, render(messages_, false, plan->tools));
  MOTE_ASSIGN(plan->ids, encode(prompt));
  MOTE_REQUIRE(!plan->ids.empty(), Code::kInvalidArgument,
               "%s: its chat template makes an empty prompt of the conversation", model_->path().c_str());
  plan->text = std::move(prompt.text);
  MOTE_ASSIGN(plan->constraint,
              reply_constraint(*model_, choice, plan->tools, field(ChatField::kResponseFormat), is_cancelled_));
  plan_ = plan;
  return plan_;
}

Result<size_t> Conversation::num_system_ids() {
  MOTE_ASSIGN(const std::shared_ptr<const ReplyPlan> whole, plan());
  const auto is_said = [](const JsonTree& message) {
    return !has_role(message, "system") && !has_role(message, "developer");
  };
  const auto opening = static_cast<size_t>(std::ranges::find_if(messages_, is_said) - messages_.begin());
  const auto prompt = render(std::span(messages_).first(opening), true, whole->tools);
  if (!prompt.ok()) return size_t{0};  // the template wants a message
  MOTE_ASSIGN(const std::vector<int32_t> ids, encode(*prompt));
  return static_cast<size_t>(std::ranges::mismatch(ids, whole->ids).in1 - ids.begin());
}

Result<Prompt> Conversation::render(std::span<const JsonTree> messages, bool is_opening, std::string_view tools) const {
  MOTE_ASSIGN(const auto source, chat_template());
  MOTE_ASSIGN(const std::string prepared, template_messages(messages, source->habits()));
  TemplateInput input;
  input.messages = prepared;
  input.tools = tools;
  input.documents = field(ChatField::kDocuments);
  input.variables = field(ChatField::kVariables);
  if (!is_opening) input.continue_field = field(ChatField::kContinueFinalMessage);
  input.add_generation_prompt = !is_opening && input.continue_field.empty();
  MOTE_ASSIGN(input.special_tokens, special_tokens_of(*model_));
  return source->render(input);
}

Result<std::vector<int32_t>> Conversation::encode(const Prompt& prompt) const {
  MOTE_ASSIGN(const Tokenizer* tokenizer, model_->require_tokenizer());
  return encode_prompt(*tokenizer, prompt);
}

}  // namespace mote
