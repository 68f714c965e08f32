// JSON read into events or a tree, and written. No destructor allocates: that of nlohmann's tree does,
// and ends the process if there is no memory, so what opens a model or answers an app does not use it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// JSON as it is written: JsonText{{"name", value}, ..} is an object.
class JsonText {
 public:
  using Members = std::initializer_list<std::pair<std::string_view, JsonText>>;

  // NOLINTBEGIN(google-explicit-constructor)
  JsonText(std::nullptr_t);
  JsonText(bool value);
  JsonText(std::string_view value);
  JsonText(const std::string& value) : JsonText(std::string_view(value)) {}
  JsonText(const char* value) : JsonText(std::string_view(value)) {}
  template <std::signed_integral Value>
  JsonText(Value value) : text_(number(static_cast<int64_t>(value))) {}
  template <std::unsigned_integral Value>
  JsonText(Value value) : text_(number(static_cast<uint64_t>(value))) {}
  template <std::floating_point Value>
  JsonText(Value value) : text_(number(static_cast<double>(value))) {}
  JsonText(Members members);
  template <typename Item>
  JsonText(const std::vector<Item>& items) : JsonText(array()) {
    for (const Item& item : items) push_back(item);
  }
  template <typename Value>
  JsonText(const std::map<std::string, Value>& members) : JsonText(object()) {
    for (const auto& [name, value] : members) add(name, value);
  }
  // NOLINTEND(google-explicit-constructor)
  static JsonText array();
  static JsonText object();
  // What is JSON as it is.
  static JsonText raw(std::string text);

  void push_back(const JsonText& item);
  void add(std::string_view name, const JsonText& value);
  void add(Members members);
  const std::string& dump() const { return text_; }

 private:
  static std::string number(int64_t value);
  static std::string number(uint64_t value);
  static std::string number(double value);  // null for what is not finite
  void append(std::string_view item);

  std::string text_;
};

// An object with a line for each member, for files that people read.
std::string json_lines(const std::vector<std::pair<std::string_view, JsonText>>& members);

// A byte of a string, as JSON writes it.
void append_json_escaped(std::string& json, char c);
// The text in quotes; what is not UTF-8 is replaced.
std::string json_string(std::string_view text);

}  // namespace mote
