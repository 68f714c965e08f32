// What several schemas ask for together, once references, allOf and the branches chosen so far are followed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/status.h"
#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

// An anyOf or oneOf, of whose branches one is to be chosen.
struct Choice {
  Schema schema;
  const char* keyword = nullptr;

  const Json* branches() const { return find(schema, keyword); }
  Schema branch(size_t index) const { return child(child(schema, keyword), index); }
};

class Flattening {
 public:
  // For each anyOf and oneOf the branch that was chosen.
  using Chosen = std::map<const Json*, size_t>;

  explicit Flattening(const Chosen& chosen) : chosen_(chosen) {}

  // Errors: kInvalidArgument, also where a schema refers to itself and there is neither a value nor a choice in
  // between.
  Status run(const Conjunction& schemas);

  Conjunction all{};
  std::vector<Choice> choices{};     // those that are still to be made
  std::optional<Choice> circular{};  // one whose chosen branch leads back to its schema
  bool is_never = false;             // a schema is false, or a choice is circular

 private:
  struct Open {
    Schema schema;
    bool is_chosen;  // reached as a branch of anyOf or oneOf
  };

  Status add(const Schema& schema, const char* keyword);
  Status follow(const Schema& schema);
  Status choose(const Schema& schema, const char* keyword);
  Status close_circle(const Schema& schema, const char* keyword, size_t first);

  const Chosen& chosen_;
  std::vector<Open> open_;
  std::vector<Choice> made_;  // the choices on the path to the schema that is walked
  std::set<const Json*> seen_;
};

}  // namespace mote::constraints
