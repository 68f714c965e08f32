#include "runner/llm/constraints/json_schema/schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "runner/llm/constraints/budget.h"
#include "runner/llm/constraints/expression.h"

namespace mote::constraints {
namespace {

enum class Kind { kAny, kSchema, kSchemas, kSchemaMap, kCount, kNumber, kString, kStrings, kArray, kBoolean, kType };

struct Keyword {
  const char* name;
  Kind kind;
};

constexpr std::array<Keyword, 48> kKeywords{{
    {"type", Kind::kType}, {"enum", Kind::kArray}, {"const", Kind::kAny},
    {"properties", Kind::kSchemaMap}, {"required", Kind::kStrings}, {"additionalProperties", Kind::kSchema},
    {"patternProperties", Kind::kSchemaMap}, {"propertyNames", Kind::kSchema}, {"unevaluatedProperties", Kind::kSchema},
    {"minProperties", Kind::kCount}, {"maxProperties", Kind::kCount},
    {"items", Kind::kSchema}, {"prefixItems", Kind::kSchemas}, {"unevaluatedItems", Kind::kSchema},
    {"minItems", Kind::kCount}, {"maxItems", Kind::kCount}, {"uniqueItems", Kind::kBoolean},
    {"minLength", Kind::kCount}, {"maxLength", Kind::kCount}, {"pattern", Kind::kString}, {"format", Kind::kString},
    {"minimum", Kind::kNumber}, {"maximum", Kind::kNumber}, {"exclusiveMinimum", Kind::kNumber},
    {"exclusiveMaximum", Kind::kNumber}, {"multipleOf", Kind::kNumber},
    {"anyOf", Kind::kSchemas}, {"oneOf", Kind::kSchemas}, {"allOf", Kind::kSchemas}, {"$ref", Kind::kString},
    // These ask for nothing.
    {"$defs", Kind::kAny}, {"definitions", Kind::kAny}, {"$schema", Kind::kAny}, {"$comment", Kind::kAny}, {"title", Kind::kAny},
    {"description", Kind::kAny}, {"default", Kind::kAny}, {"example", Kind::kAny}, {"examples", Kind::kAny},
    {"deprecated", Kind::kAny}, {"readOnly", Kind::kAny}, {"writeOnly", Kind::kAny}, {"contentMediaType", Kind::kAny},
    {"contentEncoding", Kind::kAny}, {"contentSchema", Kind::kAny}, {"discriminator", Kind::kAny}, {"strict", Kind::kAny},
    {"name", Kind::kAny},
}};

constexpr std::array<std::pair<const char*, uint32_t>, 7> kTypes{{{"null", kNull},
                                                                 {"boolean", kBoolean},
                                                                 {"integer", kInteger},
                                                                 {"number", kNumber},
                                                                 {"string", kString},
                                                                 {"array", kArray},
                                                                 {"object", kObject}}};
constexpr size_t kMaxAlternatives = 2000;

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

bool is_type(const Json& value) {
  return value.is_string() && std::any_of(kTypes.begin(), kTypes.end(), [&](const auto& type) { return value == type.first; });
}

bool is_count(const Json& value) {
  if (value.is_number_float()) return value.get<double>() >= 0 && value.get<double>() <= 1e9 && value.get<double>() == static_cast<uint32_t>(value.get<double>());
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
}

template <typename Test>
bool all_of(const Json& values, Test test) {
  return std::all_of(values.begin(), values.end(), test);
}

// What a value of another kind should have been; empty: it is right.
std::string expected(const Json& value, Kind kind) {
  const auto is_text = [](const Json& item) { return item.is_string(); };
  switch (kind) {
    case Kind::kAny: return "";
    case Kind::kSchema: return is_schema(value) ? "" : "must be a schema: an object, true or false";
    case Kind::kSchemas: return value.is_array() && !value.empty() && all_of(value, is_schema) ? "" : "must be a list of schemas";
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

std::string escaped(const std::string& key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') text += "~0";
    else if (c == '/') text += "~1";
    else text += c;
  }
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

// Collects what must hold at once, and where there is a choice.
class Flattening {
 public:
  explicit Flattening(const Json& document) : document_(document) {}

  Status run(const Conjunction& schemas) {
    for (const Schema& schema : schemas) MOTE_RETURN_IF_ERROR(add(schema));
    return {};
  }

  Conjunction all;
  std::vector<Conjunction> choices;  // of each one
  bool is_never = false;

 private:
  Status add(const Schema& schema) {
    if (schema.json->is_boolean()) {
      is_never |= !schema.json->get<bool>();
      return {};
    }
    if (std::find(open_.begin(), open_.end(), schema.json) != open_.end()) {
      return schema_error(schema, "$ref", "the schema refers to itself without a value in between");
    }
    if (!seen_.insert(schema.json).second) return {};
    MOTE_RETURN_IF_ERROR(check_keywords(schema));
    MOTE_REQUIRE(open_.size() < kMaxNesting, Code::kInvalidArgument, "JSON Schema: %s: schemas refer to schemas deeper than %zu levels",
                 schema.pointer.c_str(), kMaxNesting);
    open_.push_back(schema.json);
    all.push_back(schema);
    if (const Json* reference = find(schema, "$ref")) {
      MOTE_ASSIGN(const Schema target, resolve(document_, schema, reference->get<std::string>()));
      MOTE_RETURN_IF_ERROR(add(target));
    }
    if (const Json* parts = find(schema, "allOf")) {
      for (size_t i = 0; i < parts->size(); ++i) MOTE_RETURN_IF_ERROR(add(child(child(schema, "allOf"), i)));
    }
    for (const char* keyword : {"anyOf", "oneOf"}) {
      const Json* parts = find(schema, keyword);
      if (parts == nullptr) continue;
      Conjunction branches;
      for (size_t i = 0; i < parts->size(); ++i) branches.push_back(child(child(schema, keyword), i));
      if (keyword[0] == 'o') MOTE_RETURN_IF_ERROR(check_disjoint(schema, branches));
      choices.push_back(std::move(branches));
    }
    open_.pop_back();
    return {};
  }

  Status check_disjoint(const Schema& schema, const Conjunction& branches) const {
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (are_disjoint(document_, branches[i], branches[j])) continue;
        return schema_error(schema, "oneOf",
                            format("a value may be accepted by branch %zu and by branch %zu: give them different types, or a required property "
                                   "with a different const, or use anyOf",
                                   j, i));
      }
    }
    return {};
  }

  const Json& document_;
  std::vector<const Json*> open_;
  std::set<const Json*> seen_;
};

// The values that a schema names; nullopt: it names none.
std::optional<std::vector<const Json*>> named_values(const Conjunction& schemas) {
  for (const Schema& schema : schemas) {
    if (const Json* value = find(schema, "const")) return std::vector<const Json*>{value};
    if (const Json* values = find(schema, "enum")) {
      std::vector<const Json*> result;
      for (const Json& value : *values) result.push_back(&value);
      return result;
    }
  }
  return std::nullopt;
}

bool requires_property(const Conjunction& schemas, const std::string& name) {
  return std::any_of(schemas.begin(), schemas.end(), [&](const Schema& schema) {
    const Json* required = find(schema, "required");
    return required != nullptr && std::find(required->begin(), required->end(), name) != required->end();
  });
}

uint32_t common_types(const Conjunction& schemas) {
  uint32_t types = kAllTypes | kInteger;
  for (const Schema& schema : schemas) {
    uint32_t own = types_of(schema);
    if ((own & kNumber) != 0) own |= kInteger;
    types &= own;
  }
  return types;
}

bool have_different_properties(const Json& document, const Conjunction& a, const Conjunction& b, int depth) {
  for (const Schema& left : a) {
    const Json* properties = find(left, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, unused] : properties->items()) {
      if (!requires_property(a, name) || !requires_property(b, name)) continue;
      for (const Schema& right : b) {
        const Json* others = find(right, "properties");
        if (others == nullptr || !others->contains(name)) continue;
        if (are_disjoint(document, child(child(left, "properties"), name), child(child(right, "properties"), name), depth + 1)) return true;
      }
    }
  }
  return false;
}

}  // namespace

Status schema_error(const Schema& at, const char* keyword, const std::string& message) {
  std::string text = "JSON Schema: " + at.pointer;
  if (keyword != nullptr) text += "/" + std::string(keyword);
  if (keyword != nullptr && at.json->is_object() && at.json->contains(keyword)) {
    const Json& value = at.json->at(keyword);
    if (!value.is_structured()) text += " = " + shown(value);
  }
  return {Code::kInvalidArgument, text + ": " + message};
}

Schema child(const Schema& schema, const char* keyword) { return child(schema, std::string(keyword)); }

Schema child(const Schema& schema, const std::string& key) { return {&schema.json->at(key), schema.pointer + "/" + escaped(key)}; }

Schema child(const Schema& schema, size_t index) { return {&schema.json->at(index), schema.pointer + "/" + std::to_string(index)}; }

const Json* find(const Schema& schema, const char* keyword) {
  if (!schema.json->is_object()) return nullptr;
  const auto found = schema.json->find(keyword);
  return found == schema.json->end() ? nullptr : &*found;
}

Status check_keywords(const Schema& schema) {
  for (const auto& [name, value] : schema.json->items()) {
    if (name.starts_with("x-")) continue;
    if (name == "$id" && schema.pointer == "#") continue;
    const auto keyword = std::find_if(kKeywords.begin(), kKeywords.end(), [&, &key = name](const Keyword& known) { return key == known.name; });
    if (keyword == kKeywords.end()) return schema_error(schema, name.c_str(), "this keyword is not supported");
    const std::string wrong = expected(value, keyword->kind);
    if (!wrong.empty()) return schema_error(schema, name.c_str(), wrong);
  }
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

Result<Schema> resolve(const Json& document, const Schema& from, const std::string& reference) {
  const auto missing = [&] { return schema_error(from, "$ref", "there is no such schema in the document"); };
  if (!reference.starts_with("#")) return schema_error(from, "$ref", "only references into the same document are supported: #/...");
  if (reference.size() > 1 && reference[1] != '/') return schema_error(from, "$ref", "anchors are not supported: give a JSON pointer, #/...");
  Schema at{&document, "#"};
  for (size_t begin = 2; begin <= reference.size();) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    const std::string key = unescaped(std::string_view(reference).substr(begin, end - begin));
    if (at.json->is_object() && at.json->contains(key)) {
      at = child(at, key);
    } else if (at.json->is_array() && !key.empty() && key.size() < 7 && key.find_first_not_of("0123456789") == std::string::npos &&
               std::stoul(key) < at.json->size()) {
      at = child(at, std::stoul(key));
    } else {
      return missing();
    }
    begin = end + 1;
  }
  if (!is_schema(*at.json)) return missing();
  return at;
}

Result<std::vector<Conjunction>> alternatives(const Json& document, const Conjunction& schemas) {
  std::vector<Conjunction> results;
  std::vector<Conjunction> waiting = {schemas};
  for (size_t work = 0; !waiting.empty(); ++work) {
    MOTE_REQUIRE(work < kMaxAlternatives, Code::kInvalidArgument, "JSON Schema: %s: anyOf and oneOf together have more than %zu combinations",
                 schemas.empty() ? "#" : schemas[0].pointer.c_str(), kMaxAlternatives);
    const Conjunction next = std::move(waiting.back());
    waiting.pop_back();
    Flattening flat(document);
    MOTE_RETURN_IF_ERROR(flat.run(next));
    if (flat.is_never) continue;
    // The choices of schemas that were there before have been made: their branches are among `next`.
    const auto is_made = [&](const Conjunction& branches) {
      return std::any_of(branches.begin(), branches.end(), [&](const Schema& branch) {
        return std::any_of(next.begin(), next.end(), [&](const Schema& schema) { return schema.json == branch.json; });
      });
    };
    const auto choice = std::find_if_not(flat.choices.begin(), flat.choices.end(), is_made);
    if (choice == flat.choices.end()) {
      results.push_back(std::move(flat.all));
      continue;
    }
    for (auto branch = choice->rbegin(); branch != choice->rend(); ++branch) {
      Conjunction with = next;
      with.push_back(*branch);
      waiting.push_back(std::move(with));
    }
  }
  return results;
}

bool are_disjoint(const Json& document, const Schema& a, const Schema& b, int depth) {
  if (depth > 4) return false;
  Flattening left(document);
  Flattening right(document);
  if (!left.run({a}).ok() || !right.run({b}).ok()) return false;
  if (left.is_never || right.is_never) return true;
  const uint32_t types = common_types(left.all) & common_types(right.all);
  if (types == 0) return true;
  const auto these = named_values(left.all);
  const auto those = named_values(right.all);
  if (these.has_value() && those.has_value()) {
    const auto is_shared = [&](const Json* value) {
      return std::any_of(those->begin(), those->end(), [value](const Json* other) { return *value == *other; });
    };
    return std::none_of(these->begin(), these->end(), is_shared);
  }
  const auto lacks_types = [](const std::vector<const Json*>& values, const Conjunction& schemas) {
    return std::none_of(values.begin(), values.end(), [&](const Json* value) { return (type_of_value(*value) & common_types(schemas)) != 0; });
  };
  if (these.has_value() && lacks_types(*these, right.all)) return true;
  if (those.has_value() && lacks_types(*those, left.all)) return true;
  return types == kObject && have_different_properties(document, left.all, right.all, depth);
}

}  // namespace mote::constraints
