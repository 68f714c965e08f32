#include "runner/grammars/lark.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "runner/grammars/budget.h"
#include "runner/grammars/cursor.h"
#include "runner/grammars/regex.h"

namespace mote::constraints {
namespace {

// The terminals of lark's grammar "common", as regular expressions.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kCommon{{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[a-fA-F0-9]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+|[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[a-zA-Z]"},
    {"WORD", "[a-zA-Z]+"},
    {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
}};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_lark_name_character(char c) { return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9') || c == '_'; }

bool is_terminal_name(std::string_view name) {
  const size_t first = name.find_first_not_of('_');
  return first != std::string_view::npos && is_upper(name[first]);
}

class LarkParser {
 public:
  LarkParser(std::string_view source, WorkBudget& budget) : cursor_(source, "Lark"), rules_(budget) {}

  Result<Rules> parse() {
    root_ = rules_.add_rule();
    ignored_ = rules_.add_rule();
    for (skip_blank(); !cursor_.at_end(); skip_blank()) MOTE_RETURN_IF_ERROR(parse_statement());
    for (const auto& [name, symbol] : symbols_) {
      if (symbol.is_defined) continue;
      cursor_.seek(symbol.used_at);
      return cursor_.error("there is no " + std::string(is_terminal_name(name) ? "terminal" : "rule") + " named " +
                           name);
    }
    const auto start = symbols_.find("start");
    MOTE_REQUIRE(start != symbols_.end(), Code::kInvalidArgument,
                 "Lark: there is no rule named start, where the text begins");
    rules_.define(ignored_, rules_.repeat(rules_.choice(ignored_parts_), 0, kUnbounded));
    rules_.define(root_, rules_.sequence({rules_.rule(ignored_), rules_.rule(start->second.rule)}));
    MOTE_RETURN_IF_ERROR(rules_.budget().status());
    std::vector<std::string> names(rules_.num_rules());
    for (const auto& [name, symbol] : symbols_) names[symbol.rule] = name;
    rules_.describe_with(
        [names = std::move(names)](RuleId rule) { return names[rule].empty() ? "Lark" : "Lark: " + names[rule]; });
    return std::move(rules_);
  }

 private:
  struct Symbol {
    RuleId rule = 0;
    size_t used_at = 0;
    bool is_defined = false;
  };

  Symbol& symbol_named(const std::string& name) {
    const auto [found, is_new] = symbols_.try_emplace(name);
    if (is_new) found->second = {rules_.add_rule(), cursor_.position(), false};
    return found->second;
  }

  // Skips spaces and a comment, up to the end of the line.
  void skip_space() {
    while (cursor_.peek() == ' ' || cursor_.peek() == '\t' || cursor_.peek() == '\f') cursor_.skip();
    if (!cursor_.comes("//") && !cursor_.comes("#")) return;
    while (!cursor_.at_end() && cursor_.peek() != '\n') cursor_.skip();
  }

  void skip_blank() {
    for (skip_space(); cursor_.peek() == '\n' || cursor_.peek() == '\r'; skip_space()) cursor_.skip();
  }

  std::string take_name() {
    const size_t start = cursor_.position();
    while (is_lark_name_character(cursor_.peek())) cursor_.skip();
    return std::string(cursor_.since(start));
  }

  Status end_line() {
    skip_space();
    if (cursor_.at_end() || cursor_.peek() == '\n' || cursor_.peek() == '\r') return {};
    return cursor_.error(cursor_.shown() + " is not expected here");
  }

  Status parse_statement() {
    if (cursor_.take("%import")) return parse_import();
    if (cursor_.take("%ignore")) return parse_ignore();
    if (cursor_.peek() == '%')
      return cursor_.error("of the statements with % only %import common.NAME and %ignore are supported");
    return parse_definition();
  }

  Status define_common(const std::string& name, const std::string& alias) {
    const auto entry =
        std::find_if(kCommon.begin(), kCommon.end(), [&](const auto& known) { return known.first == name; });
    if (entry == kCommon.end()) return cursor_.error("common has no terminal " + name + " that is supported");
    Symbol& symbol = symbol_named(alias);
    if (symbol.is_defined) return {};
    symbol.is_defined = true;
    const RuleId rule = symbol.rule;
    MOTE_ASSIGN(const ExpressionId expression, append_regex(entry->second, {}, rules_));
    rules_.define(rule, expression);
    return {};
  }

  Status parse_import() {
    skip_space();
    if (!cursor_.take("common")) return cursor_.error("only terminals of common can be imported: %import common.NAME");
    if (cursor_.take(".")) {
      const std::string name = take_name();
      std::string alias = name;
      skip_space();
      if (cursor_.take("->")) {
        skip_space();
        alias = take_name();
      }
      MOTE_RETURN_IF_ERROR(define_common(name, alias));
      return end_line();
    }
    skip_space();
    if (!cursor_.take("(")) return cursor_.error(".NAME or (NAME, ...) must follow, not " + cursor_.shown());
    do {
      skip_space();
      const std::string name = take_name();
      MOTE_RETURN_IF_ERROR(define_common(name, name));
      skip_space();
    } while (cursor_.take(","));
    if (!cursor_.take(")")) return cursor_.error(") must follow, not " + cursor_.shown());
    return end_line();
  }

  Status parse_ignore() {
    skip_space();
    in_terminal_ = true;
    MOTE_ASSIGN(const ExpressionId part, parse_choice());
    ignored_parts_.push_back(part);
    return end_line();
  }

  Status parse_definition() {
    const size_t start = cursor_.position();
    if (!cursor_.take("?")) cursor_.take("!");
    const std::string name = take_name();
    if (name.empty() || (name[0] >= '0' && name[0] <= '9'))
      return cursor_.error("a rule or a terminal must stand here, not " + cursor_.shown());
    if (cursor_.peek() == '{') return cursor_.error("templates are not supported");
    if (cursor_.take(".")) MOTE_RETURN_IF_ERROR(skip_priority());
    skip_space();
    if (!cursor_.take(":")) return cursor_.error(": must follow " + name + ", not " + cursor_.shown());
    Symbol& symbol = symbol_named(name);
    if (symbol.is_defined) {
      cursor_.seek(start);
      return cursor_.error(name + " is defined twice");
    }
    symbol.is_defined = true;
    const RuleId rule = symbol.rule;
    in_terminal_ = is_terminal_name(name);
    MOTE_ASSIGN(const ExpressionId expression, parse_choice());
    rules_.define(rule, expression);
    return end_line();
  }

  Status skip_priority() {
    cursor_.take("-");
    return cursor_.take_number().status();
  }

  Result<ExpressionId> parse_choice() {
    std::vector<ExpressionId> branches;
    take_bar();
    do {
      MOTE_ASSIGN(const ExpressionId branch, parse_sequence());
      branches.push_back(branch);
    } while (take_bar());
    return rules_.choice(std::move(branches));
  }

  // Takes a '|', which may also begin a following line.
  bool take_bar() {
    const size_t start = cursor_.position();
    skip_blank();
    if (cursor_.take("|")) return true;
    cursor_.seek(start);
    skip_space();
    return false;
  }

  Result<ExpressionId> parse_sequence() {
    std::vector<ExpressionId> parts;
    while (true) {
      skip_space();
      if (depth_ > 0) skip_blank();
      const char c = cursor_.peek();
      if (c != '"' && c != '/' && c != '(' && c != '[' && !is_lark_name_character(c)) break;
      MOTE_ASSIGN(ExpressionId part, parse_atom());
      MOTE_ASSIGN(part, parse_quantifier(part));
      parts.push_back(part);
    }
    if (cursor_.take("->")) {
      skip_space();
      if (take_name().empty()) return cursor_.error("a name must follow ->, not " + cursor_.shown());
    }
    return rules_.sequence(std::move(parts));
  }

  // A part that lark's lexer reads as one terminal. Outside of terminals, ignored text may follow it.
  ExpressionId lexed(ExpressionId part) { return in_terminal_ ? part : rules_.sequence({part, rules_.rule(ignored_)}); }

  Result<ExpressionId> parse_atom() {
    const char c = cursor_.peek();
    if (c == '"') return parse_text();
    if (c == '/') {
      MOTE_ASSIGN(const ExpressionId regex, parse_pattern());
      return lexed(regex);
    }
    if (c == '(' || c == '[') return parse_group();
    const size_t start = cursor_.position();
    const std::string name = take_name();
    if (cursor_.peek() == '{') return cursor_.error("templates are not supported");
    if (in_terminal_ && !is_terminal_name(name)) {
      cursor_.seek(start);
      return cursor_.error("a terminal cannot be made of the rule " + name);
    }
    Symbol& symbol = symbol_named(name);
    if (symbol.used_at == cursor_.position()) symbol.used_at = start;
    const ExpressionId call = rules_.rule(symbol.rule);
    return is_terminal_name(name) ? lexed(call) : call;
  }

  Result<ExpressionId> parse_group() {
    const bool is_optional = cursor_.peek() == '[';
    cursor_.skip();
    if (++depth_ > kMaxNesting) return cursor_.error(format("groups are nested deeper than %zu levels", kMaxNesting));
    MOTE_ASSIGN(const ExpressionId inner, parse_choice());
    skip_blank();
    if (!cursor_.take(is_optional ? "]" : ")"))
      return cursor_.error("a group is not closed, but " + cursor_.shown() + " follows");
    --depth_;
    return is_optional ? rules_.optional(inner) : inner;
  }

  Result<ExpressionId> parse_quantifier(ExpressionId part) {
    if (cursor_.take("*")) return rules_.repeat(part, 0, kUnbounded);
    if (cursor_.take("+")) return rules_.repeat(part, 1, kUnbounded);
    if (cursor_.take("?")) return rules_.optional(part);
    const size_t start = cursor_.position();
    skip_space();
    if (!cursor_.take("~")) {
      cursor_.seek(start);
      return part;
    }
    skip_space();
    MOTE_ASSIGN(const uint32_t low, cursor_.take_number());
    uint32_t high = low;
    skip_space();
    if (cursor_.take("..")) {
      skip_space();
      MOTE_ASSIGN(high, cursor_.take_number());
    }
    if (low > high) return cursor_.error(format("a repetition of at least %u and at most %u", low, high));
    return rules_.repeat(part, low, high);
  }

  // "text", "text"i, "a".."z"
  Result<ExpressionId> parse_text() {
    MOTE_ASSIGN(const std::u32string text, take_string());
    if (cursor_.take("..")) {
      if (cursor_.peek() != '"') return cursor_.error("a text must follow .., not " + cursor_.shown());
      MOTE_ASSIGN(const std::u32string last, take_string());
      if (text.size() != 1 || last.size() != 1 || text[0] > last[0]) {
        return cursor_.error("a range must go from one character to a later one");
      }
      return lexed(rules_.characters({{text[0], last[0]}}));
    }
    const bool ignores_case = cursor_.peek() == 'i' && !is_lark_name_character(cursor_.peek(1));
    if (ignores_case) cursor_.skip();
    std::vector<ExpressionId> parts;
    for (const char32_t c : text) {
      std::vector<CodePointRange> cases = {{c, c}};
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (ignores_case && is_letter) cases.push_back({c ^ 0x20U, c ^ 0x20U});
      const ExpressionId part = rules_.characters(std::move(cases));
      if (parts.empty() || !rules_.append_bytes(parts.back(), part)) parts.push_back(part);
    }
    return lexed(rules_.sequence(std::move(parts)));
  }

  Result<std::u32string> take_string() {
    cursor_.skip();
    std::u32string text;
    while (!cursor_.take("\"")) {
      if (cursor_.at_end() || cursor_.peek() == '\n') return cursor_.error("a text is not closed: \" is missing");
      if (!cursor_.take("\\")) {
        text += cursor_.take_character();
        continue;
      }
      const char c = cursor_.peek();
      if (!cursor_.at_end()) cursor_.skip();
      switch (c) {
        case 'n': text += U'\n'; break;
        case 'r': text += U'\r'; break;
        case 't': text += U'\t'; break;
        case 'f': text += U'\f'; break;
        case '\\':
        case '"':
        case '/': text += static_cast<char32_t>(c); break;
        case 'x':
        case 'u':
        case 'U': {
          MOTE_ASSIGN(const char32_t character, cursor_.take_hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8));
          text += character;
          break;
        }
        default: return cursor_.error("after a backslash one of n r t f \\ \" / x u U must follow");
      }
    }
    return text;
  }

  Result<ExpressionId> parse_pattern() {
    cursor_.skip();
    const size_t start = cursor_.position();
    while (cursor_.peek() != '/') {
      if (cursor_.at_end() || cursor_.peek() == '\n')
        return cursor_.error("a regular expression is not closed: / is missing");
      cursor_.skip(cursor_.peek() == '\\' ? 2 : 1);
    }
    const std::string_view pattern = cursor_.since(start);
    cursor_.skip();
    RegexOptions options;
    options.what = "Lark: a regular expression";
    for (; is_lower(cursor_.peek()); cursor_.skip()) {
      if (cursor_.peek() == 'i')
        options.ignores_case = true;
      else if (cursor_.peek() == 's')
        options.dot_is_any = true;
      else if (cursor_.peek() != 'u')
        return cursor_.error("of the flags of regular expressions only i, s and u are supported");
    }
    return append_regex(pattern, options, rules_);
  }

  Cursor cursor_;
  Rules rules_;
  RuleId root_ = 0;
  RuleId ignored_ = 0;
  std::vector<ExpressionId> ignored_parts_;
  std::map<std::string, Symbol> symbols_;
  bool in_terminal_ = false;
  size_t depth_ = 0;
};

}  // namespace

Result<Rules> parse_lark(std::string_view source, WorkBudget& budget) { return LarkParser(source, budget).parse(); }

}  // namespace mote::constraints
