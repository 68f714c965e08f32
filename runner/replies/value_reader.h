// One value, byte by byte, from the syntax of a reply to JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mote::reply {

enum class Step {
  kMore,
  kEnd,        // the byte was the last one
  kEndBefore,  // it ended before this byte, which belongs to what follows
  kError,
};

// How values are written.
struct ValueSyntax {
  std::span<const std::string_view> quotes;  // what a string begins and ends with
  bool is_json = false;                      // strings and words are JSON's and pass as they are
  bool has_escapes = false;                  // not JSON's: a backslash begins one of Python's
  bool has_bare_keys = false;
};
extern const ValueSyntax kJsonSyntax;
extern const ValueSyntax kPythonSyntax;  // literals: None, True, 'text', [..], {..: ..}
extern const ValueSyntax kGemmaSyntax;   // {key:<|"|>text<|"|>,..}

// Nesting is counted, not recursed into: at most kMaxDepth.
class ValueReader {
 public:
  static constexpr size_t kMaxDepth = 64;

  explicit ValueReader(const ValueSyntax& syntax) : syntax_(&syntax) {}

  // Appends to `json` what the byte adds to the value.
  Step feed(char c, std::string& json);
  // The text is over: kEnd if that ends a number or a word, else kError.
  Step finish(std::string& json);

 private:
  enum class State {
    kValue,
    kFirstItem,
    kFirstKey,
    kKey,
    kQuote,
    kString,
    kEscape,
    kHex,
    kNumber,
    kWord,
    kBareKey,
    kColon,
    kComma
  };

  Step begin_value(char c, std::string& json);
  Step begin_key(char c, std::string& json);
  Step open(char bracket, std::string& json);
  Step close(char c, std::string& json);
  Step after_value(char c, std::string& json);
  Step read_quote(char c, std::string& json);
  Step read_string(char c, std::string& json);
  Step read_escape(char c, std::string& json);
  Step read_hex(char c, std::string& json);
  Step read_bare_key(char c, std::string& json);
  Step read_scalar(char c, std::string& json);
  bool may_be_scalar() const;
  Step end_scalar(std::string& json);
  Step end_value();
  Step end_string(std::string& json);
  bool begins_quote(char c) const;

  const ValueSyntax* syntax_;
  State state_ = State::kValue;
  std::string open_;  // a bracket for each list and object
  std::string held_;  // a number, a word, digits of an escape, or what may be a quote
  std::string_view quote_;
  size_t hex_digits_ = 0;
  bool is_key_ = false;
};

// A whole text as JSON; nothing if it is no value of that syntax.
std::optional<std::string> value_as_json(std::string_view text, const ValueSyntax& syntax);

}  // namespace mote::reply
