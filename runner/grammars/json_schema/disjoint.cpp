#include "runner/grammars/json_schema/disjoint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mote::constraints {
namespace {

constexpr int kMaxDepth = 4;

// The values of enum or const.
struct NamedValues {
  const Json* list = nullptr;      // of enum
  const Json* constant = nullptr;  // of const
  uint32_t types = 0;

  size_t size() const { return list != nullptr ? list->size() : 1; }
  const Json& operator[](size_t index) const { return list != nullptr ? (*list)[index] : *constant; }
};

// What can be told of a schema.
struct Facts {
  bool is_never = false;
  Conjunction parts{};  // all that it asks for; none: it accepts anything, or cannot be told
  uint32_t types = 0;   // that it accepts
  std::optional<NamedValues> values{};
};

bool requires_property(const Conjunction& schemas, const std::string& name) {
  return std::any_of(schemas.begin(), schemas.end(), [&](const Schema& schema) {
    const Json* required = find(schema, "required");
    return required != nullptr && schema.document->contains_text(*required, name);
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

std::optional<NamedValues> named_values(const Conjunction& schemas) {
  for (const Schema& schema : schemas) {
    NamedValues values{find(schema, "enum"), find(schema, "const")};
    if (values.constant != nullptr) values.list = nullptr;
    if (values.list == nullptr && values.constant == nullptr) continue;
    schema.document->budget().count(values.size());
    for (size_t i = 0; i < values.size(); ++i) values.types |= type_of_value(values[i]);
    return values;
  }
  return std::nullopt;
}

// Remembers what it has found out.
class Disjointness {
 public:
  explicit Disjointness(Document& document) : document_(document) {}

  bool holds(const Schema& a, const Schema& b) { return holds(a, b, 0); }
  // Whether it can be told at once, without a look at each pair, that no two have a value in common.
  bool holds_for_all(const std::vector<Schema>& branches);

 private:
  bool holds(const Schema& a, const Schema& b, int depth);
  bool find_out(const Schema& a, const Schema& b, int depth);
  const Facts& facts_of(const Schema& schema);
  bool share_a_value(const NamedValues& a, const NamedValues& b);
  bool have_different_properties(const Conjunction& a, const Conjunction& b, int depth);
  bool add_new_values(const NamedValues& values, JsonSet& known);
  bool have_different_tags(const std::vector<const Facts*>& objects);
  bool have_different_values(const std::vector<const Facts*>& objects, const std::string& name);

  Document& document_;
  std::map<std::pair<const Json*, const Json*>, bool> known_;
  std::unordered_map<const Json*, Facts> facts_;
};

bool Disjointness::holds(const Schema& a, const Schema& b, int depth) {
  document_.budget().count(16);
  if (depth > kMaxDepth || document_.budget().is_spent()) return false;
  const auto [found, is_new] = known_.try_emplace({a.json, b.json}, false);
  if (!is_new) return found->second;
  document_.budget().hold(64);
  const bool result = find_out(a, b, depth);
  return known_[{a.json, b.json}] = result;
}

// A schema that cannot be flattened accepts anything, as far as is known.
const Facts& Disjointness::facts_of(const Schema& schema) {
  const auto [found, is_new] = facts_.try_emplace(schema.json);
  Facts& facts = found->second;
  if (!is_new) return facts;
  document_.budget().hold(sizeof(Facts) + 64);
  const Flattening::Chosen none;
  Flattening flat(none);
  if (flat.run({schema}).ok()) {
    facts.is_never = flat.is_never;
    facts.parts = std::move(flat.all);
  }
  facts.types = common_types(facts.parts);
  facts.values = named_values(facts.parts);
  return facts;
}

bool Disjointness::share_a_value(const NamedValues& a, const NamedValues& b) {
  if (a.size() > b.size()) return share_a_value(b, a);
  for (size_t i = 0; i < a.size(); ++i) {
    if (b.list != nullptr ? document_.contains_value(*b.list, a[i]) : *b.constant == a[i]) return true;
  }
  return false;
}

bool Disjointness::find_out(const Schema& a, const Schema& b, int depth) {
  const Facts& left = facts_of(a);
  const Facts& right = facts_of(b);
  if (left.is_never || right.is_never) return true;
  const uint32_t types = left.types & right.types;
  if (types == 0) return true;
  if (left.values.has_value() && right.values.has_value()) return !share_a_value(*left.values, *right.values);
  if (left.values.has_value() && (left.values->types & right.types) == 0) return true;
  if (right.values.has_value() && (right.values->types & left.types) == 0) return true;
  return types == kObject && have_different_properties(left.parts, right.parts, depth);
}

bool Disjointness::have_different_properties(const Conjunction& a, const Conjunction& b, int depth) {
  for (const Schema& left : a) {
    const Json* properties = find(left, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, property] : properties->get_ref<const Json::object_t&>()) {
      document_.budget().count(4);
      if (document_.budget().is_spent()) return false;
      if (!requires_property(a, name) || !requires_property(b, name)) continue;
      for (const Schema& right : b) {
        const Json* others = find(right, "properties");
        const Json* other = others == nullptr ? nullptr : document_.member(*others, name);
        if (other != nullptr && holds({&property, &document_}, {other, &document_}, depth + 1)) return true;
      }
    }
  }
  return false;
}

bool Disjointness::add_new_values(const NamedValues& values, JsonSet& known) {
  document_.budget().count(4 * values.size());
  std::vector<const Json*> added;  // a value that one branch names twice is not shared
  for (size_t i = 0; i < values.size() && !document_.budget().is_spent(); ++i) {
    if (known.contains(&values[i])) return false;
    added.push_back(&values[i]);
  }
  known.insert(added.begin(), added.end());
  return true;
}

bool Disjointness::holds_for_all(const std::vector<Schema>& branches) {
  JsonSet values;
  uint32_t value_types = 0;
  uint32_t other_types = 0;
  std::vector<const Facts*> objects;
  for (const Schema& branch : branches) {
    const Facts& facts = facts_of(branch);
    if (document_.budget().is_spent()) return false;
    if (facts.is_never) continue;
    if (facts.values.has_value()) {
      value_types |= facts.values->types;
      if (!add_new_values(*facts.values, values)) return false;
      continue;
    }
    const bool is_object = facts.types == kObject;
    if (is_object)
      objects.push_back(&facts);
    else if ((facts.types & (other_types | kObject)) != 0)
      return false;
    other_types |= facts.types;
  }
  return (value_types & other_types) == 0 && have_different_tags(objects);
}

// Whether there is a property that all require, with other values in each.
bool Disjointness::have_different_tags(const std::vector<const Facts*>& objects) {
  if (objects.size() < 2) return true;
  for (const Schema& schema : objects[0]->parts) {
    const Json* properties = find(schema, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, unused] : properties->get_ref<const Json::object_t&>()) {
      if (document_.budget().is_spent()) return false;
      if (have_different_values(objects, name)) return true;
    }
  }
  return false;
}

bool Disjointness::have_different_values(const std::vector<const Facts*>& objects, const std::string& name) {
  JsonSet values;
  for (const Facts* facts : objects) {
    document_.budget().count(4);
    if (!requires_property(facts->parts, name)) return false;
    const Facts* named = nullptr;
    for (const Schema& part : facts->parts) {
      const Json* properties = find(part, "properties");
      const Json* property = properties == nullptr ? nullptr : document_.member(*properties, name);
      if (property == nullptr) continue;
      const Facts& found = facts_of({property, &document_});
      if (found.values.has_value()) named = &found;
    }
    if (named == nullptr || !add_new_values(*named->values, values)) return false;
  }
  return true;
}

}  // namespace

Status check_disjoint(const Choice& choice) {
  Document& document = *choice.schema.document;
  Disjointness disjointness(document);
  std::vector<Schema> branches;
  for (size_t i = 0; i < choice.branches()->size(); ++i) branches.push_back(choice.branch(i));
  if (disjointness.holds_for_all(branches)) return document.budget().status();
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (disjointness.holds(branches[i], branches[j])) continue;
      MOTE_RETURN_IF_ERROR(document.budget().status());
      return schema_error(choice.schema, choice.keyword,
                          format("a value may be accepted by branch %zu and by branch %zu: give them different types, "
                                 "or a required property with a different const, or use anyOf",
                                 j, i));
    }
  }
  return {};
}

}  // namespace mote::constraints
