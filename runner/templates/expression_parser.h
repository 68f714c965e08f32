// Expressions and assignment targets. Source: jinja2 parser.py
#pragma once

#include <initializer_list>

#include "runner/templates/ast.h"
#include "runner/templates/token_stream.h"

namespace mote::jinja {

class ExpressionParser {
 public:
  ExpressionParser(const Tokens& tokens, Program& program) : stream_(tokens), program_(program) {}

 protected:
  // Counts how deep the source nests.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxSourceNesting)
        MOTE_JINJA_FAIL("the template nests deeper than %d", kMaxSourceNesting);
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  struct TupleOptions {
    bool with_condition = true;
    bool explicit_parentheses = false;
    bool is_target = false;          // names and literals only
    bool with_namespace = false;     // of targets: also ns.attribute
    std::string_view end_name = {};  // a name that ends the tuple, such as "in"
  };

  Expression* make(ExpressionKind kind, uint32_t line);
  Expression* make_constant(const Value& value, uint32_t line);
  Expression* parse_tuple(const TupleOptions& options);
  Expression* parse_expression(bool with_condition = true);
  Expression* parse_target(const TupleOptions& options);
  std::string_view parse_target_name();
  // Appends the filters that follow to `chain`; the first may stand without '|'.
  void parse_filters(Expression* chain, bool starts_inline);
  CallArguments parse_call_arguments();

  TokenStream stream_;
  Program& program_;

 private:
  Expression* parse_condition();
  // Operands joined by `word`: one flat expression of that kind, or the only operand.
  Expression* parse_joined(const char* word, ExpressionKind kind, Expression* (ExpressionParser::*parse_operand)());
  Expression* parse_or();
  Expression* parse_and();
  Expression* parse_not();
  Expression* parse_comparison();
  // A chain of operands with any of the operators between them, from the left.
  Expression* parse_arithmetic(std::initializer_list<TokenType> operators, Expression* (ExpressionParser::*operand)());
  Expression* parse_sum();
  Expression* parse_concatenation();
  Expression* parse_product();
  Expression* parse_power();
  Expression* parse_signed();
  Expression* parse_unary(bool with_filter);
  Expression* parse_primary(bool with_namespace);
  Expression* parse_name(bool with_namespace);
  Expression* parse_list();
  Expression* parse_dict();
  Expression* parse_postfix(Expression* expression);
  Expression* parse_filters_and_tests(Expression* expression);
  Expression* chain_of(Expression* expression);
  void parse_subscript(Expression* chain);
  Step parse_slice_or_item();
  void parse_test(Expression* chain);
  std::string_view parse_dotted_name();

  int nesting_ = 0;
};

}  // namespace mote::jinja
