#include "runner/grammars/json_schema/named_values.h"

#include <algorithm>
#include <cmath>

namespace mote::constraints {
namespace {

uint32_t num_characters(const std::string& text) {
  return static_cast<uint32_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
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

// What a schema asks of named values.
class ValueCheck {
 public:
  explicit ValueCheck(const Schema& schema)
      : schema_(schema), types_(types_of(schema)), constant_(find(schema, "const")), values_(find(schema, "enum")) {
    if ((types_ & kNumber) != 0) types_ |= kInteger;
    for (const char* keyword : kNotChecked) {
      if (find(schema, keyword) != nullptr) not_checked_.emplace_back(keyword);
    }
    shortest_ = count_of(schema, "minLength", 0);
    longest_ = count_of(schema, "maxLength", ~0U);
    minimum_ = bound("minimum", -HUGE_VAL);
    maximum_ = bound("maximum", HUGE_VAL);
    above_ = bound("exclusiveMinimum", -HUGE_VAL);
    below_ = bound("exclusiveMaximum", HUGE_VAL);
  }

  // Whether the values are those of the schema's own enum.
  bool is_naming(const Json* naming) const { return naming == values_; }

  Result<bool> accepts(const Json& value, bool is_named) const {
    const uint32_t type = type_of_value(value);
    if ((types_ & type) == 0) return false;
    if (constant_ != nullptr && *constant_ != value) return false;
    if (!is_named && values_ != nullptr && !schema_.document->contains_value(*values_, value)) return false;
    for (const std::string& keyword : not_checked_) {
      if (is_about(keyword, type)) {
        return schema_error(
            schema_, keyword.c_str(),
            "this keyword is not supported beside enum or const: leave out the values that it does not accept");
      }
    }
    if (type == kString) {
      if (shortest_ == 0 && longest_ == ~0U) return true;
      const auto& text = value.get_ref<const std::string&>();
      schema_.document->budget().count(text.size() / 16);
      const uint32_t length = num_characters(text);
      return length >= shortest_ && length <= longest_;
    }
    if ((type & (kInteger | kNumber)) == 0) return true;
    const auto number = value.get<double>();
    return number >= minimum_ && number <= maximum_ && number > above_ && number < below_;
  }

 private:
  double bound(const char* keyword, double otherwise) const {
    const Json* found = find(schema_, keyword);
    return found == nullptr ? otherwise : found->get<double>();
  }

  const Schema& schema_;
  uint32_t types_;
  const Json* constant_;
  const Json* values_;
  std::vector<std::string> not_checked_;
  uint32_t shortest_;
  uint32_t longest_;
  double minimum_;
  double maximum_;
  double above_;
  double below_;
};

}  // namespace

Result<std::optional<std::vector<const Json*>>> accepted_values(const Conjunction& schemas) {
  const Json* naming = nullptr;  // const, or the shortest enum
  bool is_constant = false;
  for (const Schema& schema : schemas) {
    const Json* constant = find(schema, "const");
    const Json* list = find(schema, "enum");
    if (constant != nullptr)
      naming = constant;
    else if (list != nullptr && !is_constant && (naming == nullptr || list->size() < naming->size()))
      naming = list;
    is_constant |= constant != nullptr;
  }
  std::optional<std::vector<const Json*>> result;
  if (naming == nullptr) return result;
  WorkBudget& budget = schemas[0].document->budget();
  std::vector<ValueCheck> checks;
  for (const Schema& schema : schemas) checks.emplace_back(schema);
  result.emplace();
  for (size_t i = 0; i < (is_constant ? 1 : naming->size()); ++i) {
    const Json& value = is_constant ? *naming : (*naming)[i];
    MOTE_RETURN_IF_ERROR(budget.spend(2 * checks.size()));
    bool is_accepted = true;
    for (const ValueCheck& check : checks) {
      MOTE_ASSIGN(const bool accepted, check.accepts(value, check.is_naming(naming)));
      is_accepted = is_accepted && accepted;
    }
    if (is_accepted) result->push_back(&value);
  }
  return result;
}

}  // namespace mote::constraints
