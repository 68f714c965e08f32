#include "runner/chat/reply_constraint.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "runner/chat/messages.h"
#include "runner/generation/options/compiled_grammars.h"

namespace mote {
namespace {

using constraints::Grammar;
using Kind = JsonTree::Kind;

Result<std::shared_ptr<const Grammar>> grammar_of(const Model& model, const std::string& field,
                                                  const std::string& schema,
                                                  const std::function<bool()>& is_cancelled) {
  auto grammar = compiled_grammar(model, schema, {}, is_cancelled);
  if (!grammar.ok()) return Status(grammar.status().code(), field + ": " + grammar.status().message());
  return grammar;
}

// The tools' own part, whether they are wrapped in {"function": ..} or not.
Result<std::vector<JsonTree>> functions_of(std::string_view tools) {
  std::vector<JsonTree> functions;
  if (tools.empty()) return functions;
  const auto list = parse_json_tree(tools, kMaxMessageDepth);
  MOTE_REQUIRE(list.has_value() && list->kind == Kind::kArray, Code::kInvalidArgument,
               "tools: must be a JSON list of objects");
  for (size_t i = 0; i < list->children.size(); ++i) {
    const JsonTree* function = list->children[i].find("function");
    functions.push_back(function != nullptr ? *function : list->children[i]);
    MOTE_REQUIRE(!text_of(functions.back().find("name")).empty(), Code::kInvalidArgument,
                 "tools[%zu]: must be {\"type\": \"function\", \"function\": {\"name\": ..., \"parameters\": ...}}", i);
  }
  return functions;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What makes references into a schema's own document hold where it is a part of another one: place is its JSON pointer
// there. is_schema: names are keywords, not those of properties or definitions.
void move_references(JsonTree& tree, const std::string& place, bool is_schema = true) {
  for (size_t i = 0; i < tree.children.size(); ++i) {
    JsonTree& child = tree.children[i];
    const std::string_view keyword =
        is_schema && tree.kind == Kind::kObject ? std::string_view(tree.names[i]) : std::string_view();
    if (keyword == "$ref" && (child.text == "#" || child.text.starts_with("#/"))) child.text.replace(0, 1, place);
    if (is_one_of(keyword, {"enum", "const", "default", "examples"})) continue;
    move_references(child, place, !is_one_of(keyword, {"properties", "patternProperties", "$defs", "definitions"}));
  }
}

// place: the JSON pointer of what is returned.
std::string call_schema(const JsonTree& function, const std::string& place) {
  const JsonTree* parameters = function.find("parameters");
  JsonTree arguments;
  if (parameters != nullptr) arguments = *parameters;
  move_references(arguments, place + "/properties/arguments");
  const bool has_parameters = arguments.kind == Kind::kObject;
  return R"({"type": "object", "properties": {"name": {"const": )" + function.find("name")->dump() +
         R"(}, "arguments": )" + (has_parameters ? arguments.dump() : R"({"type": "object"})") +
         R"(}, "required": ["name", "arguments"], "additionalProperties": false})";
}

Result<std::string> calls_schema(const ToolChoiceAndName& choice, std::string_view tools) {
  MOTE_ASSIGN(std::vector<JsonTree> functions, functions_of(tools));
  MOTE_REQUIRE(!functions.empty() || choice.choice != ToolChoice::kRequired, Code::kInvalidArgument,
               "tool_choice: required needs tools");
  if (choice.choice == ToolChoice::kNamed)
    std::erase_if(functions, [&](const JsonTree& function) { return text_of(function.find("name")) != choice.name; });
  MOTE_REQUIRE(!functions.empty(), Code::kInvalidArgument, "tool_choice: \"%s\" is not one of the tools",
               beginning(choice.name).c_str());
  std::string schemas;
  for (size_t i = 0; i < functions.size(); ++i)
    schemas += (i == 0 ? "" : ", ") + call_schema(functions[i], "#/anyOf/" + std::to_string(i));
  return "{\"anyOf\": [" + schemas + "]}";
}

struct WantedSchema {
  std::string field;
  std::string schema;  // empty: any text
};

Result<WantedSchema> wanted_schema(std::string_view response_format) {
  if (response_format.empty()) return WantedSchema{};
  const auto wanted = parse_json_tree(response_format, kMaxMessageDepth);
  MOTE_REQUIRE(wanted.has_value() && wanted->kind == Kind::kObject, Code::kInvalidArgument,
               "response_format: must be a JSON object with a \"type\"");
  const std::string_view type = text_of(wanted->find("type"));
  if (type == "text") return WantedSchema{};
  if (type == "json_object") return WantedSchema{"response_format", R"({"type": "object"})"};
  MOTE_REQUIRE(type == "json_schema", Code::kInvalidArgument,
               "response_format.type = \"%s\": must be text, json_object or json_schema", beginning(type).c_str());
  const JsonTree* json_schema = wanted->find("json_schema");
  MOTE_REQUIRE(json_schema != nullptr && json_schema->kind == Kind::kObject, Code::kInvalidArgument,
               "response_format.json_schema: is required, an object with a \"schema\"");
  const JsonTree* schema = json_schema->find("schema");
  return WantedSchema{"response_format.json_schema.schema", schema != nullptr ? schema->dump() : "{}"};
}

}  // namespace

Result<ToolChoiceAndName> read_tool_choice(std::string_view text) {
  if (text.empty()) return ToolChoiceAndName{};
  const auto tree = parse_json_tree(text, kMaxMessageDepth);
  const std::string_view word = tree.has_value() ? text_of(&*tree) : text;
  if (word == "auto") return ToolChoiceAndName{};
  if (word == "none") return ToolChoiceAndName{ToolChoice::kNone, ""};
  if (word == "required") return ToolChoiceAndName{ToolChoice::kRequired, ""};
  const JsonTree* function = tree.has_value() ? tree->find("function") : nullptr;
  const std::string_view name = function != nullptr ? text_of(function->find("name")) : std::string_view();
  MOTE_REQUIRE(!name.empty(), Code::kInvalidArgument,
               "tool_choice = %s: must be auto, none, required or {\"type\": \"function\", \"function\": {\"name\": "
               "...}}",
               beginning(text).c_str());
  return ToolChoiceAndName{ToolChoice::kNamed, std::string(name)};
}

Result<ReplyConstraint> reply_constraint(const Model& model, const ToolChoiceAndName& choice, std::string_view tools,
                                         std::string_view response_format, const std::function<bool()>& is_cancelled) {
  MOTE_ASSIGN(const WantedSchema wanted, wanted_schema(response_format));
  if (choice.choice == ToolChoice::kRequired || choice.choice == ToolChoice::kNamed) {
    MOTE_REQUIRE(wanted.schema.empty(), Code::kInvalidArgument,
                 "response_format: cannot be met by a reply that must call a tool: leave it or tool_choice out");
    MOTE_ASSIGN(const std::string schema, calls_schema(choice, tools));
    MOTE_ASSIGN(auto grammar, grammar_of(model, "tools", schema, is_cancelled));
    return ReplyConstraint{std::move(grammar), true};
  }
  if (wanted.schema.empty()) return ReplyConstraint{};
  MOTE_ASSIGN(auto grammar, grammar_of(model, wanted.field, wanted.schema, is_cancelled));
  return ReplyConstraint{std::move(grammar), false};
}

}  // namespace mote
