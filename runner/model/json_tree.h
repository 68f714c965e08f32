// JSON as a tree whose destructor does not allocate. That of nlohmann's tree does, and ends the process if there is no
// memory, so what opens a model does not use it.
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
  // The member of that name, the last if there are several; nullptr if there is none.
  const JsonTree* find(std::string_view name) const;
  std::string dump() const;
};

// nullopt: not JSON, not UTF-8, or lists and objects nest deeper than max_depth. Throws std::bad_alloc.
std::optional<JsonTree> parse_json_tree(std::string_view json, size_t max_depth);

}  // namespace mote
