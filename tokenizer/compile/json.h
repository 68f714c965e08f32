// Typed reading of a tokenizer.json. Every error names the field, what it is and what would be accepted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mote::tokenizer {

using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 32;

// Parses UTF-8 JSON. Errors: kInvalidTokenizer if it is not JSON or nests deeper than kMaxJsonDepth.
Result<Json> parse_json(std::string_view text);

// A JSON value and where it stands in the file ("pre_tokenizer.pretokenizers[1]"), for messages. Does not own the
// value.
class Field {
 public:
  Field(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const { return *json_; }
  bool is_null() const { return json_->is_null(); }

  // The member `key`; a null field if it is absent.
  Field operator[](const char* key) const;
  Field operator[](size_t index) const;

  // The text of the member "type"; "" if it is absent or no text.
  std::string type() const;
  Result<std::string> text() const;
  Result<bool> boolean(bool if_absent) const;
  // A string of one character.
  Result<char32_t> character() const;
  Result<double> number() const;
  Result<int64_t> integer(int64_t low, int64_t high) const;
  Status require_object() const;
  Status require_array() const;
  // Absent, null, "" or 0: the feature that the field asks for is off.
  Status require_off() const;

  // kInvalidTokenizer: "<path> = <value>: must be <accepted>".
  Status error(const std::string& accepted) const;

 private:
  const Json* json_;
  std::string path_;
};

}  // namespace mote::tokenizer
