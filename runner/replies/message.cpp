#include "runner/replies/message.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "runner/replies/text.h"

namespace mote::reply {
namespace {

constexpr size_t kMaxNameBytes = 256;

}  // namespace

std::string_view TrimmedText::add(char c) {
  const size_t size = text_.size();
  if (trimmed_.find(c) != std::string_view::npos) {
    if (!drops_) held_ += c;
    return {};
  }
  text_ += held_;
  text_ += c;
  held_.clear();
  drops_ = follows_mark_ = false;
  return since(size);
}

void TrimmedText::hold(std::string_view text) {
  held_ += text;
  follows_mark_ = true;
}

void TrimmedText::mark() {
  follows_mark_ = true;
  drops_ = text_.empty();
  dropped_ = drops_ ? std::exchange(held_, {}) : std::string();
}

void TrimmedText::unmark() {
  held_ += std::exchange(dropped_, {});
  drops_ = false;
}

void TrimmedText::divide() {
  mark();
  drops_ = true;
  if (!text_.empty()) held_ = "\n";
}

std::string_view TrimmedText::finish(bool trims_end) {
  const size_t size = text_.size();
  if (!follows_mark_ && !trims_end) text_ += held_;
  held_.clear();
  return since(size);
}

bool Message::begin_call(std::string_view name) {
  name = stripped(name);
  if (in_call_ || name.empty() || name.size() > kMaxNameBytes ||
      !std::all_of(name.begin(), name.end(), is_name_character))
    return false;
  in_call_ = true;
  call_.name = name;
  emit(EventKind::kCallBegin, call_.name, call_.id);
  return true;
}

void Message::add_arguments(std::string_view json) {
  call_.arguments += json;
  emit(EventKind::kCallArguments, json);
}

void Message::end_call() {
  if (!in_call_) return;
  if (call_.arguments.empty()) add_arguments("{}");
  emit(EventKind::kCallEnd, {}, call_.id);
  calls_.push_back(std::exchange(call_, {}));
  in_call_ = false;
}

void Message::discard_call() {
  if (in_call_) emit(EventKind::kCallDiscarded, {});
  call_ = {};
  in_call_ = false;
}

void Message::finish(bool trims_end) { emit(EventKind::kContent, content_.finish(trims_end)); }

void Message::emit(EventKind kind, std::string_view text, std::string_view id) {
  if (events_ == nullptr) return;
  const bool is_piece = kind <= EventKind::kReasoning || kind == EventKind::kCallArguments;
  if (is_piece && text.empty()) return;
  if (is_piece && !events_->empty() && events_->back().kind == kind) {
    events_->back().text += text;
    return;
  }
  const bool is_of_call = kind > EventKind::kReasoning;
  events_->push_back({kind, is_of_call ? calls_.size() : 0, std::string(text), std::string(id)});
}

std::string Message::json(std::span<const std::string> call_ids) const {
  std::string json = R"({"role": "assistant", "content": )" + json_string(content_.text());
  if (!reasoning_.empty()) json += ", \"reasoning_content\": " + json_string(reasoning_.text());
  for (size_t i = 0; i < calls_.size(); ++i) {
    json += i == 0 ? R"(, "tool_calls": [)" : ", ";
    json += R"({"type": "function", )";
    const std::string& id = calls_[i].id.empty() && i < call_ids.size() ? call_ids[i] : calls_[i].id;
    if (!id.empty()) json += "\"id\": " + json_string(id) + ", ";
    json +=
        "\"function\": {\"name\": " + json_string(calls_[i].name) + ", \"arguments\": " + calls_[i].arguments + "}}";
  }
  return json + (calls_.empty() ? "}" : "]}");
}

}  // namespace mote::reply
