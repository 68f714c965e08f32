#include "runner/replies/value_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "runner/replies/text.h"

namespace mote::reply {
namespace {

constexpr std::array<std::string_view, 1> kJsonQuotes = {"\""};
constexpr std::array<std::string_view, 2> kPythonQuotes = {"\"", "'"};
constexpr std::array<std::string_view, 3> kGemmaQuotes = {"<|\"|>", "<escape>", "\""};

struct Word {
  std::string_view written;
  std::string_view json;
  bool is_json;
};
constexpr std::array<Word, 6> kWords = {{{"true", "true", true},
                                         {"false", "false", true},
                                         {"null", "null", true},
                                         {"True", "true", false},
                                         {"False", "false", false},
                                         {"None", "null", false}}};
constexpr size_t kMaxNumberBytes = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool is_hex(char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

size_t digits(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - from;
}

// RFC 8259, section 6.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return false;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = digits(text, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t exponent = digits(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

}  // namespace

const ValueSyntax kJsonSyntax = {.quotes = kJsonQuotes, .is_json = true};
const ValueSyntax kPythonSyntax = {.quotes = kPythonQuotes, .has_escapes = true};
const ValueSyntax kGemmaSyntax = {.quotes = kGemmaQuotes, .has_bare_keys = true};

Step ValueReader::feed(char c, std::string& json) {
  switch (state_) {
    case State::kString: return read_string(c, json);
    case State::kEscape: return read_escape(c, json);
    case State::kHex: return read_hex(c, json);
    case State::kQuote: return read_quote(c, json);
    case State::kNumber:
    case State::kWord: return read_scalar(c, json);
    case State::kBareKey: return read_bare_key(c, json);
    default: break;
  }
  if (is_white_space(c)) {
    if (!open_.empty()) json += c;
    return Step::kMore;
  }
  switch (state_) {
    case State::kFirstItem:
      if (c == ']') return close(c, json);
      return begin_value(c, json);
    case State::kFirstKey:
      if (c == '}') return close(c, json);
      return begin_key(c, json);
    case State::kKey: return begin_key(c, json);
    case State::kColon:
      if (c != ':') return Step::kError;
      json += c;
      state_ = State::kValue;
      return Step::kMore;
    case State::kComma: return after_value(c, json);
    default: return begin_value(c, json);
  }
}

Step ValueReader::finish(std::string& json) {
  if (state_ == State::kNumber || state_ == State::kWord) return open_.empty() ? end_scalar(json) : Step::kError;
  return Step::kError;
}

bool ValueReader::begins_quote(char c) const {
  for (const std::string_view quote : syntax_->quotes) {
    if (quote[0] == c) return true;
  }
  return false;
}

Step ValueReader::begin_value(char c, std::string& json) {
  is_key_ = false;
  if (c == '{' || c == '[') return open(c, json);
  if (begins_quote(c)) {
    state_ = State::kQuote;
    return read_quote(c, json);
  }
  if (c != '-' && !is_digit(c) && !is_letter(c)) return Step::kError;
  state_ = is_letter(c) ? State::kWord : State::kNumber;
  held_ = c;
  return may_be_scalar() ? Step::kMore : Step::kError;
}

bool ValueReader::may_be_scalar() const {
  if (state_ == State::kNumber) return held_.size() <= kMaxNumberBytes;
  return std::any_of(kWords.begin(), kWords.end(), [&](const Word& word) { return word.written.starts_with(held_); });
}

Step ValueReader::begin_key(char c, std::string& json) {
  is_key_ = true;
  if (begins_quote(c)) {
    state_ = State::kQuote;
    return read_quote(c, json);
  }
  if (!syntax_->has_bare_keys || !is_name_character(c) || c == ':') return Step::kError;
  json += '"';
  json += c;
  state_ = State::kBareKey;
  return Step::kMore;
}

Step ValueReader::read_bare_key(char c, std::string& json) {
  if (c == ':') {
    json += "\":";
    state_ = State::kValue;
    return Step::kMore;
  }
  if (c != ' ' && !is_name_character(c)) return Step::kError;
  append_json_escaped(json, c);
  return Step::kMore;
}

Step ValueReader::open(char bracket, std::string& json) {
  if (open_.size() == kMaxDepth) return Step::kError;
  open_ += bracket;
  json += bracket;
  state_ = bracket == '{' ? State::kFirstKey : State::kFirstItem;
  return Step::kMore;
}

Step ValueReader::close(char c, std::string& json) {
  if (open_.empty() || (open_.back() == '{') != (c == '}')) return Step::kError;
  open_.pop_back();
  json += c;
  return end_value();
}

Step ValueReader::end_value() {
  state_ = State::kComma;
  return open_.empty() ? Step::kEnd : Step::kMore;
}

Step ValueReader::after_value(char c, std::string& json) {
  if (c == '}' || c == ']') return close(c, json);
  if (c != ',' || open_.empty()) return Step::kError;
  json += c;
  state_ = open_.back() == '{' ? State::kKey : State::kValue;
  return Step::kMore;
}

Step ValueReader::read_quote(char c, std::string& json) {
  held_ += c;
  for (const std::string_view quote : syntax_->quotes) {
    if (!quote.starts_with(held_)) continue;
    if (quote.size() > held_.size()) return Step::kMore;
    quote_ = quote;
    held_.clear();
    json += '"';
    state_ = State::kString;
    return Step::kMore;
  }
  return Step::kError;
}

Step ValueReader::read_string(char c, std::string& json) {
  if (syntax_->is_json) {
    if (c == '"') return end_string(json);
    if (static_cast<unsigned char>(c) < 0x20) return Step::kError;
    if (c == '\\') state_ = State::kEscape;
    json += c;
    return Step::kMore;
  }
  if (syntax_->has_escapes && c == '\\') {
    state_ = State::kEscape;
    return Step::kMore;
  }
  held_ += c;
  while (!held_.empty() && !quote_.starts_with(held_)) {
    append_json_escaped(json, held_[0]);
    held_.erase(0, 1);
  }
  return held_ == quote_ ? end_string(json) : Step::kMore;
}

Step ValueReader::end_string(std::string& json) {
  json += '"';
  held_.clear();
  if (!is_key_) return end_value();
  state_ = State::kColon;
  return Step::kMore;
}

Step ValueReader::read_escape(char c, std::string& json) {
  state_ = State::kString;
  if (c == 'u' || (!syntax_->is_json && (c == 'x' || c == 'U'))) {
    state_ = State::kHex;
    held_.clear();
    hex_digits_ = c == 'u' ? 4 : c == 'x' ? 2 : 8;
    if (syntax_->is_json) json += c;
    return Step::kMore;
  }
  if (syntax_->is_json) {
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return Step::kError;
    json += c;
    return Step::kMore;
  }
  constexpr std::string_view kNames = "nrtbfav0";
  constexpr std::string_view kControls("\n\r\t\b\f\a\v\0", 8);
  if (const size_t found = kNames.find(c); found != std::string_view::npos) {
    append_json_escaped(json, kControls[found]);
  } else if (c != '\n') {  // an escaped end of line is nothing
    if (c != '\'' && c != '"' && c != '\\') json += "\\\\";
    append_json_escaped(json, c);
  }
  return Step::kMore;
}

Step ValueReader::read_hex(char c, std::string& json) {
  if (!is_hex(c)) return Step::kError;
  if (syntax_->is_json) json += c;
  held_ += c;
  if (held_.size() < hex_digits_) return Step::kMore;
  state_ = State::kString;
  const std::string found = std::exchange(held_, {});
  if (syntax_->is_json) return Step::kMore;
  if (hex_digits_ < 8) {
    json += "\\u" + std::string(4 - found.size(), '0') + found;
    return Step::kMore;
  }
  const unsigned long code_point = std::stoul(found, nullptr, 16);
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) return Step::kError;
  std::string text;
  append_utf8(text, static_cast<char32_t>(code_point));
  for (const char byte : text) append_json_escaped(json, byte);
  return Step::kMore;
}

Step ValueReader::read_scalar(char c, std::string& json) {
  const bool goes_on = state_ == State::kWord
                           ? is_letter(c)
                           : is_digit(c) || std::string_view("+-.eE").find(c) != std::string_view::npos;
  if (goes_on) {
    held_ += c;
    return may_be_scalar() ? Step::kMore : Step::kError;
  }
  const Step ended = end_scalar(json);
  if (ended == Step::kError) return ended;
  return open_.empty() ? Step::kEndBefore : feed(c, json);
}

Step ValueReader::end_scalar(std::string& json) {
  const std::string written = std::exchange(held_, {});
  if (state_ == State::kNumber) {
    if (!is_json_number(written)) return Step::kError;
    json += written;
    return end_value();
  }
  for (const Word& word : kWords) {
    if (word.written != written || (syntax_->is_json && !word.is_json)) continue;
    json += word.json;
    return end_value();
  }
  return Step::kError;
}

std::optional<std::string> value_as_json(std::string_view text, const ValueSyntax& syntax) {
  ValueReader reader(syntax);
  std::string json;
  for (size_t i = 0; i < text.size(); ++i) {
    const Step step = reader.feed(text[i], json);
    if (step == Step::kMore) continue;
    if (step == Step::kEnd && i + 1 == text.size()) return json;
    return std::nullopt;
  }
  if (reader.finish(json) != Step::kEnd) return std::nullopt;
  return json;
}

}  // namespace mote::reply
