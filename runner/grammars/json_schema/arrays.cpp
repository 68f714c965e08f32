#include <algorithm>

#include "runner/grammars/json_schema/compiler.h"

namespace mote::constraints {
namespace {

// The schema of one item, which is also stored in `result`; nullptr: any value is accepted.
const Json* item_schema(const Schema& schema, size_t index, Schema* result) {
  const Json* prefix = find(schema, "prefixItems");
  if (prefix != nullptr && index < prefix->size()) {
    *result = child(child(schema, "prefixItems"), index);
    return result->json;
  }
  if (find(schema, "items") == nullptr) return nullptr;
  *result = child(schema, "items");
  return result->json;
}

}  // namespace

Result<ExpressionId> SchemaCompiler::array(const Conjunction& schemas) {
  uint32_t fewest = 0;
  uint32_t most = kUnbounded;
  size_t num_prefix = 0;
  bool has_items = false;
  for (const Schema& schema : schemas) {
    fewest = std::max(fewest, count_of(schema, "minItems", 0));
    most = std::min(most, count_of(schema, "maxItems", kUnbounded));
    if (const Json* prefix = find(schema, "prefixItems")) num_prefix = std::max(num_prefix, prefix->size());
    has_items |= find(schema, "items") != nullptr;
  }
  for (const Schema& schema : schemas) {
    const Json* unique = find(schema, "uniqueItems");
    if (unique != nullptr && *unique == true && most > 1) {
      return schema_error(
          schema, "uniqueItems",
          "this is not supported, as a grammar cannot compare items: leave it out and check afterwards");
    }
    const Json* unevaluated = find(schema, "unevaluatedItems");
    if (unevaluated == nullptr) continue;
    if (*unevaluated != false) return schema_error(schema, "unevaluatedItems", "must be false");
    if (!has_items) most = std::min(most, static_cast<uint32_t>(num_prefix));
  }
  const auto item = [&](size_t index) {
    Conjunction of_item;
    for (const Schema& schema : schemas) {
      if (Schema found; item_schema(schema, index, &found) != nullptr) of_item.push_back(std::move(found));
    }
    return value_of(std::move(of_item));
  };
  // Where only prefixItems is given, the list ends with them unless it must be longer.
  if (num_prefix > 0 && !has_items) most = std::min(most, std::max(fewest, static_cast<uint32_t>(num_prefix)));
  if (fewest > most) return rules_.never();
  num_prefix = std::min<size_t>(num_prefix, most);

  // Built from the end: an optional item encloses all items that follow it.
  const auto after_prefix = static_cast<uint32_t>(num_prefix);
  const uint32_t at_least = fewest > after_prefix ? fewest - after_prefix : 0;
  const uint32_t at_most = most == kUnbounded ? kUnbounded : most - after_prefix;
  ExpressionId rest = rules_.empty();
  if (num_prefix == 0 && at_most > 0) {
    const uint32_t more = at_most == kUnbounded ? kUnbounded : at_most - 1;
    const ExpressionId next = item(0);
    rest = rules_.sequence(
        {next, rules_.repeat(rules_.sequence({comma(), next}), at_least > 0 ? at_least - 1 : 0, more), space()});
    if (at_least == 0) rest = rules_.optional(rest);
  } else if (num_prefix > 0) {
    if (at_most > 0) rest = rules_.repeat(rules_.sequence({comma(), item(num_prefix)}), at_least, at_most);
    for (size_t i = num_prefix; i-- > 0;) {
      rest = rules_.sequence(i == 0 ? std::vector<ExpressionId>{item(i), rest, space()}
                                    : std::vector<ExpressionId>{comma(), item(i), rest});
      if (i >= fewest) rest = rules_.optional(rest);
    }
  }
  return rules_.sequence({rules_.bytes("["), space(), rest, rules_.bytes("]")});
}

}  // namespace mote::constraints
