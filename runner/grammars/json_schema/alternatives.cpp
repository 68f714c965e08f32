#include "runner/grammars/json_schema/alternatives.h"

#include <set>
#include <vector>

#include "runner/grammars/json_schema/disjoint.h"
#include "runner/grammars/json_schema/flattening.h"

namespace mote::constraints {

Status for_each_alternative(const Conjunction& schemas, const std::function<Status(const Conjunction&)>& visit) {
  struct Choosing {
    Choice choice;
    size_t next;  // the branch that is tried next
  };
  Flattening::Chosen chosen;
  std::vector<Choosing> open;
  std::set<const Json*> checked;
  std::optional<Choice> circular;
  bool is_any = false;
  while (true) {
    Flattening flat(chosen);
    MOTE_RETURN_IF_ERROR(flat.run(schemas));
    if (flat.circular.has_value()) circular = flat.circular;
    for (const Choice& choice : flat.choices) {
      const bool is_new = checked.insert(choice.branches()).second;
      if (is_new && choice.keyword[0] == 'o') MOTE_RETURN_IF_ERROR(check_disjoint(choice));
    }
    if (!flat.is_never && flat.choices.empty()) {
      is_any = true;
      MOTE_RETURN_IF_ERROR(visit(flat.all));
    } else if (!flat.is_never) {
      open.push_back({flat.choices.front(), 0});
    }
    for (; !open.empty() && open.back().next == open.back().choice.branches()->size(); open.pop_back())
      chosen.erase(open.back().choice.branches());
    if (open.empty()) break;
    chosen[open.back().choice.branches()] = open.back().next++;
  }
  if (is_any || !circular.has_value()) return {};
  return schema_error(circular->schema, circular->keyword,
                      "every branch is false or leads back to the schema itself, so that no value is accepted");
}

}  // namespace mote::constraints
