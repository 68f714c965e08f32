#include "runner/replies/tool_types.h"

#include <algorithm>

#include "base/json.h"

namespace mote::reply {
namespace {

using Kind = JsonTree::Kind;

constexpr size_t kMaxDepth = 256;  // deeper than any template writes

// The member, or null.
const JsonTree& member(const JsonTree& object, std::string_view name) {
  static const JsonTree kNull;
  const JsonTree* found = object.kind == Kind::kObject ? object.find(name) : nullptr;
  return found == nullptr ? kNull : *found;
}

bool is_text(const JsonTree& value, std::string_view text) { return value.kind == Kind::kString && value.text == text; }

bool allows_only_strings(const JsonTree& schema) {
  const JsonTree& type = member(schema, "type");
  const auto is_string = [](const JsonTree& kind) { return is_text(kind, "string"); };
  if (type.kind == Kind::kArray) {
    const auto& kinds = type.children;
    return std::any_of(kinds.begin(), kinds.end(), is_string) &&
           std::all_of(kinds.begin(), kinds.end(),
                       [&](const JsonTree& kind) { return is_string(kind) || is_text(kind, "null"); });
  }
  if (type.kind != Kind::kNull) return is_string(type);
  const JsonTree& choices = member(schema, "enum");
  return choices.kind == Kind::kArray && !choices.children.empty() &&
         std::all_of(choices.children.begin(), choices.children.end(),
                     [](const JsonTree& choice) { return choice.kind == Kind::kString; });
}

}  // namespace

Result<ToolTypes> ToolTypes::read(std::string_view tools) {
  ToolTypes types;
  if (tools.empty()) return types;
  const std::optional<JsonTree> parsed = parse_json_tree(tools, kMaxDepth);
  MOTE_REQUIRE(parsed && parsed->kind == Kind::kArray, Code::kInvalidArgument,
               "tools: must be a JSON list of tool schemas");
  for (const JsonTree& given : parsed->children) {
    const JsonTree& tool = member(given, "function").kind == Kind::kObject ? member(given, "function") : given;
    const JsonTree& name = member(tool, "name");
    const JsonTree& properties = member(member(tool, "parameters"), "properties");
    if (name.kind != Kind::kString || properties.kind != Kind::kObject) continue;
    for (size_t i = 0; i < properties.children.size(); ++i) {
      if (allows_only_strings(properties.children[i])) types.strings_.insert({name.text, properties.names[i]});
    }
  }
  return types;
}

}  // namespace mote::reply
