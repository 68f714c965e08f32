#include "runner/grammars/json_schema/schema.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "runner/grammars/expression.h"

namespace mote::constraints {
namespace {

enum class Kind { kAny, kSchema, kSchemas, kSchemaMap, kCount, kNumber, kString, kStrings, kArray, kBoolean, kType };

struct Keyword {
  const char* name;
  Kind kind;
};

constexpr std::array<Keyword, 48> kKeywords{{
    {"type", Kind::kType},
    {"enum", Kind::kArray},
    {"const", Kind::kAny},
    {"properties", Kind::kSchemaMap},
    {"required", Kind::kStrings},
    {"additionalProperties", Kind::kSchema},
    {"patternProperties", Kind::kSchemaMap},
    {"propertyNames", Kind::kSchema},
    {"unevaluatedProperties", Kind::kSchema},
    {"minProperties", Kind::kCount},
    {"maxProperties", Kind::kCount},
    {"items", Kind::kSchema},
    {"prefixItems", Kind::kSchemas},
    {"unevaluatedItems", Kind::kSchema},
    {"minItems", Kind::kCount},
    {"maxItems", Kind::kCount},
    {"uniqueItems", Kind::kBoolean},
    {"minLength", Kind::kCount},
    {"maxLength", Kind::kCount},
    {"pattern", Kind::kString},
    {"format", Kind::kString},
    {"minimum", Kind::kNumber},
    {"maximum", Kind::kNumber},
    {"exclusiveMinimum", Kind::kNumber},
    {"exclusiveMaximum", Kind::kNumber},
    {"multipleOf", Kind::kNumber},
    {"anyOf", Kind::kSchemas},
    {"oneOf", Kind::kSchemas},
    {"allOf", Kind::kSchemas},
    {"$ref", Kind::kString},
    // These keywords constrain no value and are ignored.
    {"$defs", Kind::kAny},
    {"definitions", Kind::kAny},
    {"$schema", Kind::kAny},
    {"$comment", Kind::kAny},
    {"title", Kind::kAny},
    {"description", Kind::kAny},
    {"default", Kind::kAny},
    {"example", Kind::kAny},
    {"examples", Kind::kAny},
    {"deprecated", Kind::kAny},
    {"readOnly", Kind::kAny},
    {"writeOnly", Kind::kAny},
    {"contentMediaType", Kind::kAny},
    {"contentEncoding", Kind::kAny},
    {"contentSchema", Kind::kAny},
    {"discriminator", Kind::kAny},
    {"strict", Kind::kAny},
    {"name", Kind::kAny},
}};

constexpr std::array<std::pair<const char*, uint32_t>, 7> kTypes{{{"null", kNull},
                                                                  {"boolean", kBoolean},
                                                                  {"integer", kInteger},
                                                                  {"number", kNumber},
                                                                  {"string", kString},
                                                                  {"array", kArray},
                                                                  {"object", kObject}}};

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

bool is_type(const Json& value) {
  return value.is_string() &&
         std::any_of(kTypes.begin(), kTypes.end(), [&](const auto& type) { return value == type.first; });
}

bool is_count(const Json& value) {
  if (value.is_number_float())
    return value.get<double>() >= 0 && value.get<double>() <= 1e9 &&
           value.get<double>() == static_cast<uint32_t>(value.get<double>());
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

template <typename Test>
bool all_of(const Json& values, Test test) {
  return std::all_of(values.begin(), values.end(), test);
}

// What `value` must be, if it is not of this kind; empty: it is of this kind.
std::string expected(const Json& value, Kind kind) {
  const auto is_text = [](const Json& item) { return item.is_string(); };
  switch (kind) {
    case Kind::kAny: return "";
    case Kind::kSchema: return is_schema(value) ? "" : "must be a schema: an object, true or false";
    case Kind::kSchemas:
      return value.is_array() && !value.empty() && all_of(value, is_schema) ? "" : "must be a list of schemas";
    case Kind::kSchemaMap: return value.is_object() && all_of(value, is_schema) ? "" : "must be an object of schemas";
    case Kind::kCount: return is_count(value) ? "" : "must be a whole number, 0 or more";
    case Kind::kNumber: return value.is_number() ? "" : "must be a number";
    case Kind::kString: return value.is_string() ? "" : "must be a string";
    case Kind::kStrings: return value.is_array() && all_of(value, is_text) ? "" : "must be a list of strings";
    case Kind::kArray: return value.is_array() && !value.empty() ? "" : "must be a list of at least one value";
    case Kind::kBoolean: return value.is_boolean() ? "" : "must be true or false";
    case Kind::kType:
      return is_type(value) || (value.is_array() && !value.empty() && all_of(value, is_type))
                 ? ""
                 : "must be null, boolean, integer, number, string, array, object or a list of these";
  }
  return "";
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

// "a~1b%20c" to "a/b c"
std::string unescaped(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '%' && i + 2 < part.size() && isxdigit(part[i + 1]) != 0 && isxdigit(part[i + 2]) != 0) {
      text += static_cast<char>(std::stoi(std::string(part.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else if (part[i] == '~' && i + 1 < part.size()) {
      text += part[++i] == '1' ? '/' : '~';
    } else {
      text += part[i];
    }
  }
  return text;
}

}  // namespace

Status schema_error(const Schema& at, const char* keyword, const std::string& message) {
  std::string text = "JSON Schema: " + at.pointer();
  if (keyword != nullptr) text += "/" + std::string(keyword);
  if (keyword != nullptr && find(at, keyword) != nullptr) {
    const Json& value = *find(at, keyword);
    if (!value.is_structured()) text += " = " + shown(value);
  }
  return {Code::kInvalidArgument, text + ": " + message};
}

Schema child(const Schema& schema, const char* keyword) {
  return {schema.document->member(*schema.json, keyword), schema.document};
}

Schema child(const Schema& schema, const std::string& key) {
  return {schema.document->member(*schema.json, key), schema.document};
}

Schema child(const Schema& schema, size_t index) { return {&schema.json->at(index), schema.document}; }

const Json* find(const Schema& schema, const char* keyword) { return schema.document->member(*schema.json, keyword); }

Status check_keywords(const Schema& schema) {
  static const auto& kinds = *[] {  // threads may compile while the process exits
    auto* result = new std::unordered_map<std::string_view, Kind>;
    for (const Keyword& keyword : kKeywords) result->emplace(keyword.name, keyword.kind);
    return result;
  }();
  if (schema.document->is_checked(*schema.json)) return {};
  for (const auto& [name, value] : schema.json->get_ref<const Json::object_t&>()) {
    MOTE_RETURN_IF_ERROR(schema.document->budget().spend(2 + value.size()));
    if (name.starts_with("x-")) continue;
    if (name == "$id" && schema.json == &schema.document->root()) continue;
    const auto keyword = kinds.find(name);
    if (keyword == kinds.end()) return schema_error(schema, name.c_str(), "this keyword is not supported");
    const std::string wrong = expected(value, keyword->second);
    if (!wrong.empty()) return schema_error(schema, name.c_str(), wrong);
  }
  schema.document->set_checked(*schema.json);
  return {};
}

uint32_t count_of(const Schema& schema, const char* keyword, uint32_t otherwise) {
  const Json* value = find(schema, keyword);
  if (value == nullptr) return otherwise;
  if (value->is_number_float()) return static_cast<uint32_t>(value->get<double>());
  return static_cast<uint32_t>(std::min<uint64_t>(value->get<uint64_t>(), kUnbounded - 1));
}

uint32_t types_of(const Schema& schema) {
  const Json* type = find(schema, "type");
  if (type == nullptr) return kAllTypes;
  schema.document->budget().count(type->is_array() ? type->size() : 1);
  uint32_t types = 0;
  for (const auto& [name, bit] : kTypes) {
    if (*type == name || (type->is_array() && std::find(type->begin(), type->end(), name) != type->end())) types |= bit;
  }
  return types;
}

uint32_t type_of_value(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) {
    const auto number = value.get<double>();
    return number == static_cast<double>(static_cast<int64_t>(std::clamp(number, -9e18, 9e18))) ? kInteger : kNumber;
  }
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

Result<Schema> resolve(const Schema& from, const std::string& reference) {
  const auto missing = [&] { return schema_error(from, "$ref", "there is no such schema in the document"); };
  if (!reference.starts_with("#"))
    return schema_error(from, "$ref", "only references into the same document are supported: #/...");
  if (reference.size() > 1 && reference[1] != '/')
    return schema_error(from, "$ref", "anchors are not supported: give a JSON pointer, #/...");
  const Json*& known = from.document->target_of(*find(from, "$ref"));
  if (known != nullptr) return Schema{known, from.document};
  MOTE_RETURN_IF_ERROR(from.document->budget().spend(1 + reference.size() / 8));
  Schema at{&from.document->root(), from.document};
  for (size_t begin = 2; begin <= reference.size();) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    const std::string key = unescaped(std::string_view(reference).substr(begin, end - begin));
    if (const Json* member = from.document->member(*at.json, key); member != nullptr) {
      at.json = member;
    } else if (at.json->is_array() && !key.empty() && key.size() < 7 &&
               key.find_first_not_of("0123456789") == std::string::npos && std::stoul(key) < at.json->size()) {
      at = child(at, std::stoul(key));
    } else {
      return missing();
    }
    begin = end + 1;
  }
  if (!is_schema(*at.json)) return missing();
  known = at.json;
  return at;
}

}  // namespace mote::constraints
