// Whether two schemas surely have no value in common.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// Remembers what it has found out. Cost: bounded over the life of the object. Schemas for which that does not suffice
// count as not disjoint.
class Disjointness {
 public:
  explicit Disjointness(const Json& document) : document_(document) {}

  bool holds(const Schema& a, const Schema& b) { return holds(a, b, 0); }

 private:
  bool holds(const Schema& a, const Schema& b, int depth);
  bool find_out(const Schema& a, const Schema& b, int depth);
  const std::optional<Conjunction>& parts_of(const Schema& schema);
  bool have_different_properties(const Conjunction& a, const Conjunction& b, int depth);

  const Json& document_;
  std::map<std::pair<const Json*, const Json*>, bool> known_;
  std::map<const Json*, std::optional<Conjunction>> parts_;  // nullopt: the schema accepts nothing
};

}  // namespace mote::constraints
