#include <algorithm>
#include <unordered_set>

#include "runner/grammars/json_schema/alternatives.h"
#include "runner/grammars/json_schema/compiler.h"
#include "runner/grammars/json_schema/strings.h"
#include "runner/grammars/nfa_builder.h"
#include "runner/grammars/regex.h"

namespace mote::constraints {
namespace {

bool is_false(const Json* value) { return value != nullptr && value->is_boolean() && !value->get<bool>(); }

bool accepts_all(const Json& schema) { return schema.is_boolean() ? schema.get<bool>() : schema.empty(); }

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

// Every name in properties and required, in the order in which they come.
std::vector<std::string> declared_names(const Conjunction& schemas) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> known;
  const auto add = [&](const Schema& schema, const std::string& name) {
    schema.document->budget().count(4 + name.size() / 16);
    schema.document->budget().hold(64 + name.size());
    if (known.insert(name).second) names.push_back(name);
  };
  for (const Schema& schema : schemas) {
    const Json* properties = find(schema, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, unused] : properties->get_ref<const Json::object_t&>()) add(schema, name);
  }
  for (const Schema& schema : schemas) {
    const Json* required = find(schema, "required");
    if (required == nullptr) continue;
    for (const Json& name : *required) add(schema, name.get_ref<const std::string&>());
  }
  return names;
}

bool matches(const Dfa& dfa, std::string_view text) {
  if (dfa.states.empty()) return false;
  uint32_t state = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const std::span<const ByteEdge> edges = dfa.bytes_of(dfa.states[state]);
    const auto edge = std::ranges::lower_bound(edges, byte, {}, &ByteEdge::high);
    if (edge == edges.end() || edge->low > byte) return false;
    state = edge->target;
  }
  return dfa.states[state].is_final;
}

bool is_required(const Conjunction& schemas, const std::string& name) {
  return std::any_of(schemas.begin(), schemas.end(), [&](const Schema& schema) {
    const Json* required = find(schema, "required");
    return required != nullptr && schema.document->contains_text(*required, name);
  });
}

}  // namespace

// Names that no schema declares, and what follows them.
struct FreeKeys {
  std::vector<KeyPattern> patterns{};
  std::vector<ExpressionId> behind{};                           // of each group
  std::map<std::vector<const Json*>, uint32_t> groups_known{};  // by their schemas
};

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
  MOTE_ASSIGN(const std::optional<ExpressionId> free, free_members(schemas, members));
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
  if (most_free > 0) any_free = free;
  if (needs_free && !any_free.has_value()) return rules_.never();
  const ExpressionId body = join(members, any_free, needs_free ? 1 : 0, most_free);
  return rules_.sequence({rules_.bytes("{"), space(), body, rules_.bytes("}")});
}

Result<std::vector<SchemaCompiler::Member>> SchemaCompiler::declared_members(const Conjunction& schemas) {
  std::vector<Member> members;
  for (const std::string& name : declared_names(schemas)) {
    MOTE_RETURN_IF_ERROR(budget_.spend(schemas.size()));
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
    const Json* properties = find(schema, "properties");
    if (const Json* own = properties == nullptr ? nullptr : document_->member(*properties, name); own != nullptr) {
      result.push_back({own, document_.get()});
      is_covered = true;
    }
    if (const Json* patterns = find(schema, "patternProperties")) {
      for (const auto& [pattern, of_pattern] : patterns->get_ref<const Json::object_t&>()) {
        const Result<bool> matches = has_match(pattern, name);
        if (!matches.ok()) return schema_error(schema, "patternProperties", matches.status().message());
        if (!*matches) continue;
        result.push_back({&of_pattern, document_.get()});
        is_covered = true;
      }
    }
    if (!is_covered && find(schema, "additionalProperties") != nullptr)
      result.push_back(child(schema, "additionalProperties"));
  }
  return result;
}

// Whether the pattern, as JSON Schema means it, has a match in the name.
Result<bool> SchemaCompiler::has_match(const std::string& pattern, const std::string& name) {
  auto known = name_patterns_.find(pattern);
  if (known == name_patterns_.end()) {
    Rules rules(budget_);
    const RuleId root = rules.add_rule();
    MOTE_ASSIGN(const ExpressionId expression, append_regex(pattern, {.searches = true, .dot_is_any = true}, rules));
    rules.define(root, expression);
    Determinizing determinizing(budget_);
    Building building(rules, determinizing);
    MOTE_ASSIGN(const Nfa nfa, make_nfa(root, {false}, building));
    MOTE_ASSIGN(Dfa dfa, determinize(nfa, determinizing));
    budget_.hold(dfa.num_bytes() + pattern.size() + 128);
    known = name_patterns_.emplace(pattern, std::move(dfa)).first;
  }
  MOTE_RETURN_IF_ERROR(budget_.spend(2 + name.size()));
  return matches(known->second, name);
}

// Members whose names match a pattern, and those of any other name; nullopt: there can be none.
Result<std::optional<ExpressionId>> SchemaCompiler::free_members(const Conjunction& schemas,
                                                                 const std::vector<Member>& declared) {
  FreeKeys keys;
  MOTE_RETURN_IF_ERROR(add_patterns(schemas, keys));
  const bool has_others = has_free_members(schemas);
  if (keys.behind.empty() && !has_others) return std::optional<ExpressionId>();
  const ExpressionId any = encode_json_characters(rules_, {{0, kLastCodePoint}});
  const ExpressionId any_name = rules_.repeat(any, 0, kUnbounded);
  MOTE_ASSIGN(const std::optional<ExpressionId> wrong_names, names_to_leave_out(schemas, any_name));
  if (wrong_names.has_value()) keys.patterns.push_back({*wrong_names, false, false, Rules::kLeftOut});
  if (!declared.empty()) {
    std::vector<std::string> names;
    for (const Member& member : declared) names.push_back(json_escaped(member.name));
    keys.patterns.push_back({rules_.texts(names), false, false, Rules::kLeftOut});
  }
  Conjunction of_others;
  for (const Schema& schema : schemas) {
    if (find(schema, "additionalProperties") != nullptr) of_others.push_back(child(schema, "additionalProperties"));
  }
  if (keys.patterns.empty())
    return std::optional(rules_.sequence({rules_.bytes("\""), any_name, free_member(std::move(of_others))}));
  if (has_others) keys.behind.push_back(free_member(std::move(of_others)));
  const ExpressionId keyed = rules_.keyed(std::move(keys.patterns), any, std::move(keys.behind), !has_others);
  return std::optional(rules_.rule(rule_for(schemas, rules_.sequence({rules_.bytes("\""), keyed}))));
}

// Groups the patterns of all schemas by what is asked of their values.
Status SchemaCompiler::add_patterns(const Conjunction& schemas, FreeKeys& keys) {
  RegexOptions options;
  options.searches = true;
  options.encode = encode_json_characters;
  std::unordered_set<std::string_view> known;
  for (const Schema& from : schemas) {
    const Json* patterns = find(from, "patternProperties");
    if (patterns == nullptr) continue;
    for (const auto& [pattern, unused] : patterns->get_ref<const Json::object_t&>()) {
      MOTE_RETURN_IF_ERROR(budget_.spend(8 * schemas.size()));
      if (!known.insert(pattern).second) continue;
      Conjunction of_member;
      std::vector<const Json*> group_key;
      bool is_never = false;
      for (const Schema& schema : schemas) {
        const Json* own = find(schema, "patternProperties");
        const Json* value = own == nullptr ? nullptr : document_->member(*own, pattern);
        if (value == nullptr) value = find(schema, "additionalProperties");
        if (value == nullptr) continue;
        is_never |= is_false(value);
        of_member.push_back({value, document_.get()});
        if (!accepts_all(*value)) group_key.push_back(document_->first_like(*value));
      }
      uint32_t group = Rules::kLeftOut;
      if (!is_never) {
        const auto [found, is_new] =
            keys.groups_known.try_emplace(std::move(group_key), static_cast<uint32_t>(keys.behind.size()));
        group = found->second;
        if (is_new) keys.behind.push_back(free_member(std::move(of_member)));
      }
      const auto branches = append_regex_branches(pattern, options, rules_);
      MOTE_RETURN_IF_ERROR(budget_.status());
      if (!branches.ok()) return schema_error(from, "patternProperties", branches.status().message());
      for (const RegexBranch& branch : *branches)
        keys.patterns.push_back({branch.body, branch.is_open_before, branch.is_open_behind, group});
    }
  }
  return {};
}

// The end of a name, and its value.
ExpressionId SchemaCompiler::free_member(Conjunction schemas) {
  return rules_.sequence({rules_.bytes("\""), colon(), value_of(std::move(schemas))});
}

// Names that propertyNames does not accept; nullopt: none.
Result<std::optional<ExpressionId>> SchemaCompiler::names_to_leave_out(const Conjunction& schemas,
                                                                       ExpressionId any_name) {
  std::optional<ExpressionId> accepted;
  for (const Schema& schema : schemas) {
    if (find(schema, "propertyNames") == nullptr) continue;
    std::vector<ExpressionId> branches;
    MOTE_RETURN_IF_ERROR(
        for_each_alternative({child(schema, "propertyNames")}, [&](const Conjunction& branch) -> Status {
          for (const Schema& part : branch) {
            if (find(part, "enum") == nullptr && find(part, "const") == nullptr) continue;
            return schema_error(part, nullptr,
                                "enum and const are not supported in propertyNames: give the names as properties");
          }
          MOTE_ASSIGN(const std::optional<ExpressionId> content, string_content(branch));
          branches.push_back(content.value_or(any_name));
          return budget_.status();
        }));
    const ExpressionId names = rules_.choice(std::move(branches));
    accepted = accepted.has_value() ? rules_.intersection(*accepted, names) : names;
  }
  if (!accepted.has_value()) return accepted;
  return std::optional(rules_.difference(any_name, *accepted));
}

// Built from the end. `after`: what may follow a member; `firsts`: what may come where no member was written yet.
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
  std::vector<ExpressionId> firsts = {first};
  for (size_t i = members.size(); i-- > 0;) {
    // What comes first and what comes after others both contain `rest`. As a rule it is stored once, or the size would
    // double with each member.
    const RuleId behind = rules_.add_rule();
    rules_.define(behind, after);
    const ExpressionId rest = rules_.rule(behind);
    const ExpressionId member = rules_.sequence({members[i].expression, rest});
    const ExpressionId next = rules_.sequence({comma(), member});
    if (members[i].is_required) firsts.clear();
    firsts.push_back(member);
    after = members[i].is_required ? next : rules_.choice({next, rest});
  }
  return rules_.choice(std::move(firsts));
}

}  // namespace mote::constraints
