// The parser's place in the tokens.
#pragma once

#include <initializer_list>
#include <string_view>

#include "runner/templates/error.h"
#include "runner/templates/lexer.h"

namespace mote::jinja {

class TokenStream {
 public:
  explicit TokenStream(const Tokens& tokens) : tokens_(tokens.list()) { check(tokens_[0]); }

  const Token& current() const { return tokens_[position_]; }
  const Token& look() const {
    const Token& token = tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_];
    check(token);
    return token;
  }
  // Returns the current token and moves on.
  const Token& next() {
    const Token& token = current();
    if (position_ + 1 < tokens_.size()) ++position_;
    check(current());
    return token;
  }
  bool is(TokenType type) const { return current().type == type; }
  bool is_name(std::string_view name) const { return is(TokenType::kName) && current().text == name; }
  bool is_any_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (is_name(name)) return true;
    }
    return false;
  }
  bool skip_if(TokenType type) {
    const bool found = is(type);
    if (found) next();
    return found;
  }
  bool skip_if_name(std::string_view name) {
    const bool found = is_name(name);
    if (found) next();
    return found;
  }
  const Token& expect(TokenType type) {
    if (!is(type)) fail_expected(describe(type));
    return next();
  }
  const Token& expect_name(std::string_view name) {
    if (!is_name(name)) fail_expected(name);
    return next();
  }

 private:
  static void check(const Token& token) {
    if (token.type == TokenType::kError) fail(std::string(token.text));
  }
  [[noreturn]] void fail_expected(std::string_view expected) const;

  const std::vector<Token>& tokens_;
  size_t position_ = 0;
};

}  // namespace mote::jinja
