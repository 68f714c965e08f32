// A JSON Schema as a document: read within a budget, with what it has found out about its parts.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "runner/grammars/work_budget.h"

namespace mote::constraints {

using Json = nlohmann::ordered_json;

// By what they are worth: 1 and 1.0 are the same.
struct JsonHash {
  size_t operator()(const Json* value) const;
};
struct JsonEqual {
  bool operator()(const Json* a, const Json* b) const { return *a == *b; }
};
using JsonSet = std::unordered_set<const Json*, JsonHash, JsonEqual>;

// Looking something up costs the same in large objects and lists as in small ones. The budget outlives it, and counts
// what is read and looked up. Thread safety: one thread.
class Document {
 public:
  // Errors: kInvalidArgument if the text is no JSON, is nested too deep or is too large.
  static Result<std::unique_ptr<Document>> read(std::string_view source, WorkBudget& budget);

  const Json& root() const { return root_; }
  WorkBudget& budget() const { return budget_; }

  // The value of a key; nullptr: `value` is no object or does not have it.
  const Json* member(const Json& value, std::string_view key);
  bool contains_text(const Json& texts, const std::string& text);
  bool contains_value(const Json& values, const Json& value);
  // The first value like this one that was asked about.
  const Json* first_like(const Json& value);
  // Schemas whose keywords have been found to be right.
  bool is_checked(const Json& schema) const { return checked_.contains(&schema); }
  void set_checked(const Json& schema) { checked_.insert(&schema); }

  // Where a reference was found to lead; nullptr: not known yet.
  const Json*& target_of(const Json& reference) { return targets_[&reference]; }

  // Where a value of the document stands: "#/properties/a". Cost: all of the document, so this is for errors.
  std::string pointer_to(const Json* value) const;

 private:
  explicit Document(WorkBudget& budget) : budget_(budget) {}

  WorkBudget& budget_;
  Json root_;
  size_t num_values_ = 0;
  std::unordered_map<const Json*, std::unordered_map<std::string_view, const Json*>> members_;  // of large objects
  std::unordered_map<const Json*, std::unordered_set<std::string_view>> texts_;
  std::unordered_map<const Json*, JsonSet> values_;
  JsonSet alike_;
  std::unordered_map<const Json*, const Json*> first_like_;
  std::unordered_set<const Json*> checked_;
  std::unordered_map<const Json*, const Json*> targets_;
};

}  // namespace mote::constraints
