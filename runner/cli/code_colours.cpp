#include "runner/cli/code_colours.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mote::cli {
namespace {

constexpr std::string_view kKeyword = "\x1b[35m";
constexpr std::string_view kString = "\x1b[32m";
constexpr std::string_view kNumber = "\x1b[33m";
constexpr std::string_view kComment = "\x1b[2m";
constexpr std::array<std::string_view, 94> kKeywords = {
    "abstract", "and",   "as",     "async",    "await",    "begin",   "bool",   "break",     "case",      "catch",
    "char",     "class", "const",  "continue", "def",      "default", "defer",  "del",       "do",        "done",
    "double",   "elif",  "else",   "end",      "enum",     "esac",    "except", "export",    "extends",   "false",
    "False",    "fi",    "final",  "finally",  "float",    "fn",      "for",    "from",      "func",      "function",
    "global",   "go",    "goto",   "if",       "impl",     "import",  "in",     "int",       "interface", "is",
    "lambda",   "let",   "local",  "long",     "loop",     "match",   "mut",    "namespace", "new",       "nil",
    "None",     "not",   "null",   "or",       "override", "package", "pass",   "private",   "protected", "pub",
    "public",   "raise", "return", "select",   "self",     "short",   "static", "struct",    "super",     "switch",
    "template", "then",  "this",   "throw",    "true",     "True",    "try",    "type",      "typename",  "using",
    "var",      "void",  "while",  "yield"};

struct Languages {
  std::string_view comment;
  std::string_view names;  // separated by spaces
};
constexpr std::array<Languages, 4> kLanguages = {{
    {"#", " python py python3 sh bash shell zsh console yaml yml toml ruby rb r perl make makefile dockerfile elixir "},
    {"//",
     " c cpp c++ h hpp cs csharp java javascript js jsx typescript ts tsx go rust rs swift kotlin kt scala dart "
     "php proto glsl "},
    {"--", " sql lua haskell hs "},
    {"", " json html xml css "},
}};

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

void CodeColours::begin(std::string_view language, bool has_colour) {
  *this = CodeColours();
  std::string name = " ";
  for (const char c : language.substr(0, language.find_first_of(" \t{,:"))) {
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (name == " " || !has_colour) return;
  const auto found = std::ranges::find_if(
      kLanguages, [&](const Languages& each) { return each.names.find(name + " ") != std::string_view::npos; });
  if (found == kLanguages.end()) return;
  is_known_ = true;
  comment_ = found->comment;
}

std::string CodeColours::feed(std::string_view text) {
  if (!is_known_) return std::string(text);
  for (const char c : text) put(c);
  return std::exchange(out_, "");
}

std::string CodeColours::finish() {
  flush_word();
  if (quote_ != 0 || is_comment_) out_ += kStyleOff;
  quote_ = 0;
  is_comment_ = false;
  return std::exchange(out_, "");
}

void CodeColours::put(char c) {
  if (quote_ != 0 || is_comment_) {
    const bool ends_string = quote_ != 0 && c == quote_ && !is_escaped_;
    is_escaped_ = c == '\\' && !is_escaped_;
    if (c == '\n') out_ += kStyleOff;
    out_ += c;
    if (ends_string) out_ += kStyleOff;
    if (ends_string || c == '\n') {
      quote_ = 0;
      is_comment_ = false;
    }
    return;
  }
  // What may begin a comment is held back like a word.
  const bool is_mark = !comment_.empty() && c == comment_[0];
  if (is_mark && comment_.substr(0, word_.size()) != word_) flush_word();
  if (is_mark && comment_.starts_with(word_ + c)) {
    word_ += c;
    if (word_ != comment_) return;
    out_ += kComment;
    out_ += std::exchange(word_, "");
    is_comment_ = true;
    return;
  }
  if (is_word(c)) {
    if (!word_.empty() && !is_word(word_[0])) flush_word();
    word_ += c;
    return;
  }
  flush_word();
  if (c == '"' || c == '\'' || c == '`') {
    out_ += kString;
    quote_ = c;
    is_escaped_ = false;
  }
  out_ += c;
}

void CodeColours::flush_word() {
  if (word_.empty()) return;
  const bool is_number = word_[0] >= '0' && word_[0] <= '9';
  const bool is_keyword = std::ranges::find(kKeywords, word_) != kKeywords.end();
  if (is_number || is_keyword) out_ += is_number ? kNumber : kKeyword;
  out_ += word_;
  if (is_number || is_keyword) out_ += kStyleOff;
  word_.clear();
}

}  // namespace mote::cli
