#include "runner/grammars/json_schema/compiler.h"

#include <algorithm>
#include <cmath>

#include "runner/grammars/budget.h"
#include "runner/grammars/json_schema/alternatives.h"
#include "runner/grammars/json_schema/json_schema.h"
#include "runner/grammars/json_schema/named_values.h"
#include "runner/grammars/json_schema/numbers.h"
#include "runner/grammars/json_schema/strings.h"
#include "runner/grammars/regex.h"

namespace mote::constraints {
namespace {

constexpr uint32_t kMaxIndentation = 24;
constexpr int64_t kMaxMultiples = 4096;

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
}

// Types that the keywords of schemas without `type` are about; 0: none.
uint32_t implied_types(const Conjunction& schemas) {
  uint32_t types = 0;
  for (const Schema& schema : schemas) {
    if (!schema.json->is_object()) continue;
    schema.document->budget().count(schema.json->size());
    for (const auto& [name, value] : schema.json->get_ref<const Json::object_t&>()) {
      if (is_one_of(name, {"minLength", "maxLength", "pattern", "format"})) types |= kString;
      if (is_one_of(name, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}))
        types |= kNumber;
      if (is_one_of(name, {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"}))
        types |= kArray;
      if (is_one_of(name, {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
                           "minProperties", "maxProperties", "unevaluatedProperties"})) {
        types |= kObject;
      }
    }
  }
  return types;
}

uint32_t allowed_types(const Conjunction& schemas) {
  uint32_t types = kAllTypes | kInteger;
  bool is_given = false;
  for (const Schema& schema : schemas) {
    is_given |= find(schema, "type") != nullptr;
    uint32_t own = types_of(schema);
    if ((own & kNumber) != 0) own |= kInteger;
    types &= own;
  }
  const uint32_t implied = is_given ? 0 : implied_types(schemas);
  return implied == 0 ? types : types & implied;
}

// The tightest of the bounds that the schemas set.
Result<std::optional<Bound>> tightest(const Conjunction& schemas, bool is_low) {
  std::optional<Bound> result;
  for (const Schema& schema : schemas) {
    for (const bool is_exclusive : {false, true}) {
      const char* keyword =
          is_low ? (is_exclusive ? "exclusiveMinimum" : "minimum") : (is_exclusive ? "exclusiveMaximum" : "maximum");
      const Json* value = find(schema, keyword);
      if (value == nullptr) continue;
      std::optional<Bound> bound = make_bound(value->dump(), is_exclusive);
      if (!bound.has_value()) return schema_error(schema, keyword, "must be a number of at most 40 digits");
      const auto is_tighter = [&](const Bound& a, const Bound& b) {
        if (is_low) return is_tighter_low(a, b);
        const bool same = a.is_negative == b.is_negative && a.whole == b.whole && a.fraction == b.fraction;
        return same ? a.is_exclusive : !is_tighter_low(a, b);
      };
      if (!result.has_value() || is_tighter(*bound, *result)) result = bound;
    }
  }
  return result;
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? "\"" + json_escaped(value.get_ref<const std::string&>()) + "\"" : value.dump();
}

double value_of_bound(const Bound& bound) {
  const double magnitude = std::stod(bound.whole + "." + bound.fraction + "0");
  return bound.is_negative ? -magnitude : magnitude;
}

}  // namespace

Result<Rules> SchemaCompiler::run() {
  const RuleId root = rules_.add_rule();
  rules_.define(root, value_of({{&document_->root(), document_.get()}}));
  while (!pending_.empty()) {
    const Pending next = std::move(pending_.back());
    pending_.pop_back();
    MOTE_REQUIRE(rules_.num_rules() <= kMaxRules, Code::kInvalidArgument,
                 "JSON Schema: %s: the schema is too large when its references and choices are written out",
                 next.schemas.empty() ? "#" : next.schemas[0].pointer().c_str());
    Status status = define(next);
    if (status.ok()) status = budget_.status();
    if (status.ok()) continue;
    if (!budget_.is_spent() || status.code() == Code::kCancelled || next.schemas.empty()) return status;
    return Status(status.code(), "JSON Schema: " + next.schemas[0].pointer() + ": " + budget_.status().message());
  }
  rules_.describe_with([document = document_, schemas = std::move(schema_of_)](RuleId rule) {
    const bool is_known = rule < schemas.size() && schemas[rule] != nullptr;
    return "JSON Schema: " + (is_known ? document->pointer_to(schemas[rule]) : "#");
  });
  return std::move(rules_);
}

Status SchemaCompiler::define(const Pending& pending) {
  std::vector<ExpressionId> expressions;
  MOTE_RETURN_IF_ERROR(for_each_alternative(pending.schemas, [&](const Conjunction& branch) -> Status {
    MOTE_ASSIGN(const ExpressionId expression, alternative(branch));
    expressions.push_back(expression);
    return budget_.status();
  }));
  rules_.define(pending.rule, rules_.choice(std::move(expressions)));
  return {};
}

// A rule for the values that all `schemas` accept. A new rule is defined later, so schemas may refer to themselves.
ExpressionId SchemaCompiler::value_of(Conjunction schemas) {
  std::erase_if(schemas, [](const Schema& schema) { return schema.json->is_boolean() && schema.json->get<bool>(); });
  std::vector<const Json*> key;
  for (const Schema& schema : schemas) key.push_back(schema.json);
  std::sort(key.begin(), key.end());
  key.erase(std::unique(key.begin(), key.end()), key.end());
  budget_.count(4 + 2 * key.size());
  const auto [found, is_new] = known_.try_emplace(std::move(key), 0);
  if (is_new) {
    budget_.hold(sizeof(Pending) + 64 + schemas.size() * (sizeof(Schema) + sizeof(const Json*)));
    found->second = rule_for(schemas, rules_.never());
    pending_.push_back({found->second, std::move(schemas)});
  }
  return rules_.rule(found->second);
}

RuleId SchemaCompiler::rule_for(const Conjunction& schemas, ExpressionId definition) {
  const RuleId rule = rules_.add_rule();
  rules_.define(rule, definition);
  schema_of_.resize(rules_.num_rules());
  schema_of_.back() = schemas.empty() ? nullptr : schemas[0].json;
  return rule;
}

// The values that all `schemas` accept, which have no references and choices.
Result<ExpressionId> SchemaCompiler::alternative(const Conjunction& schemas) {
  MOTE_ASSIGN(const auto values, accepted_values(schemas));
  if (values.has_value()) return named(*values);
  std::vector<ExpressionId> branches;
  const uint32_t types = allowed_types(schemas);
  if ((types & kNull) != 0) branches.push_back(rules_.bytes("null"));
  if ((types & kBoolean) != 0) branches.push_back(rules_.choice({rules_.bytes("true"), rules_.bytes("false")}));
  if ((types & (kNumber | kInteger)) != 0) {
    MOTE_ASSIGN(const ExpressionId expression, number(schemas, (types & kNumber) == 0));
    branches.push_back(expression);
  }
  if ((types & kString) != 0) {
    MOTE_ASSIGN(const ExpressionId expression, string(schemas));
    branches.push_back(expression);
  }
  if ((types & kArray) != 0) {
    MOTE_ASSIGN(const ExpressionId expression, array(schemas));
    branches.push_back(expression);
  }
  if ((types & kObject) != 0) {
    MOTE_ASSIGN(const ExpressionId expression, object(schemas));
    branches.push_back(expression);
  }
  return rules_.choice(std::move(branches));
}

ExpressionId SchemaCompiler::named(const std::vector<const Json*>& values) {
  std::vector<ExpressionId> branches;
  std::vector<std::string> texts;
  for (const Json* value : values) {
    if (budget_.is_spent()) break;
    if (value->is_structured())
      branches.push_back(literal(*value));
    else
      texts.push_back(scalar_text(*value));
  }
  if (!texts.empty()) branches.push_back(texts.size() == 1 ? rules_.bytes(std::move(texts[0])) : rules_.texts(texts));
  return rules_.choice(std::move(branches));
}

ExpressionId SchemaCompiler::list_of(const char* open, std::vector<ExpressionId> parts, const char* close) {
  std::vector<ExpressionId> sequence = {rules_.bytes(open), space()};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) sequence.push_back(comma());
    sequence.push_back(parts[i]);
  }
  if (!parts.empty()) sequence.push_back(space());
  sequence.push_back(rules_.bytes(close));
  return rules_.sequence(std::move(sequence));
}

ExpressionId SchemaCompiler::literal(const Json& value) {
  if (!value.is_structured()) return rules_.bytes(scalar_text(value));
  std::vector<ExpressionId> parts;
  if (value.is_array()) {
    for (const Json& item : value) parts.push_back(literal(item));
    return list_of("[", std::move(parts), "]");
  }
  for (const auto& [key, item] : value.get_ref<const Json::object_t&>()) {
    parts.push_back(rules_.sequence({rules_.bytes("\"" + json_escaped(key) + "\""), colon(), literal(item)}));
  }
  return list_of("{", std::move(parts), "}");
}

// Numbers that are asked for alike share a rule, and so do strings.
Result<ExpressionId> SchemaCompiler::number(const Conjunction& schemas, bool is_integer) {
  MOTE_ASSIGN(const std::optional<Bound> low, tightest(schemas, true));
  MOTE_ASSIGN(const std::optional<Bound> high, tightest(schemas, false));
  const Schema* divided = nullptr;
  for (const Schema& schema : schemas) {
    const Json* divisor = find(schema, "multipleOf");
    if (divisor == nullptr || (is_integer && *divisor == 1)) continue;
    if (divided != nullptr)
      return schema_error(schema, "multipleOf", "only one multipleOf for the same value is supported");
    divided = &schema;
  }
  if (divided != nullptr) return multiples(*divided, low, high);
  if (!low.has_value() && !high.has_value()) return append_number(rules_, is_integer, low, high);
  std::string key = is_integer ? "integer" : "number";
  for (const auto& bound : {low, high})
    key += bound.has_value() ? (bound->is_exclusive ? " x" : " ") + std::string(bound->is_negative ? "-" : "") +
                                   bound->whole + "." + bound->fraction
                             : " none";
  const auto [found, is_new] = shared_.try_emplace(key, 0);
  if (is_new) found->second = rule_for(schemas, append_number(rules_, is_integer, low, high));
  return rules_.rule(found->second);
}

// Whole numbers. With two bounds every multiple is written out. Without bounds there is a rule for each remainder of
// the digits so far.
Result<ExpressionId> SchemaCompiler::multiples(const Schema& schema, const std::optional<Bound>& low,
                                               const std::optional<Bound>& high) {
  const Json& value = *find(schema, "multipleOf");
  const double divisor = value.get<double>();
  if (divisor < 1 || divisor > 1000 || divisor != std::floor(divisor)) {
    return schema_error(schema, "multipleOf", "must be a whole number of 1..1000");
  }
  const auto step = static_cast<int64_t>(divisor);
  if (low.has_value() && high.has_value()) {
    const double first = std::ceil(value_of_bound(*low) / divisor);
    const double last = std::floor(value_of_bound(*high) / divisor);
    if (!(last - first <= static_cast<double>(kMaxMultiples)) || std::fabs(first) > 1e12 || std::fabs(last) > 1e12) {
      return schema_error(
          schema, "multipleOf",
          format("between the bounds there must be at most %lld multiples", static_cast<long long>(kMaxMultiples)));
    }
    std::vector<std::string> texts;
    for (auto i = static_cast<int64_t>(first); i <= static_cast<int64_t>(last); ++i) {
      const auto number = static_cast<double>(i * step);
      const bool is_left_out = (low->is_exclusive && number <= value_of_bound(*low)) ||
                               (high->is_exclusive && number >= value_of_bound(*high));
      if (!is_left_out) texts.push_back(std::to_string(i * step));
    }
    return rules_.texts(texts);
  }
  if (low.has_value() || high.has_value())
    return schema_error(schema, "multipleOf", "is supported with both a minimum and a maximum, or with neither");
  std::vector<RuleId> remainders;
  std::vector<ExpressionId> calls;
  for (int64_t i = 0; i < step; ++i) {
    remainders.push_back(rules_.add_rule());
    calls.push_back(rules_.rule(remainders.back()));
  }
  std::vector<ExpressionId> digit_texts;
  for (char digit = '0'; digit <= '9'; ++digit) digit_texts.push_back(rules_.bytes(std::string(1, digit)));
  const auto branches_from = [&](int64_t remainder, char first) {
    std::vector<ExpressionId> branches;
    for (char digit = first; digit <= '9'; ++digit) {
      const ExpressionId next = calls[static_cast<size_t>((remainder * 10 + digit - '0') % step)];
      branches.push_back(rules_.sequence({digit_texts[static_cast<size_t>(digit - '0')], next}));
    }
    return branches;
  };
  for (int64_t i = 0; i < step; ++i) {
    std::vector<ExpressionId> branches = branches_from(i, '0');
    if (i == 0) branches.push_back(rules_.empty());
    rules_.define(remainders[static_cast<size_t>(i)], rules_.choice(std::move(branches)));
  }
  const ExpressionId digits = rules_.choice(branches_from(0, '1'));
  return rules_.choice({rules_.bytes("0"), rules_.sequence({rules_.optional(rules_.bytes("-")), digits})});
}

Result<ExpressionId> SchemaCompiler::string(const Conjunction& schemas) {
  std::string key;
  for (const Schema& schema : schemas) {
    for (const char* keyword : {"minLength", "maxLength", "pattern", "format"}) {
      if (const Json* value = find(schema, keyword)) key += keyword + value->dump() + "\n";
    }
  }
  budget_.count(key.size() / 8);
  const auto [found, is_new] = shared_.try_emplace("string" + key, 0);
  if (is_new) {
    budget_.hold(128 + key.size());
    MOTE_ASSIGN(const std::optional<ExpressionId> content, string_content(schemas));
    found->second =
        rule_for(schemas, content.has_value() ? rules_.sequence({rules_.bytes("\""), *content, rules_.bytes("\"")})
                                              : append_any_string(rules_));
  }
  return rules_.rule(found->second);
}

// What stands between the quotes; nullopt: anything.
Result<std::optional<ExpressionId>> SchemaCompiler::string_content(const Conjunction& schemas) {
  uint32_t shortest = 0;
  uint32_t longest = kUnbounded;
  std::optional<ExpressionId> content;
  const auto add = [&](ExpressionId part) {
    content = content.has_value() ? rules_.intersection(*content, part) : part;
  };
  for (const Schema& schema : schemas) {
    shortest = std::max(shortest, count_of(schema, "minLength", 0));
    longest = std::min(longest, count_of(schema, "maxLength", kUnbounded));
    RegexOptions options;
    options.encode = encode_json_characters;
    if (const Json* pattern = find(schema, "pattern")) {
      options.searches = true;
      const auto expression = append_regex(pattern->get_ref<const std::string&>(), options, rules_);
      if (!expression.ok()) return schema_error(schema, "pattern", expression.status().message());
      add(*expression);
    }
    if (const Json* name = find(schema, "format")) {
      const std::string_view pattern = format_pattern(name->get<std::string>());
      if (pattern.empty()) return schema_error(schema, "format", "must be one of " + format_names());
      if (pattern == ".") continue;
      MOTE_ASSIGN(const ExpressionId expression, append_regex(pattern, options, rules_));
      add(expression);
    }
  }
  if (shortest > 0 || longest != kUnbounded) {
    const ExpressionId character = encode_json_characters(rules_, {{'\b', '\n'}, {'\f', '\r'}, {0x20, kLastCodePoint}});
    if (shortest > longest)
      add(rules_.never());
    else
      add(rules_.repeat(character, shortest, longest));
  }
  return content;
}

ExpressionId SchemaCompiler::space() {
  if (whitespace_ != JsonWhitespace::kFlexible) return rules_.empty();
  if (!space_.has_value()) {
    space_ = rules_.add_rule();
    const ExpressionId line =
        rules_.sequence({rules_.bytes("\n"), rules_.repeat(rules_.bytes(" "), 0, kMaxIndentation)});
    rules_.define(*space_, rules_.choice({rules_.empty(), rules_.bytes(" "), line}));
  }
  return rules_.rule(*space_);
}

ExpressionId SchemaCompiler::comma() {
  if (whitespace_ == JsonWhitespace::kSpaced) return rules_.bytes(", ");
  return rules_.sequence({rules_.bytes(","), space()});
}

ExpressionId SchemaCompiler::colon() {
  if (whitespace_ == JsonWhitespace::kSpaced) return rules_.bytes(": ");
  if (whitespace_ == JsonWhitespace::kCompact) return rules_.bytes(":");
  return rules_.sequence({rules_.bytes(":"), rules_.optional(rules_.bytes(" "))});
}

Result<Rules> parse_json_schema(std::string_view source, JsonWhitespace whitespace, WorkBudget& budget) {
  MOTE_ASSIGN(std::shared_ptr<Document> document, Document::read(source, budget));
  MOTE_REQUIRE(document->root().is_object() || document->root().is_boolean(), Code::kInvalidArgument,
               "JSON Schema: # must be an object, true or false");
  return SchemaCompiler(std::move(document), whitespace).run();
}

}  // namespace mote::constraints
