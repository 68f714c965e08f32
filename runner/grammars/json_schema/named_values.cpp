#include "runner/grammars/json_schema/named_values.h"

#include <algorithm>
#include <cmath>

namespace mote::constraints {
namespace {

uint32_t num_characters(const std::string& text) {
  return static_cast<uint32_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool has_type(const Json& value, const Schema& schema) {
  uint32_t types = types_of(schema);
  if ((types & kNumber) != 0) types |= kInteger;
  return (types & type_of_value(value)) != 0;
}

bool is_named(const Json& value, const Schema& schema) {
  if (const Json* constant = find(schema, "const"); constant != nullptr && *constant != value) return false;
  const Json* values = find(schema, "enum");
  return values == nullptr || std::find(values->begin(), values->end(), value) != values->end();
}

// Keywords that named values are not checked against: beside enum or const they are errors, if they apply to the type
// of a value.
constexpr const char* kNotChecked[] = {"pattern",
                                       "format",
                                       "properties",
                                       "required",
                                       "additionalProperties",
                                       "patternProperties",
                                       "propertyNames",
                                       "minProperties",
                                       "maxProperties",
                                       "items",
                                       "prefixItems",
                                       "minItems",
                                       "maxItems",
                                       "uniqueItems",
                                       "multipleOf",
                                       "unevaluatedProperties",
                                       "unevaluatedItems"};

bool is_about(const std::string& keyword, uint32_t type) {
  if (keyword == "pattern" || keyword == "format") return type == kString;
  if (keyword == "multipleOf") return (type & (kInteger | kNumber)) != 0;
  if (keyword.ends_with("tems")) return type == kArray;
  return type == kObject;
}

Result<bool> accepts(const Schema& schema, const Json& value) {
  if (!has_type(value, schema) || !is_named(value, schema)) return false;
  const uint32_t type = type_of_value(value);
  for (const char* keyword : kNotChecked) {
    if (find(schema, keyword) != nullptr && is_about(keyword, type)) {
      return schema_error(
          schema, keyword,
          "this keyword is not supported beside enum or const: leave out the values that it does not accept");
    }
  }
  if (type == kString) {
    const uint32_t length = num_characters(value.get<std::string>());
    return length >= count_of(schema, "minLength", 0) && length <= count_of(schema, "maxLength", ~0U);
  }
  if ((type & (kInteger | kNumber)) == 0) return true;
  const auto number = value.get<double>();
  const auto bound = [&](const char* keyword, double otherwise) {
    const Json* found = find(schema, keyword);
    return found == nullptr ? otherwise : found->get<double>();
  };
  return number >= bound("minimum", -HUGE_VAL) && number <= bound("maximum", HUGE_VAL) &&
         number > bound("exclusiveMinimum", -HUGE_VAL) && number < bound("exclusiveMaximum", HUGE_VAL);
}

}  // namespace

Result<std::optional<std::vector<const Json*>>> accepted_values(const Conjunction& schemas) {
  const Schema* naming = nullptr;
  for (const Schema& schema : schemas) {
    if (find(schema, "const") != nullptr || find(schema, "enum") != nullptr) naming = &schema;
  }
  std::optional<std::vector<const Json*>> result;
  if (naming == nullptr) return result;
  std::vector<const Json*> values;
  if (const Json* constant = find(*naming, "const")) {
    values.push_back(constant);
  } else {
    for (const Json& value : *find(*naming, "enum")) values.push_back(&value);
  }
  result.emplace();
  for (const Json* value : values) {
    bool is_accepted = true;
    for (const Schema& schema : schemas) {
      MOTE_ASSIGN(const bool accepted, accepts(schema, *value));
      is_accepted = is_accepted && accepted;
    }
    if (is_accepted) result->push_back(value);
  }
  return result;
}

}  // namespace mote::constraints
