// Oniguruma's syntax, as far as tokenizers use it, to PCRE2's.
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

// The characters that are in one of `categories` only since a release that PCRE2 may not know yet, as members of a class.
std::string newer_members(uint32_t categories) {
  std::string members;
  for (const CategoryRange& range : kNewerCategories) {
    if (((categories >> range.category) & 1) == 0) continue;
    members += format("\\x{%x}-\\x{%x}", static_cast<unsigned>(range.first), static_cast<unsigned>(range.last));
  }
  return members;
}

struct NamedCategories {
  std::string_view name;
  uint32_t categories;
};
constexpr NamedCategories kNamedCategories[] = {
    {"L", kLetters}, {"M", kMarks}, {"N", kNumbers}, {"P", kPunctuation}, {"S", kSymbols},
    {"Lu", category_mask(kLu)}, {"Ll", category_mask(kLl)}, {"Lm", category_mask(kLm)}, {"Lo", category_mask(kLo)},
    {"Mn", category_mask(kMn)}, {"Mc", category_mask(kMc)}, {"Nd", category_mask(kNd)}, {"Pd", category_mask(kPd)},
    {"Po", category_mask(kPo)}, {"Sm", category_mask(kSm)}, {"So", category_mask(kSo)}};

constexpr uint32_t kWordCategories = kLetters | kMarks | category_mask(kNd, kNl, kPc);

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (index_ < pattern_.size()) {
      const char c = pattern_[index_];
      if (c == '\\') {
        MOTE_RETURN_IF_ERROR(escape());
      } else if (in_class_) {
        MOTE_RETURN_IF_ERROR(inside_class(c));
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
      case 'w': set(std::string(kWord) + newer_members(kWordCategories), false); return {};
      case 'd': set("\\p{Nd}" + newer_members(category_mask(kNd)), false); return {};
      case 'p': return property();
      case 'S': in_class_ ? copy(2) : set(kSpace, true); return {};
      case 'W': in_class_ ? copy(2) : set(std::string(kWord) + newer_members(kWordCategories), true); return {};
      case 'D': in_class_ ? copy(2) : set("\\p{Nd}" + newer_members(category_mask(kNd)), true); return {};
      case 'h': case 'H': return unsupported("\\h (hexadecimal digit)");
      case 'R': case 'X': case 'y': case 'Y': case 'K': case 'C': case 'Q': return unsupported("this escape");
      default: return plain_escape();
    }
  }

  // \\p{L} with the characters that PCRE2 may not know. A negated one inside a class stays as it is.
  Status property() {
    const size_t begin = index_;
    MOTE_RETURN_IF_ERROR(plain_escape());
    const std::string_view escaped = pattern_.substr(begin, index_ - begin);
    const bool negated = escaped.size() > 3 && escaped[3] == '^';
    const size_t name = negated ? 4 : 3;
    if (escaped.size() < name + 2 || (negated && in_class_)) return {};
    for (const NamedCategories& known : kNamedCategories) {
      if (known.name != escaped.substr(name, escaped.size() - name - 1)) continue;
      output_.resize(output_.size() - escaped.size());
      std::string members = "\\p{" + std::string(known.name) + "}" + newer_members(known.categories);
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
    if (c == '[') {
      in_class_ = true;
      copy(1);
      if (pattern_.substr(index_, 1) == "^") copy(1);
      if (pattern_.substr(index_, 1) == "]") copy(1);  // a first ] is a member
      return {};
    }
    if (c == '(' && pattern_.substr(index_, 2) == "(*") return unsupported("a verb");
    // In Oniguruma the m flag lets a dot match line ends, and there is no s flag.
    if (c == '(' && (pattern_.substr(index_, 3) == "(?m" || pattern_.substr(index_, 3) == "(?s")) {
      return unsupported("this flag");
    }
    if (c == '}' && pattern_.substr(index_, 2) == "}+") return unsupported("a repeated interval");
    copy(1);
    return {};
  }

  std::string_view pattern_;
  std::string output_;
  size_t index_ = 0;
  bool in_class_ = false;
};

}  // namespace

Result<std::string> translate_to_pcre2(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace mote::tokenizer
