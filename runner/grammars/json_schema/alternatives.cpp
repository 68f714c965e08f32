#include "runner/grammars/json_schema/alternatives.h"

#include <algorithm>
#include <set>

#include "runner/grammars/json_schema/disjoint.h"
#include "runner/grammars/json_schema/flattening.h"

namespace mote::constraints {
namespace {

constexpr size_t kMaxAlternatives = 2000;

Status check_disjoint(const Json& document, const Choice& choice) {
  Disjointness disjointness(document);
  for (size_t i = 0; i < choice.branches.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (disjointness.holds(choice.branches[i], choice.branches[j])) continue;
      return schema_error(choice.schema, choice.keyword,
                          format("a value may be accepted by branch %zu and by branch %zu: give them different types, "
                                 "or a required property "
                                 "with a different const, or use anyOf",
                                 j, i));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Conjunction>> alternatives(const Json& document, const Conjunction& schemas) {
  std::vector<Conjunction> results;
  std::vector<Flattening::Chosen> waiting(1);
  std::set<const Json*> checked;
  std::optional<Choice> circular;
  for (size_t work = 0; !waiting.empty(); ++work) {
    MOTE_REQUIRE(work < kMaxAlternatives, Code::kInvalidArgument,
                 "JSON Schema: %s: anyOf and oneOf together have more than %zu combinations",
                 schemas.empty() ? "#" : schemas[0].pointer.c_str(), kMaxAlternatives);
    const Flattening::Chosen chosen = std::move(waiting.back());
    waiting.pop_back();
    Flattening flat(document, chosen);
    MOTE_RETURN_IF_ERROR(flat.run(schemas));
    if (flat.circular.has_value()) circular = flat.circular;
    for (const Choice& choice : flat.choices) {
      const bool is_new = checked.insert(find(choice.schema, choice.keyword)).second;
      if (is_new && choice.keyword[0] == 'o') MOTE_RETURN_IF_ERROR(check_disjoint(document, choice));
    }
    if (flat.is_never) continue;
    if (flat.choices.empty()) {
      results.push_back(std::move(flat.all));
      continue;
    }
    const Choice& choice = flat.choices.front();
    for (size_t branch = choice.branches.size(); branch-- > 0;) {
      waiting.push_back(chosen);
      waiting.back().emplace(find(choice.schema, choice.keyword), branch);
    }
  }
  if (results.empty() && circular.has_value()) {
    return schema_error(circular->schema, circular->keyword,
                        "every branch is false or leads back to the schema itself, so that no value is accepted");
  }
  return results;
}

}  // namespace mote::constraints
