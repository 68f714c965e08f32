#include "runner/replies/tool_types.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mote::reply {
namespace {

using nlohmann::json;

// The member, or null.
const json& member(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool is_string_or_null(const json& type) { return type == "string" || type == "null"; }

bool allows_only_strings(const json& schema) {
  const json& type = member(schema, "type");
  if (type.is_array())
    return std::find(type.begin(), type.end(), "string") != type.end() &&
           std::all_of(type.begin(), type.end(), is_string_or_null);
  if (!type.is_null()) return type == "string";
  const json& choices = member(schema, "enum");
  return choices.is_array() && !choices.empty() &&
         std::all_of(choices.begin(), choices.end(), [](const json& choice) { return choice.is_string(); });
}

}  // namespace

Result<ToolTypes> ToolTypes::read(std::string_view tools) {
  ToolTypes types;
  if (tools.empty()) return types;
  const json parsed = json::parse(tools, nullptr, false);
  MOTE_REQUIRE(parsed.is_array(), Code::kInvalidArgument, "tools: must be a JSON list of tool schemas");
  for (const json& given : parsed) {
    const json& tool = member(given, "function").is_object() ? member(given, "function") : given;
    const json& name = member(tool, "name");
    const json& properties = member(member(tool, "parameters"), "properties");
    if (!name.is_string() || !properties.is_object()) continue;
    for (const auto& [parameter, schema] : properties.items()) {
      if (allows_only_strings(schema)) types.strings_.insert({name.get<std::string>(), parameter});
    }
  }
  return types;
}

}  // namespace mote::reply
