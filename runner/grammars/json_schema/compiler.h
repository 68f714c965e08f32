// Makes a rule for each set of schemas that must all accept a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/grammars/grammar.h"
#include "runner/grammars/json_schema/schema.h"

namespace mote::constraints {

class SchemaCompiler {
 public:
  SchemaCompiler(const Json& document, JsonWhitespace whitespace) : document_(document), whitespace_(whitespace) {}

  // Errors: kInvalidArgument with the JSON pointer.
  Result<Rules> run();

 private:
  struct Pending {
    RuleId rule;
    Conjunction schemas;
  };
  struct Member {
    std::string name;
    ExpressionId expression;  // "name": value
    bool is_required;
  };

  // values (compiler.cpp)
  ExpressionId value_of(Conjunction schemas);
  Result<ExpressionId> alternative(const Conjunction& schemas);
  ExpressionId literal(const Json& value);
  ExpressionId list_of(const char* open, std::vector<ExpressionId> parts, const char* close);
  Result<ExpressionId> number(const Conjunction& schemas, bool is_integer);
  Result<ExpressionId> multiples(const Schema& schema, const std::optional<struct Bound>& low,
                                 const std::optional<struct Bound>& high);
  Result<ExpressionId> string(const Conjunction& schemas);
  Result<std::optional<ExpressionId>> string_content(const Conjunction& schemas);

  // white space
  ExpressionId space();  // inside of brackets
  ExpressionId comma();  // with the white space that follows it
  ExpressionId colon();

  // arrays.cpp
  Result<ExpressionId> array(const Conjunction& schemas);
  // objects.cpp
  Result<ExpressionId> object(const Conjunction& schemas);
  Result<std::vector<Member>> declared_members(const Conjunction& schemas);
  Result<Conjunction> schemas_of_member(const Conjunction& schemas, const std::string& name);
  Result<std::vector<ExpressionId>> free_members(const Conjunction& schemas, const std::vector<Member>& declared);
  Result<ExpressionId> free_key(const Conjunction& schemas, const std::string& pattern,
                                const std::vector<std::string>& other_patterns, const std::vector<Member>& declared);
  ExpressionId join(const std::vector<Member>& members, std::optional<ExpressionId> free, uint32_t min_free,
                    uint32_t max_free);

  const Json& document_;
  const JsonWhitespace whitespace_;
  Rules rules_;
  std::map<std::vector<const Json*>, RuleId> known_;
  std::vector<Pending> pending_;
  std::optional<RuleId> space_;
  std::optional<RuleId> any_string_;
};

}  // namespace mote::constraints
