#include <algorithm>

#include "runner/grammars/json_schema/alternatives.h"
#include "runner/grammars/json_schema/compiler.h"
#include "runner/grammars/json_schema/strings.h"
#include "runner/grammars/regex.h"

namespace mote::constraints {
namespace {

bool is_false(const Json* value) { return value != nullptr && value->is_boolean() && !value->get<bool>(); }

// Whether members may have names that no schema declares.
bool has_free_members(const Conjunction& schemas) {
  bool is_asked_for = false;
  bool has_properties = false;
  for (const Schema& schema : schemas) {
    const Json* additional = find(schema, "additionalProperties");
    if (is_false(additional) || is_false(find(schema, "unevaluatedProperties"))) return false;
    is_asked_for |= additional != nullptr;
    has_properties |= find(schema, "properties") != nullptr || find(schema, "patternProperties") != nullptr;
  }
  return is_asked_for || !has_properties;
}

std::vector<std::string> patterns_of(const Conjunction& schemas) {
  std::vector<std::string> patterns;
  for (const Schema& schema : schemas) {
    const Json* found = find(schema, "patternProperties");
    if (found == nullptr) continue;
    for (const auto& [pattern, unused] : found->items()) {
      if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
    }
  }
  return patterns;
}

// Every name in properties and required, in the order in which they come.
std::vector<std::string> declared_names(const Conjunction& schemas) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Schema& schema : schemas) {
    const Json* properties = find(schema, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, unused] : properties->items()) add(name);
  }
  for (const Schema& schema : schemas) {
    const Json* required = find(schema, "required");
    if (required == nullptr) continue;
    for (const Json& name : *required) add(name.get<std::string>());
  }
  return names;
}

bool is_required(const Conjunction& schemas, const std::string& name) {
  return std::any_of(schemas.begin(), schemas.end(), [&](const Schema& schema) {
    const Json* required = find(schema, "required");
    return required != nullptr && std::find(required->begin(), required->end(), name) != required->end();
  });
}

}  // namespace

Result<ExpressionId> SchemaCompiler::object(const Conjunction& schemas) {
  uint32_t fewest = 0;
  uint32_t most = kUnbounded;
  for (const Schema& schema : schemas) {
    fewest = std::max(fewest, count_of(schema, "minProperties", 0));
    most = std::min(most, count_of(schema, "maxProperties", kUnbounded));
    const Json* unevaluated = find(schema, "unevaluatedProperties");
    if (unevaluated != nullptr && *unevaluated != false)
      return schema_error(schema, "unevaluatedProperties", "must be false");
    if (find(schema, "propertyNames") != nullptr && !declared_names(schemas).empty()) {
      return schema_error(schema, "propertyNames", "this is not supported beside properties or required");
    }
  }
  MOTE_ASSIGN(const std::vector<Member> members, declared_members(schemas));
  MOTE_ASSIGN(std::vector<ExpressionId> free, free_members(schemas, members));
  const auto num_required = static_cast<uint32_t>(
      std::count_if(members.begin(), members.end(), [](const Member& m) { return m.is_required; }));
  const auto num_members = static_cast<uint32_t>(members.size());
  if (num_required > most) return rules_.never();
  // Members of free names may repeat a name and then count as one, so no more than one of them can be asked for.
  const bool needs_free = fewest == 1 && members.empty();
  if (fewest > num_required && !needs_free) {
    return schema_error(
        schemas[0], "minProperties",
        "this is supported up to the number of required properties, or 1 where there are no properties");
  }
  if (most < num_members && num_members > num_required) {
    return schema_error(schemas[0], "maxProperties", "this is supported from the number of properties on");
  }
  const uint32_t most_free = most == kUnbounded ? kUnbounded : most - num_members;
  std::optional<ExpressionId> any_free;
  if (!free.empty() && most_free > 0) any_free = rules_.choice(std::move(free));
  if (needs_free && !any_free.has_value()) return rules_.never();
  const ExpressionId body = join(members, any_free, needs_free ? 1 : 0, most_free);
  return rules_.sequence({rules_.bytes("{"), space(), body, rules_.bytes("}")});
}

Result<std::vector<SchemaCompiler::Member>> SchemaCompiler::declared_members(const Conjunction& schemas) {
  std::vector<Member> members;
  for (const std::string& name : declared_names(schemas)) {
    MOTE_ASSIGN(Conjunction of_member, schemas_of_member(schemas, name));
    const bool required = is_required(schemas, name);
    const bool is_never =
        std::any_of(of_member.begin(), of_member.end(), [](const Schema& schema) { return is_false(schema.json); });
    if (is_never && !required) continue;
    const ExpressionId key = rules_.bytes("\"" + json_escaped(name) + "\"");
    members.push_back({name, rules_.sequence({key, colon(), value_of(std::move(of_member))}), required});
  }
  return members;
}

Result<Conjunction> SchemaCompiler::schemas_of_member(const Conjunction& schemas, const std::string& name) {
  Conjunction result;
  for (const Schema& schema : schemas) {
    bool is_covered = false;
    if (const Json* properties = find(schema, "properties"); properties != nullptr && properties->contains(name)) {
      result.push_back(child(child(schema, "properties"), name));
      is_covered = true;
    }
    if (const Json* patterns = find(schema, "patternProperties")) {
      for (const auto& [pattern, unused] : patterns->items()) {
        const Result<bool> matches = has_match(pattern, name);
        if (!matches.ok()) return schema_error(schema, "patternProperties", matches.status().message());
        if (!*matches) continue;
        result.push_back(child(child(schema, "patternProperties"), pattern));
        is_covered = true;
      }
    }
    if (!is_covered && find(schema, "additionalProperties") != nullptr)
      result.push_back(child(schema, "additionalProperties"));
  }
  return result;
}

// Members whose names match a pattern, and those of any other name.
Result<std::vector<ExpressionId>> SchemaCompiler::free_members(const Conjunction& schemas,
                                                               const std::vector<Member>& declared) {
  std::vector<ExpressionId> members;
  const std::vector<std::string> patterns = patterns_of(schemas);
  std::vector<std::string> keys = patterns;
  if (has_free_members(schemas)) keys.emplace_back();
  for (const std::string& pattern : keys) {
    std::vector<std::string> others;
    std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(others),
                 [&](const std::string& other) { return other != pattern; });
    Conjunction of_member;
    for (const Schema& schema : schemas) {
      const Json* own = find(schema, "patternProperties");
      if (!pattern.empty() && own != nullptr && own->contains(pattern)) {
        of_member.push_back(child(child(schema, "patternProperties"), pattern));
      } else if (find(schema, "additionalProperties") != nullptr) {
        of_member.push_back(child(schema, "additionalProperties"));
      }
    }
    if (std::any_of(of_member.begin(), of_member.end(), [](const Schema& schema) { return is_false(schema.json); }))
      continue;
    MOTE_ASSIGN(const ExpressionId key, free_key(schemas, pattern, others, declared));
    members.push_back(
        rules_.sequence({rules_.bytes("\""), key, rules_.bytes("\""), colon(), value_of(std::move(of_member))}));
  }
  return members;
}

// What stands between the quotes of a name that matches `pattern` (empty: any), none of the others, and is not
// declared.
Result<ExpressionId> SchemaCompiler::free_key(const Conjunction& schemas, const std::string& pattern,
                                              const std::vector<std::string>& other_patterns,
                                              const std::vector<Member>& declared) {
  RegexOptions options;
  options.searches = true;
  options.encode = encode_json_characters;
  const auto matching = [&](const std::string& source) -> Result<ExpressionId> {
    const auto expression = append_regex(source, options, rules_);
    if (!expression.ok())
      return Status(Code::kInvalidArgument, "JSON Schema: patternProperties: " + expression.status().message());
    return expression;
  };
  ExpressionId key = rules_.repeat(encode_json_characters(rules_, {{0, kLastCodePoint}}), 0, kUnbounded);
  if (!pattern.empty()) { MOTE_ASSIGN(key, matching(pattern)); }
  for (const Schema& schema : schemas) {
    if (find(schema, "propertyNames") == nullptr) continue;
    const Schema names = child(schema, "propertyNames");
    MOTE_ASSIGN(const std::vector<Conjunction> branches, alternatives(document_, {names}));
    std::vector<ExpressionId> accepted;
    for (const Conjunction& branch : branches) {
      for (const Schema& part : branch) {
        if (find(part, "enum") == nullptr && find(part, "const") == nullptr) continue;
        return schema_error(part, nullptr,
                            "enum and const are not supported in propertyNames: give the names as properties");
      }
      MOTE_ASSIGN(const std::optional<ExpressionId> content, string_content(branch));
      accepted.push_back(content.value_or(key));
    }
    key = rules_.intersection(key, rules_.choice(std::move(accepted)));
  }
  for (const std::string& other : other_patterns) {
    MOTE_ASSIGN(const ExpressionId left_out, matching(other));
    key = rules_.difference(key, left_out);
  }
  std::vector<ExpressionId> names;
  for (const Member& member : declared) names.push_back(rules_.bytes(json_escaped(member.name)));
  return names.empty() ? key : rules_.difference(key, rules_.choice(std::move(names)));
}

// Built from the end. `after`: what may follow a member; `first`: what may come where no member was written yet.
ExpressionId SchemaCompiler::join(const std::vector<Member>& members, std::optional<ExpressionId> free,
                                  uint32_t min_free, uint32_t max_free) {
  ExpressionId after = space();
  ExpressionId first = rules_.empty();
  if (free.has_value()) {
    const uint32_t more = max_free == kUnbounded ? kUnbounded : max_free - 1;
    const ExpressionId next = rules_.sequence({comma(), *free});
    after = rules_.sequence({rules_.repeat(next, 0, max_free), space()});
    first = rules_.sequence({*free, rules_.repeat(next, 0, more), space()});
    if (min_free == 0) first = rules_.optional(first);
  }
  for (size_t i = members.size(); i-- > 0;) {
    // `first` and `after` both contain `rest`. As a rule it is stored once, or the size would double with each member.
    const RuleId behind = rules_.add_rule();
    rules_.define(behind, after);
    const ExpressionId rest = rules_.rule(behind);
    const ExpressionId member = rules_.sequence({members[i].expression, rest});
    const ExpressionId next = rules_.sequence({comma(), member});
    first = members[i].is_required ? member : rules_.choice({member, first});
    after = members[i].is_required ? next : rules_.choice({next, rest});
  }
  return first;
}

}  // namespace mote::constraints
