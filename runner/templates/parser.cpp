#include "runner/templates/parser.h"

#include <algorithm>
#include <string>

#include "runner/templates/escapes.h"
#include "runner/templates/expression_parser.h"
#include "runner/templates/scopes.h"

namespace mote::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  void run() {
    program_.body = parse_body({});
    resolve_scopes(program_);
  }

 private:
  Statement* make_statement(StatementKind kind) {
    program_.statements.push_back(std::make_unique<Statement>());
    Statement* statement = program_.statements.back().get();
    statement->kind = kind;
    statement->line = stream_.current().line;
    return statement;
  }

  // Statements up to a tag with one of the names in `end`, or to the end of the template if there are none. The tag's
  // name is the current token afterwards.
  Body parse_body(Names end) {
    Body body;
    if (end.size() > 0) ends_.push_back(end);
    while (!stream_.is(TokenType::kEnd)) {
      const Token& token = stream_.next();
      if (token.type == TokenType::kData) {
        body.push_back(make_statement(StatementKind::kData));
        body.back()->data = token.text;
      } else if (token.type == TokenType::kVariableBegin) {
        body.push_back(make_statement(StatementKind::kOutput));
        body.back()->expressions = {parse_tuple({})};
        stream_.expect(TokenType::kVariableEnd);
      } else {
        if (end.size() > 0 && stream_.is_any_name(end)) break;
        body.push_back(parse_statement());
        stream_.expect(TokenType::kBlockEnd);
      }
    }
    if (end.size() > 0) ends_.pop_back();
    return body;
  }

  // Reads the end of a statement's first tag and then its body.
  Body parse_inner(Names end) {
    const Nesting nesting(*this);
    stream_.skip_if(TokenType::kColon);
    stream_.expect(TokenType::kBlockEnd);
    Body body = parse_body(end);
    if (stream_.is(TokenType::kEnd)) {
      ends_.push_back(end);
      fail_end({});
    }
    return body;
  }

  Body parse_inner_and_end(std::string_view end) {
    Body body = parse_inner({end});
    stream_.next();
    return body;
  }

  // Reports a tag that is not known (or, without a name, the end of the template) as Jinja2 does.
  [[noreturn]] void fail_end(std::string_view name) const {
    std::string message =
        name.empty() ? "Unexpected end of template." : "Encountered unknown tag " + repr_of(name) + ".";
    if (!ends_.empty()) {
      std::string looking;
      for (const std::string_view end : ends_.back()) looking += (looking.empty() ? "" : " or ") + repr_of(end);
      const bool is_expected = std::any_of(ends_.begin(), ends_.end(), [&](const std::vector<std::string_view>& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      });
      message += !name.empty() && is_expected
                     ? " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " +
                           looking + "."
                     : " Jinja was looking for the following tags: " + looking + ".";
    }
    if (!tags_.empty()) message += " The innermost block that needs to be closed is " + repr_of(tags_.back()) + ".";
    fail(message);
  }

  Statement* parse_statement() {
    const Token& token = stream_.current();
    if (token.type != TokenType::kName) fail("tag name expected");
    using Parse = Statement* (Parser::*)();
    static constexpr std::pair<std::string_view, Parse> kTags[] = {
        {"if", &Parser::parse_if},
        {"for", &Parser::parse_for},
        {"set", &Parser::parse_set},
        {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call_block},
        {"filter", &Parser::parse_filter_block},
        {"with", &Parser::parse_with},
        {"print", &Parser::parse_print},
        {"generation", &Parser::parse_generation},
        {"break", &Parser::parse_jump},
        {"continue", &Parser::parse_jump},
        {"include", &Parser::parse_loader},
        {"import", &Parser::parse_loader},
        {"from", &Parser::parse_loader},
        {"extends", &Parser::parse_loader},
        {"block", &Parser::parse_refused},
        {"autoescape", &Parser::parse_refused},
    };
    const auto* tag =
        std::find_if(std::begin(kTags), std::end(kTags), [&](const auto& t) { return t.first == token.text; });
    if (tag == std::end(kTags)) fail_end(token.text);
    tags_.push_back(token.text);
    Statement* statement = (this->*tag->second)();
    tags_.pop_back();
    return statement;
  }

  Statement* parse_if() {
    Statement* statement = make_statement(StatementKind::kIf);
    stream_.next();
    while (true) {
      Branch branch;
      branch.condition = parse_tuple({.with_condition = false});
      branch.body = parse_inner({"elif", "else", "endif"});
      statement->branches.push_back(std::move(branch));
      const std::string_view name = stream_.next().text;
      if (name == "elif") continue;
      if (name == "else") statement->branches.push_back({nullptr, parse_inner_and_end("endif")});
      return statement;
    }
  }

  Statement* parse_for() {
    Statement* statement = make_statement(StatementKind::kFor);
    stream_.next();
    statement->targets = {parse_target({.is_target = true, .end_name = "in"})};
    stream_.expect_name("in");
    statement->expressions = {parse_tuple({.with_condition = false, .end_name = "recursive"})};
    if (stream_.skip_if_name("if")) statement->test = parse_expression();
    statement->recursive = stream_.skip_if_name("recursive");
    statement->body = parse_inner({"endfor", "else"});
    if (stream_.next().text == "else") statement->otherwise = parse_inner_and_end("endfor");
    return statement;
  }

  Statement* parse_set() {
    Statement* statement = make_statement(StatementKind::kSet);
    stream_.next();
    statement->targets = {parse_target({.is_target = true, .with_namespace = true})};
    if (stream_.skip_if(TokenType::kAssign)) {
      statement->expressions = {parse_tuple({})};
      return statement;
    }
    statement->kind = StatementKind::kSetBlock;
    statement->expressions = {make(ExpressionKind::kChain, statement->line)};
    parse_filters(statement->expressions[0], false);
    statement->body = parse_inner_and_end("endset");
    return statement;
  }

  void parse_signature(MacroInfo& macro) {
    stream_.expect(TokenType::kLeftParenthesis);
    while (!stream_.is(TokenType::kRightParenthesis)) {
      if (!macro.parameters.empty()) stream_.expect(TokenType::kComma);
      Parameter parameter{.name = parse_target_name()};
      if (stream_.skip_if(TokenType::kAssign)) {
        parameter.default_value = parse_expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().default_value != nullptr) {
        fail("non-default argument follows default argument");
      }
      macro.parameters.push_back(parameter);
    }
    stream_.expect(TokenType::kRightParenthesis);
  }

  Statement* parse_macro() {
    Statement* statement = make_statement(StatementKind::kMacro);
    stream_.next();
    statement->macro = std::make_unique<MacroInfo>();
    statement->macro->name = parse_target_name();
    parse_signature(*statement->macro);
    statement->macro->body = parse_inner_and_end("endmacro");
    return statement;
  }

  Statement* parse_call_block() {
    Statement* statement = make_statement(StatementKind::kCallBlock);
    stream_.next();
    statement->macro = std::make_unique<MacroInfo>();
    statement->macro->is_anonymous = true;
    if (stream_.is(TokenType::kLeftParenthesis)) parse_signature(*statement->macro);
    Expression* call = parse_expression();
    const bool is_call =
        call->kind == ExpressionKind::kChain && !call->steps.empty() && call->steps.back().kind == StepKind::kCall;
    if (!is_call) fail("expected call");
    statement->expressions = {call};
    statement->macro->body = parse_inner_and_end("endcall");
    return statement;
  }

  Statement* parse_generation() {
    Statement* statement = make_statement(StatementKind::kGeneration);
    stream_.next();
    statement->macro = std::make_unique<MacroInfo>();
    statement->macro->is_anonymous = true;
    statement->macro->body = parse_inner_and_end("endgeneration");
    return statement;
  }

  Statement* parse_filter_block() {
    Statement* statement = make_statement(StatementKind::kFilterBlock);
    stream_.next();
    statement->expressions = {make(ExpressionKind::kChain, statement->line)};
    parse_filters(statement->expressions[0], true);
    statement->body = parse_inner_and_end("endfilter");
    return statement;
  }

  Statement* parse_with() {
    Statement* statement = make_statement(StatementKind::kWith);
    stream_.next();
    while (!stream_.is(TokenType::kBlockEnd)) {
      if (!statement->targets.empty()) stream_.expect(TokenType::kComma);
      statement->targets.push_back(parse_target({.is_target = true}));
      stream_.expect(TokenType::kAssign);
      statement->expressions.push_back(parse_expression());
    }
    statement->body = parse_inner_and_end("endwith");
    return statement;
  }

  Statement* parse_print() {
    Statement* statement = make_statement(StatementKind::kOutput);
    stream_.next();
    while (!stream_.is(TokenType::kBlockEnd)) {
      if (!statement->expressions.empty()) stream_.expect(TokenType::kComma);
      statement->expressions.push_back(parse_expression());
    }
    return statement;
  }

  Statement* parse_jump() {
    const bool is_break = stream_.current().text == "break";
    Statement* statement = make_statement(is_break ? StatementKind::kBreak : StatementKind::kContinue);
    stream_.next();
    return statement;
  }

  // include, import, from and extends fail when they run, as no loader is there. Only the end of the tag is looked for.
  Statement* parse_loader() {
    Statement* statement = make_statement(StatementKind::kLoader);
    stream_.next();
    statement->expressions = {parse_expression()};
    while (!stream_.is(TokenType::kBlockEnd) && !stream_.is(TokenType::kEnd)) stream_.next();
    return statement;
  }

  Statement* parse_refused() {
    fail("the tag " + repr_of(stream_.current().text) + " is not supported in chat templates");
  }

  std::vector<std::vector<std::string_view>> ends_;
  std::vector<std::string_view> tags_;
};

}  // namespace

Program parse(const Tokens& tokens) {
  Program program;
  Parser(tokens, program).run();
  return program;
}

}  // namespace mote::jinja
