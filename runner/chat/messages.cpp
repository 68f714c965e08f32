#include "runner/chat/messages.h"

#include <algorithm>

#include "base/utf8.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr size_t kShownBytes = 60;

std::string shown(const JsonTree* value) { return beginning(value == nullptr ? "null" : value->dump()); }

bool is_null(const JsonTree* value) { return value == nullptr || value->kind == Kind::kNull; }

JsonTree text_part(std::string text) {
  JsonTree part{Kind::kObject, 0.0, {}, {}, {}};
  member(part, "type") = json_text("text");
  member(part, "text") = json_text(std::move(text));
  return part;
}

// One message, in the form that the template takes.
class Preparation {
 public:
  Preparation(const TemplateHabits& habits, std::vector<std::pair<std::string, std::string>>& names, std::string path)
      : habits_(habits), names_(names), path_(std::move(path)) {}

  Status run(JsonTree& message) {
    if (message.kind != Kind::kObject) return {};  // the template says what is wrong with it
    const std::string role(text_of(message.find("role")));
    if (role == "developer" && !habits_.knows_developer) member(message, "role") = json_text("system");
    MOTE_RETURN_IF_ERROR(prepare_content(message, role));
    if (const JsonTree* calls = message.find("tool_calls"); calls != nullptr && calls->kind == Kind::kArray)
      MOTE_RETURN_IF_ERROR(prepare_calls(member(message, "tool_calls")));
    if (role == "tool" && is_null(message.find("name"))) name_result(message);
    return {};
  }

 private:
  Status prepare_content(JsonTree& message, const std::string& role) {
    const JsonTree* content = message.find("content");
    if (is_null(content) && role == "assistant" && !habits_.takes_no_content)
      member(message, "content") = json_text("");
    if (content == nullptr) return {};
    if (content->kind == Kind::kArray) return prepare_parts(member(message, "content"));
    if (content->kind == Kind::kString && habits_.needs_parts) {
      JsonTree parts{Kind::kArray, 0.0, {}, {}, {}};
      parts.children.push_back(text_part(content->text));
      member(message, "content") = std::move(parts);
    }
    return {};
  }

  Status prepare_parts(JsonTree& parts) {
    std::string joined;
    for (size_t i = 0; i < parts.children.size(); ++i) {
      JsonTree& part = parts.children[i];
      const std::string path = path_ + ".content[" + std::to_string(i) + "]";
      const JsonTree* type = part.find("type");
      const std::string_view kind = text_of(type);
      MOTE_REQUIRE(kind == "text" || kind == "refusal", Code::kInvalidArgument,
                   "%s.type = %s: must be text: this model reads text only", path.c_str(), shown(type).c_str());
      const JsonTree* text = part.find(kind);
      MOTE_REQUIRE(text != nullptr && text->kind == Kind::kString, Code::kInvalidArgument,
                   "%s.%s = %s: must be a string", path.c_str(), std::string(kind).c_str(), shown(text).c_str());
      joined += text->text;
      if (kind == "refusal") part = text_part(std::string(text->text));
    }
    if (!habits_.takes_parts) parts = json_text(std::move(joined));
    return {};
  }

  Status prepare_calls(JsonTree& calls) {
    for (size_t i = 0; i < calls.children.size(); ++i) {
      JsonTree& call = calls.children[i];
      const std::string path = path_ + ".tool_calls[" + std::to_string(i) + "]";
      const JsonTree* function = call.find("function");
      MOTE_REQUIRE(
          function != nullptr && function->kind == Kind::kObject && !text_of(function->find("name")).empty(),
          Code::kInvalidArgument,
          "%s = %s: must be {\"id\": ..., \"type\": \"function\", \"function\": {\"name\": ..., \"arguments\": "
          "...}}",
          path.c_str(), shown(&call).c_str());
      if (const std::string_view id = text_of(call.find("id")); !id.empty())
        names_.emplace_back(id, text_of(function->find("name")));
      MOTE_RETURN_IF_ERROR(prepare_arguments(member(call, "function"), path + ".function.arguments"));
    }
    return {};
  }

  Status prepare_arguments(JsonTree& function, const std::string& path) const {
    const JsonTree* given = function.find("arguments");
    std::optional<JsonTree> arguments;
    if (is_null(given) || (given->kind == Kind::kString && given->text.empty())) {
      arguments = JsonTree{Kind::kObject, 0.0, {}, {}, {}};
    } else {
      arguments = given->kind == Kind::kString ? parse_json_tree(given->text, kMaxMessageDepth) : *given;
    }
    MOTE_REQUIRE(arguments.has_value() && arguments->kind == Kind::kObject, Code::kInvalidArgument,
                 "%s = %s: must be the JSON of an object", path.c_str(), shown(given).c_str());
    member(function, "arguments") = habits_.takes_text_arguments ? json_text(arguments->dump()) : *std::move(arguments);
    return {};
  }

  // Templates want it; OpenAI's messages have it only in the call.
  void name_result(JsonTree& message) const {
    const std::string_view id = text_of(message.find("tool_call_id"));
    const auto found =
        std::ranges::find(names_.rbegin(), names_.rend(), id, &std::pair<std::string, std::string>::first);
    if (!id.empty() && found != names_.rend()) member(message, "name") = json_text(found->second);
  }

  const TemplateHabits& habits_;
  std::vector<std::pair<std::string, std::string>>& names_;  // of tools, by the id of the call
  std::string path_;
};

}  // namespace

JsonTree& member(JsonTree& object, std::string_view name) {
  for (size_t i = object.names.size(); i-- > 0;) {
    if (object.names[i] == name) return object.children[i];
  }
  object.names.emplace_back(name);
  return object.children.emplace_back();
}

JsonTree json_text(std::string text) { return {Kind::kString, 0.0, std::move(text), {}, {}}; }

std::string beginning(std::string_view text) {
  if (text.size() <= kShownBytes) return replace_invalid_utf8(text);
  text = text.substr(0, kShownBytes - 3);
  return replace_invalid_utf8(text.substr(0, text.size() - incomplete_utf8_suffix(text))) + "...";
}

std::string_view text_of(const JsonTree* value) {
  return value != nullptr && value->kind == Kind::kString ? std::string_view(value->text) : std::string_view();
}

Result<std::string> template_messages(std::span<const JsonTree> messages, const TemplateHabits& habits) {
  std::vector<std::pair<std::string, std::string>> names;
  std::string all = "[";
  for (size_t i = 0; i < messages.size(); ++i) {
    JsonTree message = messages[i];
    MOTE_RETURN_IF_ERROR(Preparation(habits, names, "messages[" + std::to_string(i) + "]").run(message));
    all += (i == 0 ? "" : ",") + message.dump();
  }
  return all + "]";
}

CallIds::CallIds(std::span<const JsonTree> messages) {
  for (const JsonTree& message : messages) {
    const JsonTree* calls = message.find("tool_calls");
    if (calls == nullptr || calls->kind != Kind::kArray) continue;
    num_calls_ += calls->children.size();
    for (const JsonTree& call : calls->children) taken_.emplace_back(text_of(call.find("id")));
  }
}

// Templates ask for ids that many models do not write; 9 letters and digits is what the strictest accepts.
const std::string& CallIds::of(size_t index) {
  while (ids_.size() <= index) {
    std::string id = format("call%05zu", num_calls_++);
    if (std::ranges::find(taken_, id) == taken_.end()) ids_.push_back(std::move(id));
  }
  return ids_[index];
}

JsonTree continued(JsonTree message, const std::string& field, JsonTree reply) {
  for (const char* name : {"content", "reasoning_content"}) {
    const std::string_view added = text_of(reply.find(name));
    if (added.empty()) continue;
    const bool is_field = name == std::string_view("content") ? field == "content" : field != "content";
    JsonTree& text = member(message, is_field ? field : name);
    JsonTree* last = &text;
    if (text.kind == Kind::kArray && !text.children.empty()) last = &member(text.children.back(), "text");
    if (last->kind != Kind::kString) *last = json_text("");
    last->text += added;
  }
  if (reply.find("tool_calls") != nullptr) member(message, "tool_calls") = member(reply, "tool_calls");
  return message;
}

}  // namespace mote
