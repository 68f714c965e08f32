#include "runner/grammars/gbnf.h"

#include <map>

#include "base/utf8.h"
#include "runner/grammars/budget.h"
#include "runner/grammars/cursor.h"

namespace mote::constraints {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(std::string_view source, WorkBudget& budget) : cursor_(source, "GBNF"), rules_(budget) {}

  Result<Rules> parse() {
    rule_named("root");
    for (skip_space(true); !cursor_.at_end(); skip_space(true)) MOTE_RETURN_IF_ERROR(parse_rule());
    for (const auto& [name, symbol] : symbols_) {
      if (symbol.is_defined) continue;
      cursor_.seek(symbol.used_at);
      if (name == "root")
        return Status(Code::kInvalidArgument, "GBNF: there is no rule named root, where the text begins");
      return cursor_.error("there is no rule named " + name);
    }
    MOTE_RETURN_IF_ERROR(rules_.budget().status());
    std::vector<std::string> names(rules_.num_rules());
    for (const auto& [name, symbol] : symbols_) names[symbol.rule] = name;
    rules_.describe_with([names = std::move(names)](RuleId rule) { return "GBNF: the rule " + names[rule]; });
    return std::move(rules_);
  }

 private:
  struct Symbol {
    RuleId rule = 0;
    size_t used_at = 0;
    bool is_defined = false;
  };

  Symbol& rule_named(const std::string& name) {
    const auto [found, is_new] = symbols_.try_emplace(name);
    if (is_new) found->second = {rules_.add_rule(), cursor_.position(), false};
    return found->second;
  }

  void skip_space(bool with_lines) {
    for (;; cursor_.skip()) {
      while (cursor_.peek() == '#') {
        while (!cursor_.at_end() && cursor_.peek() != '\n' && cursor_.peek() != '\r') cursor_.skip();
      }
      const char c = cursor_.peek();
      if (c != ' ' && c != '\t' && !(with_lines && (c == '\n' || c == '\r'))) return;
    }
  }

  Result<std::string> take_name() {
    const size_t start = cursor_.position();
    while (is_name_character(cursor_.peek())) cursor_.skip();
    if (cursor_.position() == start) return cursor_.error("a rule's name must stand here, not " + cursor_.shown());
    return std::string(cursor_.since(start));
  }

  Status parse_rule() {
    const size_t start = cursor_.position();
    MOTE_ASSIGN(const std::string name, take_name());
    skip_space(false);
    if (!cursor_.take("::=")) return cursor_.error("::= must follow the rule's name, not " + cursor_.shown());
    Symbol& symbol = rule_named(name);
    if (symbol.is_defined) {
      cursor_.seek(start);
      return cursor_.error("the rule " + name + " is defined twice");
    }
    symbol.is_defined = true;
    const RuleId rule = symbol.rule;
    skip_space(true);
    MOTE_ASSIGN(const ExpressionId expression, parse_choice(false));
    rules_.define(rule, expression);
    if (cursor_.at_end() || cursor_.peek() == '\n' || cursor_.peek() == '\r') return {};
    return cursor_.error(cursor_.shown() + " is not expected here");
  }

  Result<ExpressionId> parse_choice(bool is_nested) {
    std::vector<ExpressionId> branches;
    do {
      skip_space(true);
      MOTE_ASSIGN(const ExpressionId branch, parse_sequence(is_nested));
      branches.push_back(branch);
    } while (take_bar());
    return rules_.choice(std::move(branches));
  }

  // Takes a '|', which may also begin a following line.
  bool take_bar() {
    const size_t start = cursor_.position();
    skip_space(true);
    if (cursor_.take("|")) return true;
    cursor_.seek(start);
    return false;
  }

  Result<ExpressionId> parse_sequence(bool is_nested) {
    std::vector<ExpressionId> parts;
    while (true) {
      const char c = cursor_.peek();
      if (c != '"' && c != '[' && c != '.' && c != '(' && !is_name_character(c)) {
        if (c == '<' || c == '!') return cursor_.error("tokens in grammars are not supported");
        return rules_.sequence(std::move(parts));
      }
      if (is_nested && starts_rule()) return cursor_.error("a group is not closed: ) is missing");
      MOTE_ASSIGN(ExpressionId part, parse_atom());
      skip_space(is_nested);
      MOTE_ASSIGN(part, parse_quantifiers(part, is_nested));
      if (parts.empty() || !rules_.append_bytes(parts.back(), part)) parts.push_back(part);
    }
  }

  bool starts_rule() {
    const size_t start = cursor_.position();
    while (is_name_character(cursor_.peek())) cursor_.skip();
    skip_space(false);
    const bool starts = cursor_.position() > start && cursor_.comes("::=");
    cursor_.seek(start);
    return starts;
  }

  Result<ExpressionId> parse_atom() {
    if (cursor_.take("\"")) return parse_literal();
    if (cursor_.take("[")) return parse_class();
    if (cursor_.take(".")) return rules_.characters({{0, kLastCodePoint}});
    if (cursor_.take("(")) {
      if (++depth_ > kMaxNesting) return cursor_.error(format("groups are nested deeper than %zu levels", kMaxNesting));
      skip_space(true);
      MOTE_ASSIGN(const ExpressionId inner, parse_choice(true));
      skip_space(true);
      if (!cursor_.take(")")) return cursor_.error("a group is not closed: ) is missing");
      --depth_;
      return inner;
    }
    const size_t start = cursor_.position();
    MOTE_ASSIGN(const std::string name, take_name());
    Symbol& symbol = rule_named(name);
    if (symbol.used_at == cursor_.position()) symbol.used_at = start;
    return rules_.rule(symbol.rule);
  }

  Result<ExpressionId> parse_quantifiers(ExpressionId part, bool is_nested) {
    while (true) {
      if (cursor_.take("*")) {
        part = rules_.repeat(part, 0, kUnbounded);
      } else if (cursor_.take("+")) {
        part = rules_.repeat(part, 1, kUnbounded);
      } else if (cursor_.take("?")) {
        part = rules_.optional(part);
      } else if (cursor_.take("{")) {
        MOTE_ASSIGN(part, parse_counts(part));
      } else {
        return part;
      }
      skip_space(is_nested);
    }
  }

  Result<ExpressionId> parse_counts(ExpressionId part) {
    uint32_t low = 0;
    skip_space(false);
    if (cursor_.peek() != ',') { MOTE_ASSIGN(low, cursor_.take_number()); }
    skip_space(false);
    uint32_t high = low;
    if (cursor_.take(",")) {
      high = kUnbounded;
      skip_space(false);
      if (cursor_.peek() != '}') { MOTE_ASSIGN(high, cursor_.take_number()); }
      skip_space(false);
    }
    if (!cursor_.take("}")) return cursor_.error("} must follow the number of repetitions, not " + cursor_.shown());
    if (low > high) return cursor_.error(format("a repetition of at least %u and at most %u", low, high));
    return rules_.repeat(part, low, high);
  }

  Result<ExpressionId> parse_literal() {
    std::string text;
    while (!cursor_.take("\"")) {
      if (cursor_.at_end() || cursor_.peek() == '\n') return cursor_.error("a text is not closed: \" is missing");
      MOTE_ASSIGN(const char32_t c, take_character());
      append_utf8(text, c);
    }
    return rules_.bytes(std::move(text));
  }

  Result<ExpressionId> parse_class() {
    const bool is_negated = cursor_.take("^");
    std::vector<CodePointRange> ranges;
    while (!cursor_.take("]")) {
      if (cursor_.at_end() || cursor_.peek() == '\n')
        return cursor_.error("a set of characters is not closed: ] is missing");
      MOTE_ASSIGN(const char32_t low, take_character());
      char32_t high = low;
      if (cursor_.peek() == '-' && cursor_.peek(1) != ']') {
        cursor_.skip();
        if (cursor_.at_end()) continue;
        MOTE_ASSIGN(high, take_character());
        if (high < low) return cursor_.error("a range of characters must go from a character to a later one");
      }
      ranges.push_back({low, high});
    }
    ranges = normalized(std::move(ranges));
    return rules_.characters(is_negated ? complement(ranges) : ranges);
  }

  Result<char32_t> take_character() {
    if (!cursor_.take("\\")) return cursor_.take_character();
    const char c = cursor_.peek();
    if (!cursor_.at_end()) cursor_.skip();
    switch (c) {
      case 'n': return U'\n';
      case 'r': return U'\r';
      case 't': return U'\t';
      case '\\':
      case '"':
      case '[':
      case ']': return static_cast<char32_t>(c);
      case 'x': return cursor_.take_hexadecimal(2);
      case 'u': return cursor_.take_hexadecimal(4);
      case 'U': return cursor_.take_hexadecimal(8);
      default: break;
    }
    return cursor_.error("after a backslash one of n r t \\ \" [ ] x u U must follow");
  }

  Cursor cursor_;
  Rules rules_;
  std::map<std::string, Symbol> symbols_;
  size_t depth_ = 0;
};

}  // namespace

Result<Rules> parse_gbnf(std::string_view source, WorkBudget& budget) { return GbnfParser(source, budget).parse(); }

}  // namespace mote::constraints
