#include "runner/cli/chat/conversation_file.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/atomic_file.h"
#include "base/open_file.h"
#include "runner/cli/handles.h"

namespace mote::cli {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxFileBytes = size_t{256} << 20;
constexpr const char* kFormat = "mote-chat";
constexpr std::array<const char*, 5> kRoles = {"user", "assistant", "tool", "system", "developer"};

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw InputError(where + ": " + what); }

// A few characters of a value for an error message.
std::string shown(const Json& value) {
  const std::string text = dump(value);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

FileDescriptor open_text_file(const std::string& path, Pipes pipes) {
  const auto checked = [](auto opened) {
    if (!opened.ok()) throw InputError(opened.status().message());
    return *std::move(opened);
  };
  return pipes == Pipes::kRead ? checked(open_any_file(path)) : checked(open_regular_file(path)).descriptor;
}

void check_call(const std::string& where, const Json& call) {
  if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) {
    refuse(where, shown(call) + ": must be an object with an object \"function\"");
  }
  const Json& function = call["function"];
  if (!function.contains("name") || !function["name"].is_string()) refuse(where + ".function.name", "must be a string");
  if (call.contains("id") && !call["id"].is_string()) refuse(where + ".id", "must be a string");
}

void check_message(const std::string& where, const Json& message) {
  if (!message.is_object()) refuse(where, shown(message) + ": must be an object with \"role\" and \"content\"");
  const Json role = message.value("role", Json());
  const bool is_known =
      role.is_string() && std::find(kRoles.begin(), kRoles.end(), role.get<std::string>()) != kRoles.end();
  if (!is_known) refuse(where + ".role", shown(role) + ": must be user, assistant, tool, system or developer");
  const Json calls = message.value("tool_calls", Json());
  if (!calls.is_null() && !calls.is_array()) refuse(where + ".tool_calls", shown(calls) + ": must be a list");
  for (size_t i = 0; i < calls.size(); ++i) check_call(where + ".tool_calls[" + std::to_string(i) + "]", calls[i]);
  const Json content = message.value("content", Json());
  const bool may_lack = role == "assistant" && !calls.empty();
  if (!content.is_string() && !content.is_array() && !(content.is_null() && may_lack)) {
    refuse(where + ".content", shown(content) + ": must be a string or a list of parts");
  }
}

Json checked_messages(const std::string& where, const Json& messages) {
  if (!messages.is_array()) refuse(where, shown(messages) + ": must be a list of messages");
  for (size_t i = 0; i < messages.size(); ++i) check_message(where + "[" + std::to_string(i) + "]", messages[i]);
  return messages;
}

Json checked_tools(const std::string& where, const Json& tools) {
  const bool is_list =
      tools.is_array() && std::all_of(tools.begin(), tools.end(), [](const Json& tool) { return tool.is_object(); });
  if (!is_list) refuse(where, "must be a JSON list of tool schemas");
  return tools;
}

std::vector<std::string> option_values(const std::string& where, const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return {value.dump()};
  if (!value.is_array() || value.empty())
    refuse(where, shown(value) + ": must be a number, a text, true, false or a list of texts");
  std::vector<std::string> values;
  for (const Json& item : value) {
    if (!item.is_string()) refuse(where, shown(item) + ": must be a text");
    values.push_back(item.get<std::string>());
  }
  return values;
}

// Numbers and truth values as such: a person may edit the file.
Json option_json(const std::vector<std::string>& values) {
  if (values.size() != 1) return values;
  const Json parsed = Json::parse(values[0], nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(values[0]);
}

// The system message of a plain list is its first one.
void split_system(Conversation& conversation) {
  Json& messages = conversation.messages;
  if (messages.empty() || messages[0]["role"] != "system" || !messages[0]["content"].is_string()) return;
  conversation.system = messages[0]["content"].get<std::string>();
  messages.erase(messages.begin());
}

SavedConversation from_object(const std::string& path, const Json& saved) {
  static constexpr std::array kFields = {"format", "version", "system", "tools", "variables", "settings", "messages"};
  for (const auto& [key, value] : saved.items()) {
    if (std::find(kFields.begin(), kFields.end(), key) == kFields.end()) {
      refuse(path, "there is no field " + shown(key) +
                       ": it has format, version, system, tools, variables, settings and messages");
    }
  }
  if (saved.value("format", Json(kFormat)) != kFormat)
    refuse(path + ": format", shown(saved["format"]) + ": must be \"mote-chat\"");
  if (saved.value("version", Json(1)) != 1) refuse(path + ": version", shown(saved["version"]) + ": must be 1");
  if (!saved.contains("messages"))
    refuse(path, "has no \"messages\": must be what /save writes, or a list of messages");
  SavedConversation result;
  Conversation& conversation = result.conversation;
  conversation.messages = checked_messages(path + ": messages", saved["messages"]);
  if (const Json system = saved.value("system", Json("")); system.is_string()) {
    conversation.system = system.get<std::string>();
  } else {
    refuse(path + ": system", shown(system) + ": must be a string");
  }
  if (saved.contains("tools") && !saved["tools"].is_null())
    conversation.tools = checked_tools(path + ": tools", saved["tools"]);
  conversation.variables = saved.value("variables", Json::object());
  if (!conversation.variables.is_object())
    refuse(path + ": variables", shown(conversation.variables) + ": must be an object");
  const Json settings = saved.value("settings", Json::object());
  if (!settings.is_object()) refuse(path + ": settings", shown(settings) + ": must be an object");
  for (const auto& [name, value] : settings.items())
    result.options[name] = option_values(path + ": settings." + name, value);
  return result;
}

}  // namespace

Json parse_json(const std::string& name, const std::string& text) {
  bool is_deep = false;
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    is_deep = is_deep || depth > kMaxDepth;
    return !is_deep;  // what is left out is not kept
  };
  try {
    Json parsed = Json::parse(text, check_depth);
    if (is_deep) refuse(name, "more than " + std::to_string(kMaxDepth) + " levels of lists and objects");
    return parsed;
  } catch (const Json::exception& error) { refuse(name, std::string("is no valid JSON: ") + error.what()); }
}

std::string read_text_file(const std::string& path, Pipes pipes) {
  const FileDescriptor file = open_text_file(path, pipes);
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ReadBytes read = read_some(file.get(), std::as_writable_bytes(std::span(buffer)));
    if (!read.error.empty()) refuse(path, "cannot be read: " + read.error);
    if (read.count == 0) return text;
    text.append(buffer.data(), read.count);
    if (text.size() > kMaxFileBytes) refuse(path, "has more than 256 MiB");
  }
}

void write_text_file(const std::string& path, const std::string& text) {
  Result<AtomicFile> file = AtomicFile::create(path, AtomicFile::Access::kOwner);
  Status status = file.status();
  if (file.ok()) status = file->write(std::as_bytes(std::span(text)));
  if (status.ok()) status = file->commit();
  if (!status.ok()) throw InputError(status.message());
}

Json read_tools(const std::string& path) {
  const std::string name = "--tools " + path;
  std::string text;
  try {
    text = read_text_file(path, Pipes::kRead);
  } catch (const InputError& error) { throw InputError(std::string("--tools ") + error.what()); }
  return checked_tools(name, parse_json(name, text));
}

void save_conversation(const std::string& path, const Conversation& conversation, const GivenOptions& options) {
  Json settings = Json::object();
  for (const auto& [name, values] : options) settings[name] = option_json(values);
  Json saved{{"format", kFormat}, {"version", 1}, {"system", conversation.system}};
  if (!conversation.tools.is_null()) saved["tools"] = conversation.tools;
  saved["variables"] = conversation.variables;
  saved["settings"] = settings;
  saved["messages"] = conversation.messages;
  write_text_file(path, dump(saved, 2) + "\n");
}

SavedConversation load_conversation(const std::string& path) {
  const Json saved = parse_json(path, read_text_file(path));
  if (saved.is_object()) return from_object(path, saved);
  if (!saved.is_array()) refuse(path, "must be what /save writes, or a list of messages");
  SavedConversation result;
  result.conversation.messages = checked_messages(path + ": messages", saved);
  split_system(result.conversation);
  return result;
}

}  // namespace mote::cli
