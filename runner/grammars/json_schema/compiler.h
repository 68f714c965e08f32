// Makes a rule for each set of schemas that must all accept a value.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runner/grammars/grammar.h"
#include "runner/grammars/json_schema/schema.h"
#include "runner/grammars/nfa.h"

namespace mote::constraints {

class SchemaCompiler {
 public:
  SchemaCompiler(std::shared_ptr<Document> document, JsonWhitespace whitespace)
      : document_(std::move(document)),
        budget_(document_->budget()),
        whitespace_(whitespace),
        rules_(document_->budget()) {}

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
  Status define(const Pending& pending);
  RuleId rule_for(const Conjunction& schemas, ExpressionId definition);
  Result<ExpressionId> alternative(const Conjunction& schemas);
  ExpressionId named(const std::vector<const Json*>& values);
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
  Result<std::optional<ExpressionId>> free_members(const Conjunction& schemas, const std::vector<Member>& declared);
  Status add_patterns(const Conjunction& schemas, struct FreeKeys& keys);
  Result<std::optional<ExpressionId>> names_to_leave_out(const Conjunction& schemas, ExpressionId any_name);
  ExpressionId free_member(Conjunction schemas);
  Result<bool> has_match(const std::string& pattern, const std::string& name);
  ExpressionId join(const std::vector<Member>& members, std::optional<ExpressionId> free, uint32_t min_free,
                    uint32_t max_free);

  const std::shared_ptr<Document> document_;
  WorkBudget& budget_;
  const JsonWhitespace whitespace_;
  Rules rules_;
  std::map<std::vector<const Json*>, RuleId> known_;
  std::vector<const Json*> schema_of_;                  // of each rule: the first it was made for; nullptr: none
  std::map<std::string, RuleId> shared_;                // numbers and strings, by what they are asked for
  std::unordered_map<std::string, Dfa> name_patterns_;  // in texts that are no JSON
  std::vector<Pending> pending_;
  std::optional<RuleId> space_;
};

}  // namespace mote::constraints
