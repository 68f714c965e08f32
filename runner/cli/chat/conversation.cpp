#include "runner/cli/chat/conversation.h"

namespace mote::cli {
namespace {

bool has_role(const Json& message, const char* role) { return message.value("role", "") == role; }

}  // namespace

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void Conversation::add_user(const std::string& text) { messages.push_back({{"role", "user"}, {"content", text}}); }

Json Conversation::open_calls() const {
  Json open = Json::array();
  size_t answered = 0;
  for (auto message = messages.rbegin(); message != messages.rend(); ++message, ++answered) {
    if (has_role(*message, "tool")) continue;
    const auto calls = message->find("tool_calls");
    if (calls == message->end() || !calls->is_array()) break;
    for (size_t i = answered; i < calls->size(); ++i) open.push_back((*calls)[i]);
    break;
  }
  return open;
}

bool Conversation::add_result(const std::string& text) {
  const Json open = open_calls();
  if (open.empty()) return false;
  messages.push_back({{"role", "tool"},
                      {"name", open[0]["function"]["name"]},
                      {"tool_call_id", open[0].value("id", "")},
                      {"content", text}});
  return true;
}

std::string Conversation::undo() {
  for (size_t i = messages.size(); i > 0; --i) {
    if (!has_role(messages[i - 1], "user")) continue;
    const Json& content = messages[i - 1]["content"];
    std::string text = content.is_string() ? content.get<std::string>() : dump(content);
    messages.erase(messages.begin() + static_cast<ptrdiff_t>(i - 1), messages.end());
    return text;
  }
  return "";
}

bool Conversation::prepare_retry() {
  if (messages.empty()) return false;
  const bool waits_for_reply = !has_role(messages.back(), "assistant") && open_calls().empty();
  if (waits_for_reply) return true;
  size_t last = messages.size();
  while (last > 0 && !has_role(messages[last - 1], "assistant")) --last;
  if (last <= 1) return false;
  messages.erase(messages.begin() + static_cast<ptrdiff_t>(last - 1), messages.end());
  return true;
}

Json Conversation::all_messages() const {
  Json all = Json::array();
  if (!system.empty()) all.push_back({{"role", "system"}, {"content", system}});
  for (const Json& message : messages) all.push_back(message);
  return all;
}

}  // namespace mote::cli
