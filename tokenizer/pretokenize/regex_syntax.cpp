// The syntax of Oniguruma and of fancy-regex, as far as tokenizers use it, to PCRE2's.
#include "tokenizer/pretokenize/regex.h"
#include "tokenizer/unicode/characters.h"

namespace mote::tokenizer {
namespace {

// Unicode White_Space. PCRE2's \s also takes U+180E, which stopped being a space in Unicode 6.3.
constexpr std::string_view kSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
// PCRE2's \w leaves out marks and connector punctuation other than the underscore. The numbers are Oniguruma's own.
constexpr std::string_view kWord =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

// The regex crate has no numbers of its own, but joiners.
constexpr std::string_view kRustWord =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"
    "\\x{1f170}-\\x{1f189}";

// The characters that are in one of `categories` only since a release that PCRE2 may not know yet, as members of a
// class.
std::string newer_members(uint32_t categories) {
  std::vector<std::pair<unsigned, unsigned>> ranges;
  for (const CategoryRange& range : kNewerCategories) {
    if (((categories >> range.category) & 1) == 0) continue;
    if (!ranges.empty() && ranges.back().second + 1 == range.first)
      ranges.back().second = range.last;
    else
      ranges.emplace_back(range.first, range.last);
  }
  std::string members;
  for (const auto& [first, last] : ranges) members += format("\\x{%x}-\\x{%x}", first, last);
  return members;
}

struct NamedCategories {
  std::string_view name;
  uint32_t categories;
};
constexpr NamedCategories kNamedCategories[] = {{"L", kLetters},
                                                {"M", kMarks},
                                                {"N", kNumbers},
                                                {"P", kPunctuation},
                                                {"S", kSymbols},
                                                {"Lu", category_mask(kLu)},
                                                {"Ll", category_mask(kLl)},
                                                {"Lm", category_mask(kLm)},
                                                {"Lo", category_mask(kLo)},
                                                {"Mn", category_mask(kMn)},
                                                {"Mc", category_mask(kMc)},
                                                {"Nd", category_mask(kNd)},
                                                {"Pd", category_mask(kPd)},
                                                {"No", category_mask(kNo)},
                                                {"Po", category_mask(kPo)},
                                                {"Sm", category_mask(kSm)},
                                                {"So", category_mask(kSo)}};

constexpr uint32_t kWordCategories = kLetters | kMarks | category_mask(kNd, kNl, kPc);

class Translator {
 public:
  Translator(std::string_view pattern, RegexSyntax syntax)
      : pattern_(pattern),
        is_fancy_(syntax == RegexSyntax::kFancy),
        word_(std::string(is_fancy_ ? kRustWord : kWord) + newer_members(kWordCategories)) {}

  Result<std::string> run() {
    while (index_ < pattern_.size()) {
      if (output_.size() > kMaxTranslatedBytes) return unsupported("what is left of so long a pattern");
      const char c = pattern_[index_];
      if (in_class_) {
        MOTE_RETURN_IF_ERROR(c == '\\' ? escape() : inside_class(c));
      } else if (c == '\\') {
        atom_ = output_.size();
        MOTE_RETURN_IF_ERROR(escape());
      } else {
        MOTE_RETURN_IF_ERROR(outside_class(c));
      }
    }
    return std::move(output_);
  }

 private:
  Status unsupported(const char* what) const {
    return {Code::kInvalidTokenizer, format("regular expression %.200s: %s at offset %zu is not supported",
                                            std::string(pattern_).c_str(), what, index_)};
  }

  void copy(size_t count) {
    output_ += pattern_.substr(index_, count);
    index_ += count;
  }

  void set(std::string_view members, bool negated) {
    if (in_class_) {
      output_ += members;
    } else {
      output_ += negated ? "[^" : "[";
      output_ += members;
      output_ += ']';
    }
    index_ += 2;
  }

  Status escape() {
    const char next = index_ + 1 < pattern_.size() ? pattern_[index_ + 1] : '\0';
    switch (next) {
      case 's': set(kSpace, false); return {};
      case 'w': set(word_, false); return {};
      case 'd': set("\\p{Nd}" + newer_members(category_mask(kNd)), false); return {};
      case 'p': return property();
      case 'S': in_class_ ? copy(2) : set(kSpace, true); return {};
      case 'W': in_class_ ? copy(2) : set(word_, true); return {};
      case 'D': in_class_ ? copy(2) : set("\\p{Nd}" + newer_members(category_mask(kNd)), true); return {};
      case 'b':
      case 'B': in_class_ ? copy(2) : border(next == 'b'); return {};
      case 'P': return property();
      case 'h':
      case 'H': return unsupported("\\h (hexadecimal digit)");
      case 'R':
      case 'X':
      case 'y':
      case 'Y':
      case 'K':
      case 'C':
      case 'Q':
      case 'Z':
      case 'G': return unsupported("this escape");
      default: return plain_escape();
    }
  }

  // Where a word begins or ends, or (not `wanted`) where none does.
  void border(bool wanted) {
    const std::string in = "[" + word_ + "]";
    output_ +=
        "(?:(?<=" + in + ")(?" + (wanted ? "!" : "=") + in + ")|(?<!" + in + ")(?" + (wanted ? "=" : "!") + in + "))";
    index_ += 2;
  }

  // \\p{L} with the characters that PCRE2 may not know. A negated one inside a class stays as it is.
  Status property() {
    const size_t begin = index_;
    MOTE_RETURN_IF_ERROR(plain_escape());
    std::string_view name = pattern_.substr(begin, index_ - begin);
    bool negated = name[1] == 'P';
    if (name.size() > 3 && name[2] == '{') {
      name = name.substr(3, name.size() - 4);
      if (name.substr(0, 1) == "^") {
        negated = !negated;
        name.remove_prefix(1);
      }
    } else {
      name.remove_prefix(2);
    }
    if (negated && in_class_) return {};
    for (const NamedCategories& known : kNamedCategories) {
      if (known.name != name) continue;
      output_.resize(output_.size() - (index_ - begin));
      const std::string members = "\\p{" + std::string(name) + "}" + newer_members(known.categories);
      output_ += in_class_ ? members : (negated ? "[^" : "[") + members + "]";
    }
    return {};
  }

  // Takes the braces of \p{L} and \x{20} along: they are no interval.
  Status plain_escape() {
    size_t end = index_ + 2;
    if (end > pattern_.size()) return unsupported("an unfinished escape");
    if (pattern_.substr(end, 1) == "{") {
      end = pattern_.find('}', end);
      if (end == std::string_view::npos) return unsupported("an unfinished escape");
      ++end;
    }
    copy(end - index_);
    return {};
  }

  Status inside_class(char c) {
    if (c == '[' && pattern_.substr(index_, 2) != "[:") return unsupported("a class inside a class");
    if (c == '&' && pattern_.substr(index_, 2) == "&&") return unsupported("an intersection of classes");
    if (c == '[') {
      const size_t end = pattern_.find(":]", index_);
      if (end == std::string_view::npos) return unsupported("an unfinished class");
      copy(end + 2 - index_);
      return {};
    }
    if (c == ']') in_class_ = false;
    copy(1);
    return {};
  }

  Status outside_class(char c) {
    switch (c) {
      case '[': return open_class();
      case '(': return open_group();
      case ')': return close_group();
      case '{': return interval();
      case '^':
      case '$':
        atom_ = output_.size();
        if (!is_fancy_) break;  // at the borders of lines
        output_ += c == '^' ? "\\A" : "\\z";
        ++index_;
        return {};
      case '*':
      case '+':
      case '?': break;
      default:
        if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) atom_ = output_.size();
    }
    copy(1);
    return {};
  }

  Status open_class() {
    atom_ = output_.size();
    in_class_ = true;
    copy(1);
    if (pattern_.substr(index_, 1) == "^") copy(1);
    if (pattern_.substr(index_, 1) == "]") copy(1);  // a first ] is a member
    return {};
  }

  Status open_group() {
    const std::string_view start = pattern_.substr(index_, 3);
    if (start.substr(0, 2) == "(*") return unsupported("a verb");
    if (start == "(?#") return unsupported("a comment");
    // In Oniguruma the m flag lets a dot match line ends, and there is no s flag.
    for (size_t at = index_ + 2; start.substr(0, 2) == "(?" && at < pattern_.size(); ++at) {
      const char flag = pattern_[at];
      if (flag == 'm' || flag == 'x' || flag == 'U' || (flag == 's' && !is_fancy_)) return unsupported("this flag");
      if (flag != 'i' && flag != 's' && flag != '-') break;
    }
    groups_.push_back(output_.size());
    copy(1);
    return {};
  }

  Status close_group() {
    if (groups_.empty()) return unsupported("a closing parenthesis");
    atom_ = groups_.back();
    groups_.pop_back();
    copy(1);
    return {};
  }

  size_t digits_from(size_t at) const {
    while (at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '9') ++at;
    return at;
  }

  // {n}, {n,}, {n,m}, {,m}; anything else is text. Behind it Oniguruma reads + as another repetition, as it reads ?
  // behind {n}.
  Status interval() {
    const size_t low_end = digits_from(index_ + 1);
    const bool has_comma = pattern_.substr(low_end, 1) == ",";
    const size_t end = has_comma ? digits_from(low_end + 1) : low_end;
    const bool has_low = low_end > index_ + 1;
    const bool has_high = has_comma && end > low_end + 1;
    if (pattern_.substr(end, 1) != "}" || (!has_low && !has_high)) {
      atom_ = output_.size();
      output_ += "\\{";
      ++index_;
      return {};
    }
    output_ += has_low ? "{" : "{0";
    ++index_;
    copy(end + 1 - index_);
    const std::string_view next = pattern_.substr(index_, 1);
    const bool repeated = next == "*" || next == "{" || (!is_fancy_ && (next == "+" || (next == "?" && !has_comma)));
    if (!repeated) return {};
    output_.insert(atom_, "(?:");
    output_ += ')';
    return {};
  }

  std::string_view pattern_;
  bool is_fancy_;
  std::string word_;  // members of the class that is \w
  std::string output_;
  size_t index_ = 0;
  size_t atom_ = 0;             // where in the output what a quantifier repeats begins
  std::vector<size_t> groups_;  // where in the output the open groups begin
  bool in_class_ = false;
};

}  // namespace

Result<std::string> translate_to_pcre2(std::string_view pattern, RegexSyntax syntax) {
  return Translator(pattern, syntax).run();
}

}  // namespace mote::tokenizer
