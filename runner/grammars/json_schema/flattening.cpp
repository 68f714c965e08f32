#include "runner/grammars/json_schema/flattening.h"

#include <algorithm>
#include <string_view>

#include "runner/grammars/budget.h"

namespace mote::constraints {
namespace {

bool is_choice(std::string_view keyword) { return keyword == "anyOf" || keyword == "oneOf"; }

}  // namespace

Status Flattening::run(const Conjunction& schemas) {
  for (const Schema& schema : schemas) MOTE_RETURN_IF_ERROR(add(schema, ""));
  return {};
}

// `keyword`: the keyword of the enclosing schema that led to this one; "" for the first schemas.
Status Flattening::add(const Schema& schema, const char* keyword) {
  if (schema.json->is_boolean()) {
    is_never |= !schema.json->get<bool>();
    return {};
  }
  MOTE_RETURN_IF_ERROR(schema.document->budget().spend(4 + open_.size() / 4));
  const auto again = std::ranges::find(open_, schema.json, [](const Open& open) { return open.schema.json; });
  if (again != open_.end()) return close_circle(schema, keyword, static_cast<size_t>(again - open_.begin()));
  if (!seen_.insert(schema.json).second) return {};
  MOTE_RETURN_IF_ERROR(check_keywords(schema));
  MOTE_REQUIRE(open_.size() < kMaxNesting, Code::kInvalidArgument,
               "JSON Schema: %s: schemas refer to schemas deeper than %zu levels", schema.pointer().c_str(),
               kMaxNesting);
  open_.push_back({schema, is_choice(keyword)});
  all.push_back(schema);
  MOTE_RETURN_IF_ERROR(follow(schema));
  open_.pop_back();
  return {};
}

Status Flattening::follow(const Schema& schema) {
  if (const Json* reference = find(schema, "$ref")) {
    MOTE_ASSIGN(const Schema target, resolve(schema, reference->get_ref<const std::string&>()));
    MOTE_RETURN_IF_ERROR(add(target, "$ref"));
  }
  if (const Json* parts = find(schema, "allOf")) {
    for (size_t i = 0; i < parts->size(); ++i) MOTE_RETURN_IF_ERROR(add(child(child(schema, "allOf"), i), "allOf"));
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (find(schema, keyword) != nullptr) MOTE_RETURN_IF_ERROR(choose(schema, keyword));
  }
  return {};
}

Status Flattening::choose(const Schema& schema, const char* keyword) {
  const Json* parts = find(schema, keyword);
  const Choice choice{schema, keyword};
  const auto chosen = chosen_.find(parts);
  if (chosen == chosen_.end()) {
    choices.push_back(choice);
    return {};
  }
  const Schema branch = choice.branch(chosen->second);
  made_.push_back(choice);
  MOTE_RETURN_IF_ERROR(add(branch, keyword));
  made_.pop_back();
  return {};
}

// A value that is accepted through a circle of choices is also accepted by a branch that leaves the circle, so the
// choice of the circular branch accepts nothing.
Status Flattening::close_circle(const Schema& schema, const char* keyword, size_t first) {
  const auto is_chosen = [](const Open& open) { return open.is_chosen; };
  if (!is_choice(keyword) && std::none_of(open_.begin() + static_cast<ptrdiff_t>(first) + 1, open_.end(), is_chosen)) {
    return schema_error(
        open_.back().schema, keyword,
        "leads back to " + schema.pointer() + " without a value in between, which then refers to itself only");
  }
  is_never = true;
  circular = made_.back();
  return {};
}

}  // namespace mote::constraints
