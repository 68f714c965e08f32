#include "runner/grammars/json_schema/disjoint.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runner/grammars/json_schema/flattening.h"

namespace mote::constraints {
namespace {

constexpr int kMaxDepth = 4;
constexpr size_t kMaxPairs = 600'000;

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

bool share_a_value(const std::vector<const Json*>& these, const std::vector<const Json*>& those) {
  return std::any_of(these.begin(), these.end(), [&](const Json* value) {
    return std::any_of(those.begin(), those.end(), [value](const Json* other) { return *value == *other; });
  });
}

bool have_other_types(const std::vector<const Json*>& values, const Conjunction& schemas) {
  const uint32_t types = common_types(schemas);
  return std::none_of(values.begin(), values.end(),
                      [types](const Json* value) { return (type_of_value(*value) & types) != 0; });
}

}  // namespace

bool Disjointness::holds(const Schema& a, const Schema& b, int depth) {
  if (depth > kMaxDepth || known_.size() > kMaxPairs) return false;
  const auto [found, is_new] = known_.try_emplace({a.json, b.json}, false);
  if (is_new) found->second = find_out(a, b, depth);
  return found->second;
}

// All that a schema asks for; nullopt: it accepts nothing. A schema that cannot be flattened gives an empty
// conjunction, which accepts anything.
const std::optional<Conjunction>& Disjointness::parts_of(const Schema& schema) {
  const auto [found, is_new] = parts_.try_emplace(schema.json, Conjunction{});
  if (!is_new) return found->second;
  const Flattening::Chosen none;
  Flattening flat(document_, none);
  if (!flat.run({schema}).ok()) return found->second;
  if (flat.is_never)
    found->second.reset();
  else
    found->second = std::move(flat.all);
  return found->second;
}

bool Disjointness::find_out(const Schema& a, const Schema& b, int depth) {
  const std::optional<Conjunction>& left = parts_of(a);
  const std::optional<Conjunction>& right = parts_of(b);
  if (!left.has_value() || !right.has_value()) return true;
  const uint32_t types = common_types(*left) & common_types(*right);
  if (types == 0) return true;
  const auto these = named_values(*left);
  const auto those = named_values(*right);
  if (these.has_value() && those.has_value()) return !share_a_value(*these, *those);
  if (these.has_value() && have_other_types(*these, *right)) return true;
  if (those.has_value() && have_other_types(*those, *left)) return true;
  return types == kObject && have_different_properties(*left, *right, depth);
}

bool Disjointness::have_different_properties(const Conjunction& a, const Conjunction& b, int depth) {
  for (const Schema& left : a) {
    const Json* properties = find(left, "properties");
    if (properties == nullptr) continue;
    for (const auto& [name, unused] : properties->items()) {
      if (!requires_property(a, name) || !requires_property(b, name)) continue;
      for (const Schema& right : b) {
        const Json* others = find(right, "properties");
        if (others == nullptr || !others->contains(name)) continue;
        if (holds(child(child(left, "properties"), name), child(child(right, "properties"), name), depth + 1))
          return true;
      }
    }
  }
  return false;
}

}  // namespace mote::constraints
