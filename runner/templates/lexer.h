// Template source to tokens, as Jinja2's lexer with trim_blocks and lstrip_blocks. Source: jinja2 lexer.py
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mote::jinja {

enum class TokenType : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kText,
  kInteger,
  kFloat,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kTilde,
  kLeftBracket,
  kRightBracket,
  kLeftParenthesis,
  kRightParenthesis,
  kLeftBrace,
  kRightBrace,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kAssign,
  kDot,
  kColon,
  kPipe,
  kComma,
  kSemicolon,
  kEnd,
  kError,  // reported when the parser gets there; text is the message
};

struct Token {
  TokenType type = TokenType::kEnd;
  uint32_t line = 1;
  std::string_view text;  // of the source, or of a string literal without its escapes
  int64_t integer = 0;
  double real = 0;
};

// Owns what its tokens point to.
class Tokens {
 public:
  explicit Tokens(std::string_view source);
  Tokens(const Tokens&) = delete;
  Tokens& operator=(const Tokens&) = delete;

  const std::vector<Token>& list() const { return tokens_; }

 private:
  friend class Lexer;

  std::string source_;
  std::deque<std::string> texts_;
  std::vector<Token> tokens_;
};

// How messages name a kind of token: "end of statement block", "+", "name".
std::string_view describe(TokenType type);
// The same for one token: a name's own text.
std::string_view describe(const Token& token);

}  // namespace mote::jinja
