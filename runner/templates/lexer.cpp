#include "runner/templates/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/decimal.h"
#include "base/utf8.h"
#include "runner/templates/characters.h"
#include "runner/templates/escapes.h"

namespace mote::jinja {
namespace {

struct Symbol {
  std::string_view text;
  TokenType type;
};

// Longer symbols come first, or "//" would be read as two "/".
constexpr std::array kSymbols = {
    Symbol{"//", TokenType::kFloorDiv},
    Symbol{"**", TokenType::kPow},
    Symbol{"==", TokenType::kEqual},
    Symbol{"!=", TokenType::kNotEqual},
    Symbol{">=", TokenType::kGreaterEqual},
    Symbol{"<=", TokenType::kLessEqual},
    Symbol{"+", TokenType::kAdd},
    Symbol{"-", TokenType::kSub},
    Symbol{"*", TokenType::kMul},
    Symbol{"/", TokenType::kDiv},
    Symbol{"%", TokenType::kMod},
    Symbol{"~", TokenType::kTilde},
    Symbol{"[", TokenType::kLeftBracket},
    Symbol{"]", TokenType::kRightBracket},
    Symbol{"(", TokenType::kLeftParenthesis},
    Symbol{")", TokenType::kRightParenthesis},
    Symbol{"{", TokenType::kLeftBrace},
    Symbol{"}", TokenType::kRightBrace},
    Symbol{">", TokenType::kGreater},
    Symbol{"<", TokenType::kLess},
    Symbol{"=", TokenType::kAssign},
    Symbol{".", TokenType::kDot},
    Symbol{":", TokenType::kColon},
    Symbol{"|", TokenType::kPipe},
    Symbol{",", TokenType::kComma},
    Symbol{";", TokenType::kSemicolon},
};

// Line breaks as "\n", one at the end dropped.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

class Lexer {
 public:
  explicit Lexer(Tokens& tokens) : tokens_(tokens), source_(tokens.source_) {}

  void run() {
    while (!failed_ && position_ < source_.size()) read_data();
    if (!failed_) add(TokenType::kEnd, {});
  }

 private:
  void add(TokenType type, std::string_view text) { tokens_.tokens_.push_back({type, line_, text, 0, 0}); }

  void fail(std::string message) {
    tokens_.texts_.push_back(std::move(message));
    add(TokenType::kError, tokens_.texts_.back());
    failed_ = true;
  }

  std::string_view rest() const { return source_.substr(position_); }
  bool at(std::string_view text) const { return rest().starts_with(text); }

  // Moves on to `position`, counting lines. What was read last decides whether a tag stands at the start of its line.
  void advance_to(size_t position) {
    const std::string_view read = source_.substr(position_, position - position_);
    line_ += static_cast<uint32_t>(std::count(read.begin(), read.end(), '\n'));
    if (!read.empty()) line_starting_ = read.back() == '\n';
    position_ = position;
  }

  size_t skip_space(size_t position) const { return position + leading_space(source_.substr(position)); }

  // What remains of `text` in front of a tag whose sign is '-', '+' or none (0).
  std::string_view strip_before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
    if (sign == '+' || is_variable) return text;
    const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view indent = text.substr(line_begin);
    if ((line_begin > 0 || line_starting_) && leading_space(indent) == indent.size()) return text.substr(0, line_begin);
    return text;
  }

  char sign_at(size_t position) const {
    return position < source_.size() && (source_[position] == '-' || source_[position] == '+') ? source_[position]
                                                                                               : '\0';
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenType::kData, text);
  }

  // Text up to the next tag, and the tag.
  void read_data() {
    size_t begin = position_;
    while ((begin = source_.find('{', begin)) != source_.npos) {
      const char next = begin + 1 < source_.size() ? source_[begin + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++begin;
    }
    if (begin == source_.npos) {
      add_data(rest());
      advance_to(source_.size());
      return;
    }
    const char kind = source_[begin + 1];
    const char sign = sign_at(begin + 2);
    add_data(strip_before_tag(source_.substr(position_, begin - position_), sign, kind == '{'));
    const size_t inside = begin + 2 + (sign != '\0' ? 1 : 0);
    if (const size_t raw_end = kind == '%' ? end_of_raw_tag(inside) : 0; raw_end != 0) {
      advance_to(raw_end);
      read_raw();
      return;
    }
    advance_to(inside);
    if (kind == '#') {
      read_comment();
    } else {
      add(kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, source_.substr(begin, 2));
      read_code(kind == '%');
    }
  }

  // Where `{% raw %}` ends if the tag whose inside begins here is one; else 0.
  size_t end_of_raw_tag(size_t inside) const {
    size_t position = skip_space(inside);
    if (!source_.substr(position).starts_with("raw")) return 0;
    position = skip_space(position + 3);
    if (source_.substr(position).starts_with("-%}")) return skip_space(position + 3);
    return source_.substr(position).starts_with("%}") ? position + 2 : 0;
  }

  // The position behind a tag whose closing mark `end` ("%}" or "#}") stands at `position`, perhaps behind a sign;
  // 0: no mark is there.
  size_t end_of_tag(size_t position, std::string_view end) const {
    const char sign = sign_at(position);
    const size_t mark = position + (sign != '\0' ? 1 : 0);
    if (!source_.substr(mark).starts_with(end)) return 0;
    const size_t after = mark + end.size();
    if (sign == '-') return skip_space(after);
    if (sign == '\0' && after < source_.size() && source_[after] == '\n') return after + 1;
    return after;
  }

  void read_raw() {
    for (size_t begin = position_; (begin = source_.find("{%", begin)) != source_.npos; ++begin) {
      const char sign = sign_at(begin + 2);
      size_t position = skip_space(begin + 2 + (sign != '\0' ? 1 : 0));
      if (!source_.substr(position).starts_with("endraw")) continue;
      position = end_of_tag(skip_space(position + 6), "%}");
      if (position == 0) continue;
      add_data(strip_before_tag(source_.substr(position_, begin - position_), sign, false));
      advance_to(position);
      return;
    }
    if (!rest().empty()) fail("Missing end of raw directive");  // Jinja2 accepts {% raw %} at the very end
  }

  void read_comment() {
    const size_t mark = source_.find("#}", position_);
    if (mark == source_.npos) {
      if (!rest().empty()) fail("Missing end of comment tag");
      return;
    }
    const bool has_sign = mark > position_ && (source_[mark - 1] == '-' || source_[mark - 1] == '+');
    advance_to(end_of_tag(has_sign ? mark - 1 : mark, "#}"));
  }

  // The inside of a tag, with its end.
  void read_code(bool is_block) {
    std::string open;  // the closing brackets that are due
    while (!failed_) {
      if (open.empty()) {
        if (const size_t end = is_block ? end_of_tag(position_, "%}") : end_of_variable(); end != 0) {
          add(is_block ? TokenType::kBlockEnd : TokenType::kVariableEnd, source_.substr(position_, end - position_));
          advance_to(end);
          return;
        }
      }
      if (position_ == source_.size()) {
        add(TokenType::kEnd, {});
        failed_ = true;  // ends reading, without an error
        return;
      }
      read_token(open);
    }
  }

  size_t end_of_variable() const {
    if (at("-}}")) return skip_space(position_ + 3);
    return at("}}") ? position_ + 2 : 0;
  }

  void read_token(std::string& open) {
    if (const size_t end = skip_space(position_); end != position_) return advance_to(end);
    const char c = source_[position_];
    if (is_digit(c)) return read_number();
    if (const size_t length = word_length(rest()); length > 0) return read_name(length);
    if ((c == '\'' || c == '"') && read_text(c)) return;
    read_symbol(open);
  }

  void read_name(size_t length) {
    const std::string_view name = rest().substr(0, length);
    if (!is_identifier(name)) return fail("Invalid character in identifier");
    add(TokenType::kName, name);
    advance_to(position_ + length);
  }

  // Digits with single '_' between them; 0 if there is none.
  size_t digits_at(size_t position) const {
    size_t end = position;
    while (end < source_.size() &&
           (is_digit(source_[end]) || (source_[end] == '_' && end > position && end + 1 < source_.size() &&
                                       is_digit(source_[end + 1]) && source_[end - 1] != '_'))) {
      ++end;
    }
    return end - position;
  }

  // Length of a float at the position; 0: none.
  size_t float_length() const {
    if (position_ > 0 && source_[position_ - 1] == '.') return 0;
    size_t end = position_ + digits_at(position_);
    bool is_float = false;
    if (end < source_.size() && source_[end] == '.' && digits_at(end + 1) > 0) {
      end += 1 + digits_at(end + 1);
      is_float = true;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t digits = end + 1 + (sign_at(end + 1) != '\0' ? 1 : 0);
      if (digits_at(digits) > 0) {
        end = digits + digits_at(digits);
        is_float = true;
      }
    }
    return is_float ? end - position_ : 0;
  }

  void read_number() {
    if (const size_t length = float_length(); length > 0) {
      std::string digits(rest().substr(0, length));
      std::erase(digits, '_');
      add(TokenType::kFloat, rest().substr(0, length));
      const std::optional<double> number = read_decimal(digits);
      if (!number.has_value() || std::isinf(*number)) return fail("a float literal is out of range");
      tokens_.tokens_.back().real = *number;
      return advance_to(position_ + length);
    }
    size_t length = 0;
    int base = 10;
    if (source_[position_] == '0' && position_ + 1 < source_.size()) length = based_length(base);
    if (length == 0) {
      length = digits_at(position_);
      if (source_[position_] == '0') {  // after a leading zero only zeros belong to the number
        const size_t end = rest().find_first_not_of("0_");
        length = std::min(length, end == rest().npos ? length : end);
        while (source_[position_ + length - 1] == '_') --length;
      }
    }
    std::string digits(rest().substr(base == 10 ? 0 : 2, base == 10 ? length : length - 2));
    std::erase(digits, '_');
    add(TokenType::kInteger, rest().substr(0, length));
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), tokens_.tokens_.back().integer, base);
    if (parsed.ec != std::errc()) return fail("an integer literal does not fit 64 bits");
    advance_to(position_ + length);
  }

  // Length of 0x1f, 0o17 or 0b11 at the position, and its base; 0: none.
  size_t based_length(int& base) const {
    const char mark = source_[position_ + 1] | ' ';
    const int found = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (found == 0) return 0;
    const auto is_based_digit = [found](char c) {
      const int value = is_digit(c) ? c - '0' : (c | ' ') >= 'a' && (c | ' ') <= 'f' ? (c | ' ') - 'a' + 10 : 99;
      return value < found;
    };
    size_t end = position_ + 2;
    while (end < source_.size()) {
      const bool skips = source_[end] == '_' && end + 1 < source_.size();
      if (!is_based_digit(source_[end + (skips ? 1 : 0)])) break;
      end += skips ? 2 : 1;
    }
    if (end == position_ + 2) return 0;
    base = found;
    return end - position_;
  }

  bool read_text(char quote) {
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    const std::string_view inside = source_.substr(position_ + 1, end - position_ - 1);
    if (inside.find('\\') == inside.npos) {
      add(TokenType::kText, inside);
    } else {
      Result<std::string> text = unescape(inside);
      if (!text.ok()) {
        fail(text.status().message());
        return true;
      }
      tokens_.texts_.push_back(*std::move(text));
      add(TokenType::kText, tokens_.texts_.back());
    }
    advance_to(end + 1);
    return true;
  }

  void read_symbol(std::string& open) {
    const auto symbol = std::find_if(kSymbols.begin(), kSymbols.end(), [this](const Symbol& s) { return at(s.text); });
    if (symbol == kSymbols.end()) return fail(unexpected_character());
    const char c = symbol->text[0];
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return fail(std::string("unexpected '") + c + "'");
      const char expected = open.back();
      open.pop_back();
      if (expected != c) return fail(std::string("unexpected '") + c + "', expected '" + expected + "'");
    }
    add(symbol->type, symbol->text);
    advance_to(position_ + symbol->text.size());
  }

  std::string unexpected_character() const {
    const Utf8Character character = first_utf8_character(rest());
    return "unexpected char " + repr_of(rest().substr(0, character.length)) + " at " +
           std::to_string(count_characters(source_.substr(0, position_)));
  }

  Tokens& tokens_;
  std::string_view source_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  bool failed_ = false;
};

Tokens::Tokens(std::string_view source) : source_(normalized(source)) { Lexer(*this).run(); }

std::string_view describe(TokenType type) {
  for (const Symbol& symbol : kSymbols) {
    if (symbol.type == type) return symbol.text;
  }
  switch (type) {
    case TokenType::kData: return "template data / text";
    case TokenType::kVariableBegin: return "begin of print statement";
    case TokenType::kVariableEnd: return "end of print statement";
    case TokenType::kBlockBegin: return "begin of statement block";
    case TokenType::kBlockEnd: return "end of statement block";
    case TokenType::kName: return "name";
    case TokenType::kText: return "string";
    case TokenType::kInteger: return "integer";
    case TokenType::kFloat: return "float";
    default: return "end of template";
  }
}

std::string_view describe(const Token& token) {
  return token.type == TokenType::kName ? token.text : describe(token.type);
}

}  // namespace mote::jinja
