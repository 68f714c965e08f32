// JSON read into events or a tree, and strings written as JSON. No destructor allocates: that of nlohmann's tree does,
// and ends the process if there is no memory, so what opens a model or answers an app does not use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mote {

// What read_json meets, in order. May throw.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  // digits: as it is written. is_integer: without a point and an exponent, in 64 bits with a sign or without
  virtual void number(std::string_view digits, double value, bool is_integer) = 0;
  virtual void string(std::string text) = 0;
  virtual bool open(bool is_object) = 0;  // false: no further
  virtual void key(std::string name) = 0;
  virtual void close() = 0;
};

// Errors: kInvalidArgument if the text is not JSON or not UTF-8, a number is too large for a double, or `events` goes
// no further.
Status read_json(std::string_view json, JsonEvents& events);

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

// A byte of a string, as JSON writes it.
void append_json_escaped(std::string& json, char c);
// The text in quotes; what is not UTF-8 is replaced.
std::string json_string(std::string_view text);

}  // namespace mote
