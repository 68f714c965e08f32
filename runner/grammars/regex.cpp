#include "runner/grammars/regex.h"

#include "runner/grammars/budget.h"
#include "runner/grammars/cursor.h"

namespace mote::constraints {
namespace {

using Ranges = std::vector<CodePointRange>;

constexpr size_t kMinRangesToNormalize = 4096;
const Ranges kDigits = {{'0', '9'}};
const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpace = {{'\t', '\r'}, {' ', ' '}};
// Every character that some engine counts as a space; \S matches none of these.
const Ranges kAnySpace = {{'\t', '\r'},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                          {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const Ranges kAny = {{0, kLastCodePoint}};
const Ranges kNotAscii = {{0x80, kLastCodePoint}};

Ranges with_all_but_ascii(Ranges ranges) {
  ranges.insert(ranges.end(), kNotAscii.begin(), kNotAscii.end());
  return normalized(std::move(ranges));
}

// Engines disagree about \d, \w and \s outside of ASCII, so only texts that match in all engines are accepted.
// `widest`: the characters that any engine counts to the set; otherwise those that every engine does.
Ranges shorthand(char32_t letter, bool widest) {
  switch (letter) {
    case 'd': return widest ? with_all_but_ascii(kDigits) : kDigits;
    case 'w': return widest ? with_all_but_ascii(kWord) : kWord;
    case 's': return widest ? kAnySpace : kSpace;
    default: return complement(shorthand(letter - 'A' + 'a', !widest));
  }
}

class RegexParser {
 public:
  RegexParser(std::string_view source, const RegexOptions& options, Rules& rules)
      : cursor_(source, options.what), options_(options), rules_(rules) {}

  Result<std::vector<RegexBranch>> parse() {
    std::vector<RegexBranch> branches;
    do {
      const bool is_anchored = cursor_.take("^");
      MOTE_ASSIGN(const ExpressionId body, parse_sequence());
      const bool is_anchored_at_end = cursor_.take("$");
      if (!cursor_.at_end() && cursor_.peek() != '|') return unexpected();
      branches.push_back({body, options_.searches && !is_anchored, options_.searches && !is_anchored_at_end});
    } while (cursor_.take("|"));
    MOTE_RETURN_IF_ERROR(rules_.budget().status());
    return branches;
  }

  Result<ExpressionId> parse_whole() {
    MOTE_ASSIGN(const std::vector<RegexBranch> branches, parse());
    std::vector<ExpressionId> expressions;
    for (const RegexBranch& branch : branches) {
      ExpressionId expression = branch.body;
      if (branch.is_open_before) expression = rules_.sequence({anything(), expression});
      if (branch.is_open_behind) expression = rules_.sequence({expression, anything()});
      expressions.push_back(expression);
    }
    return rules_.choice(std::move(expressions));
  }

 private:
  ExpressionId encode(Ranges ranges) {
    return options_.encode ? options_.encode(rules_, normalized(std::move(ranges)))
                           : rules_.characters(std::move(ranges));
  }

  ExpressionId anything() { return rules_.repeat(encode(kAny), 0, kUnbounded); }

  Status unexpected() const {
    if (cursor_.peek() == '^' || cursor_.peek() == '$') {
      return cursor_.error(
          cursor_.shown() +
          ": an anchor is accepted only at the start (^) or the end ($) of the whole expression or of one of "
          "its outermost alternatives");
    }
    return cursor_.error(cursor_.shown() + " is not expected here");
  }

  Result<ExpressionId> parse_choice() {
    std::vector<ExpressionId> branches;
    do {
      MOTE_ASSIGN(const ExpressionId branch, parse_sequence());
      branches.push_back(branch);
    } while (cursor_.take("|"));
    return rules_.choice(std::move(branches));
  }

  Result<ExpressionId> parse_sequence() {
    std::vector<ExpressionId> parts;
    while (!cursor_.at_end() && cursor_.peek() != '|' && cursor_.peek() != ')' && cursor_.peek() != '$') {
      MOTE_ASSIGN(const ExpressionId part, parse_repeat());
      if (parts.empty() || !rules_.append_bytes(parts.back(), part)) parts.push_back(part);
    }
    return rules_.sequence(std::move(parts));
  }

  Result<ExpressionId> parse_repeat() {
    MOTE_ASSIGN(const ExpressionId part, parse_atom());
    uint32_t low = 0;
    uint32_t high = 0;
    MOTE_ASSIGN(const bool repeats, take_quantifier(&low, &high));
    if (!repeats) return part;
    if (cursor_.peek() == '+') return cursor_.error("possessive quantifiers are not supported");
    cursor_.take("?");  // a lazy quantifier matches the same texts
    const size_t end = cursor_.position();
    uint32_t unused = 0;
    MOTE_ASSIGN(const bool repeats_again, take_quantifier(&unused, &unused));
    cursor_.seek(end);
    if (repeats_again) return cursor_.error("a quantifier of a quantifier: put the inner one in a group (?:...)");
    return rules_.repeat(part, low, high);
  }

  Result<bool> take_quantifier(uint32_t* low, uint32_t* high) {
    const size_t start = cursor_.position();
    *low = 0;
    *high = kUnbounded;
    if (cursor_.take("*")) return true;
    if (cursor_.take("+")) {
      *low = 1;
      return true;
    }
    if (cursor_.take("?")) {
      *high = 1;
      return true;
    }
    if (!is_counted()) return false;
    cursor_.skip();
    if (cursor_.peek() != ',') { MOTE_ASSIGN(*low, cursor_.take_number()); }
    *high = *low;
    if (cursor_.take(",")) {
      *high = kUnbounded;
      if (cursor_.peek() != '}') { MOTE_ASSIGN(*high, cursor_.take_number()); }
    }
    cursor_.skip();
    if (*low > *high) {
      cursor_.seek(start);
      return cursor_.error(format("a repetition of at least %u and at most %u", *low, *high));
    }
    return true;
  }

  // {3}, {3,}, {3,5}, {,5}, {,}; other braces are text.
  bool is_counted() const {
    if (cursor_.peek() != '{') return false;
    size_t at = 1;
    bool has_digits = false;
    bool has_comma = false;
    for (;; ++at) {
      const char c = cursor_.peek(at);
      if (c >= '0' && c <= '9')
        has_digits = true;
      else if (c == ',' && !has_comma)
        has_comma = true;
      else
        return c == '}' && (has_digits || has_comma);
    }
  }

  Result<ExpressionId> parse_atom() {
    switch (cursor_.peek()) {
      case '(': return parse_group();
      case '[': {
        MOTE_ASSIGN(Ranges ranges, parse_class());
        return encode(std::move(ranges));
      }
      case '.': cursor_.skip(); return encode(options_.dot_is_any ? kAny : complement(Ranges{{'\n', '\n'}}));
      case '*':
      case '+':
      case '?': return cursor_.error(cursor_.shown() + ": there is nothing to repeat");
      case '^': return unexpected();
      case '\\': {
        bool is_set = false;
        MOTE_ASSIGN(Ranges ranges, parse_escape(false, false, &is_set));
        return encode(is_set ? std::move(ranges) : both_cases(std::move(ranges)));
      }
      default: {
        uint32_t unused = 0;
        MOTE_ASSIGN(const bool repeats, take_quantifier(&unused, &unused));
        if (repeats) return cursor_.error("there is nothing to repeat");
        const char32_t c = cursor_.take_character();
        return encode(both_cases({{c, c}}));
      }
    }
  }

  Result<ExpressionId> parse_group() {
    MOTE_RETURN_IF_ERROR(enter());
    cursor_.skip();
    if (cursor_.peek() == '?') MOTE_RETURN_IF_ERROR(skip_group_kind());
    MOTE_ASSIGN(const ExpressionId inner, parse_choice());
    if (cursor_.peek() == '$') return unexpected();
    if (!cursor_.take(")")) return cursor_.error("a group is not closed: ) is missing");
    --depth_;
    return inner;
  }

  Status enter() {
    if (++depth_ > kMaxNesting) return cursor_.error(format("groups are nested deeper than %zu levels", kMaxNesting));
    return {};
  }

  // (?:  (?P<name>  (?<name>
  Status skip_group_kind() {
    if (cursor_.take("?:")) return {};
    if (cursor_.comes("?=") || cursor_.comes("?!") || cursor_.comes("?<=") || cursor_.comes("?<!")) {
      return cursor_.error("lookahead and lookbehind are not supported");
    }
    if (!cursor_.take("?P<") && !cursor_.take("?<")) {
      return cursor_.error("of groups that begin with (? only (?:...), (?P<name>...) and (?<name>...) are supported");
    }
    while (!cursor_.at_end() && cursor_.peek() != '>' && cursor_.peek() != ')') cursor_.skip();
    return cursor_.take(">") ? Status() : cursor_.error("the name of a group is not closed: > is missing");
  }

  Result<Ranges> parse_class() {
    cursor_.skip();
    const bool is_negated = cursor_.take("^");
    Ranges ranges;
    size_t allowed = kMinRangesToNormalize;
    for (bool is_first = true; is_first || cursor_.peek() != ']'; is_first = false) {
      if (ranges.size() > allowed) {
        ranges = normalized(std::move(ranges));
        allowed = std::max(allowed, 2 * ranges.size());
      }
      if (cursor_.at_end()) return cursor_.error("a set of characters is not closed: ] is missing");
      bool is_set = false;
      MOTE_ASSIGN(const Ranges low, parse_class_character(is_negated, &is_set));
      const bool is_range = cursor_.peek() == '-' && cursor_.peek(1) != ']' && cursor_.peek(1) != '\0';
      if (!is_range) {
        rules_.budget().count(low.size());
        ranges.insert(ranges.end(), low.begin(), low.end());
        continue;
      }
      cursor_.skip();
      bool is_high_set = false;
      MOTE_ASSIGN(const Ranges high, parse_class_character(is_negated, &is_high_set));
      if (is_set || is_high_set || low[0].low > high[0].high)
        return cursor_.error("a range of characters must go from a character to a later one");
      ranges.push_back({low[0].low, high[0].high});
    }
    cursor_.skip();
    ranges = normalized(both_cases(std::move(ranges)));
    return is_negated ? complement(ranges) : ranges;
  }

  Result<Ranges> parse_class_character(bool widest, bool* is_set) {
    if (cursor_.peek() == '\\') return parse_escape(true, widest, is_set);
    const char32_t c = cursor_.take_character();
    return Ranges{{c, c}};
  }

  // `widest`: the set is going to be negated.
  Result<Ranges> parse_escape(bool in_class, bool widest, bool* is_set) {
    const size_t start = cursor_.position();
    cursor_.skip();
    if (cursor_.at_end()) return cursor_.error("a backslash at the end");
    const auto single = [](char32_t c) { return Ranges{{c, c}}; };
    const char32_t c = cursor_.take_character();
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 's':
      case 'S': *is_set = true; return shorthand(c, widest);
      case 'n': return single('\n');
      case 'r': return single('\r');
      case 't': return single('\t');
      case 'f': return single('\f');
      case 'v': return single('\v');
      case 'a': return single('\a');
      case 'b':
        if (in_class) return single('\b');
        break;
      case '0':
        if (cursor_.peek() < '0' || cursor_.peek() > '9') return single('\0');
        break;
      case 'x':
      case 'u':
      case 'U': {
        MOTE_ASSIGN(const char32_t character, cursor_.take_hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8));
        return single(character);
      }
      default: break;
    }
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_letter) return single(c);
    cursor_.seek(start);
    if (c >= '1' && c <= '9') return cursor_.error("references to groups are not supported");
    return cursor_.error(format("\\%c is not supported", static_cast<char>(c)));
  }

  Ranges both_cases(Ranges ranges) const {
    if (!options_.ignores_case) return ranges;
    const size_t count = ranges.size();
    for (size_t i = 0; i < count; ++i) {
      const auto add = [&](char32_t first, char32_t last, int32_t shift) {
        const char32_t low = std::max(ranges[i].low, first);
        const char32_t high = std::min(ranges[i].high, last);
        if (low <= high) ranges.push_back({low + static_cast<char32_t>(shift), high + static_cast<char32_t>(shift)});
      };
      add('a', 'z', 'A' - 'a');
      add('A', 'Z', 'a' - 'A');
    }
    return ranges;
  }

  Cursor cursor_;
  const RegexOptions& options_;
  Rules& rules_;
  size_t depth_ = 0;
};

}  // namespace

Result<ExpressionId> append_regex(std::string_view source, const RegexOptions& options, Rules& rules) {
  return RegexParser(source, options, rules).parse_whole();
}

Result<std::vector<RegexBranch>> append_regex_branches(std::string_view source, const RegexOptions& options,
                                                       Rules& rules) {
  return RegexParser(source, options, rules).parse();
}

Result<Rules> parse_regex(std::string_view source, WorkBudget& budget) {
  Rules rules(budget);
  const RuleId root = rules.add_rule();
  MOTE_ASSIGN(const ExpressionId expression, append_regex(source, {}, rules));
  rules.define(root, expression);
  return rules;
}

}  // namespace mote::constraints
