// JSON as a tree that goes without allocating. nlohmann's own keeps its children in a list while it goes, and ends the
// process if there is no memory for that, so no model is opened through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mote {

struct JsonTree {
  enum class Kind : uint8_t { kNull, kBoolean, kInteger, kFloat, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  double number = 0.0;             // of an integer or a float; 1 for true
  std::string text;                // of a string; of a number, its digits
  std::vector<std::string> names;  // of an object's children
  std::vector<JsonTree> children;

  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kFloat; }
  // nullptr if there is none; of several the last.
  const JsonTree* find(std::string_view name) const;
  std::string dump() const;
};

// nullopt: not JSON, not UTF-8, or lists and objects nest deeper than max_depth. Throws std::bad_alloc.
std::optional<JsonTree> parse_json_tree(std::string_view json, size_t max_depth);

}  // namespace mote
