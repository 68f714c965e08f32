// A JSON Schema as it was given: its parts by JSON pointer, and what several of them ask for together.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "runner/grammars/json_schema/document.h"

namespace mote::constraints {

// One schema of the document.
struct Schema {
  const Json* json = nullptr;
  Document* document = nullptr;

  std::string pointer() const { return document->pointer_to(json); }  // for errors
};

// Schemas that must all accept a value; if there are none, any value is accepted.
using Conjunction = std::vector<Schema>;

enum JsonType : uint32_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,  // with a fraction or not
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = kNull | kBoolean | kNumber | kString | kArray | kObject,
};

// An error such as "JSON Schema: #/properties/a/type = 3: must be ...".
Status schema_error(const Schema& at, const char* keyword, const std::string& message);

// A part of a schema: schema.json->at(keyword), which exists.
Schema child(const Schema& schema, const char* keyword);
Schema child(const Schema& schema, const std::string& key);
Schema child(const Schema& schema, size_t index);

// The value of a keyword; nullptr: the schema does not have it.
const Json* find(const Schema& schema, const char* keyword);

// Checks, once for each schema, that every keyword is one that is understood, with a value of the right kind.
// Errors: kInvalidArgument.
Status check_keywords(const Schema& schema);

// The value of a keyword such as minLength; `otherwise` if the schema does not have it.
uint32_t count_of(const Schema& schema, const char* keyword, uint32_t otherwise);

// The types that the schema's `type` allows; all of them if it has none.
uint32_t types_of(const Schema& schema);
uint32_t type_of_value(const Json& value);

// The schema that "#/..." names. Errors: kInvalidArgument.
Result<Schema> resolve(const Schema& from, const std::string& reference);

}  // namespace mote::constraints
