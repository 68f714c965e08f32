#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/decimal.h"
#include "base/utf8.h"

namespace mote {
namespace {

using Kind = JsonTree::Kind;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class JsonReader {
 public:
  JsonReader(std::string_view text, JsonEvents& events) : text_(text), events_(events) {}

  // No recursion: how deep lists and objects may nest is said by `events`.
  bool read() {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    do {
      skip_space();
      if (const char c = peek(); c == '{' || c == '[') {
        ++at_;
        if (!events_.open(c == '{')) return false;
        open_ += c == '{' ? '}' : ']';
        skip_space();
        if (peek() != open_.back()) {
          if (!read_key()) return false;
          continue;
        }
      } else if (!read_scalar()) {
        return false;
      }
      if (!end_value()) return false;
    } while (!is_done_);
    return true;
  }

  size_t at() const { return at_; }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  // After a value, up to the next of the innermost list or object that is not over.
  bool end_value() {
    for (skip_space(); !open_.empty(); skip_space()) {
      if (take(',')) return read_key();
      if (!take(open_.back())) return false;
      open_.pop_back();
      events_.close();
    }
    is_done_ = true;
    return at_ == text_.size();
  }

  // In an object, what stands before a value.
  bool read_key() {
    if (open_.back() != '}') return true;
    skip_space();
    std::string name;
    if (!read_string(name)) return false;
    events_.key(std::move(name));
    skip_space();
    return take(':');
  }

  bool read_scalar() {
    if (peek() == '"') {
      std::string text;
      if (!read_string(text)) return false;
      events_.string(std::move(text));
      return true;
    }
    if (peek() == '-' || is_digit(peek())) return read_number();
    for (const std::string_view word : {"null", "true", "false"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      if (word == "null")
        events_.null();
      else
        events_.boolean(word == "true");
      return true;
    }
    return false;
  }

  bool skip_digits() {
    const size_t first = at_;
    while (is_digit(peek())) ++at_;
    return at_ > first;
  }

  bool read_number() {
    const size_t first = at_;
    take('-');
    if (!take('0') && !skip_digits()) return false;
    const size_t whole = at_;
    if (take('.') && !skip_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!skip_digits()) return false;
    }
    const std::string_view digits = text_.substr(first, at_ - first);
    const std::optional<double> value = read_decimal(digits);
    if (!value || !std::isfinite(*value)) return false;
    events_.number(digits, *value, at_ == whole && fits_integer(digits));
    return true;
  }

  static bool fits_integer(std::string_view digits) {
    int64_t with_sign;
    uint64_t without;
    const char *first = digits.data(), *last = first + digits.size();
    return std::from_chars(first, last, with_sign).ec == std::errc() ||
           std::from_chars(first, last, without).ec == std::errc();
  }

  bool read_string(std::string& to) {
    if (!take('"')) return false;
    while (!take('"')) {
      const size_t end = std::min(text_.find_first_of("\"\\", at_), text_.size());
      for (; at_ < end; ++at_) {
        if (static_cast<unsigned char>(text_[at_]) < ' ') return false;
        to += text_[at_];
      }
      if (at_ == text_.size()) return false;
      if (take('\\') && !read_escape(to)) return false;
    }
    return true;
  }

  bool read_escape(std::string& to) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t found = kNames.find(peek()); at_ < text_.size() && found != kNames.npos) {
      ++at_;
      to += kMeant[found];
      return true;
    }
    std::optional<char32_t> code = read_unit();
    if (code && *code >= 0xD800 && *code < 0xDC00) {
      const std::optional<char32_t> second = take('\\') ? read_unit() : std::nullopt;
      if (!second || *second < 0xDC00 || *second >= 0xE000) return false;
      code = 0x10000 + ((*code - 0xD800) << 10) + (*second - 0xDC00);
    }
    if (!code || (*code >= 0xDC00 && *code < 0xE000)) return false;
    append_utf8(to, *code);
    return true;
  }

  // What four hexadecimal digits after u stand for.
  std::optional<char32_t> read_unit() {
    if (!take('u') || text_.size() - at_ < 4) return std::nullopt;
    uint16_t unit;
    const char *first = text_.data() + at_, *last = first + 4;
    if (const auto read = std::from_chars(first, last, unit, 16); read.ec != std::errc() || read.ptr != last)
      return std::nullopt;
    at_ += 4;
    return unit;
  }

  std::string_view text_;
  JsonEvents& events_;
  size_t at_ = 0;
  std::string open_;  // what ends each list and object that is not over
  bool is_done_ = false;
};

class TreeBuilder : public JsonEvents {
 public:
  explicit TreeBuilder(size_t max_depth) : max_depth_(max_depth) {}
  JsonTree take_root() { return std::move(root_); }

  void null() override { place({}); }
  void boolean(bool value) override { place({Kind::kBoolean, value ? 1.0 : 0.0, {}, {}, {}}); }
  void number(std::string_view digits, double value, bool is_integer) override {
    place({is_integer ? Kind::kInteger : Kind::kFloat, value, std::string(digits), {}, {}});
  }
  void string(std::string text) override { place({Kind::kString, 0.0, std::move(text), {}, {}}); }
  // Pointers to the open values stay valid, because only the innermost of them gets children.
  bool open(bool is_object) override {
    if (open_.size() == max_depth_) return false;
    open_.push_back(&place({is_object ? Kind::kObject : Kind::kArray, 0.0, {}, {}, {}}));
    return true;
  }
  void key(std::string name) override { open_.back()->names.push_back(std::move(name)); }
  void close() override { open_.pop_back(); }

 private:
  JsonTree& place(JsonTree value) {
    if (open_.empty()) return root_ = std::move(value);
    return open_.back()->children.emplace_back(std::move(value));
  }

  size_t max_depth_;
  JsonTree root_;
  std::vector<JsonTree*> open_;
};

}  // namespace

Status read_json(std::string_view json, JsonEvents& events) {
  const size_t valid = valid_utf8_prefix(json);
  MOTE_REQUIRE(valid == json.size(), Code::kInvalidArgument, "byte %zu: must be UTF-8", valid);
  JsonReader reader(json, events);
  MOTE_REQUIRE(reader.read(), Code::kInvalidArgument, "byte %zu: must be JSON", reader.at());
  return {};
}

const JsonTree* JsonTree::find(std::string_view name) const {
  for (size_t i = names.size(); i-- > 0;) {
    if (names[i] == name) return &children[i];
  }
  return nullptr;
}

std::string JsonTree::dump() const {
  if (kind == Kind::kNull) return "null";
  if (kind == Kind::kBoolean) return number != 0.0 ? "true" : "false";
  if (is_number()) return text;
  if (kind == Kind::kString) return json_string(text);
  std::string all(1, kind == Kind::kObject ? '{' : '[');
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) all += ',';
    if (kind == Kind::kObject) all += json_string(names[i]) + ':';
    all += children[i].dump();
  }
  return all + (kind == Kind::kObject ? '}' : ']');
}

std::optional<JsonTree> parse_json_tree(std::string_view json, size_t max_depth) {
  TreeBuilder builder(max_depth);
  if (!read_json(json, builder).ok()) return std::nullopt;
  return builder.take_root();
}

JsonText::JsonText(std::nullptr_t) : text_("null") {}
JsonText::JsonText(bool value) : text_(value ? "true" : "false") {}
JsonText::JsonText(std::string_view value) : text_(json_string(value)) {}
JsonText::JsonText(Members members) : text_("{}") { add(members); }
JsonText JsonText::array() { return raw("[]"); }
JsonText JsonText::object() { return raw("{}"); }

JsonText JsonText::raw(std::string text) {
  JsonText result(nullptr);
  result.text_ = std::move(text);
  return result;
}

std::string JsonText::number(int64_t value) { return std::to_string(value); }
std::string JsonText::number(uint64_t value) { return std::to_string(value); }
std::string JsonText::number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = shortest_text(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void JsonText::append(std::string_view item) {
  const char end = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  text_ += item;
  text_ += end;
}

void JsonText::push_back(const JsonText& item) { append(item.text_); }

void JsonText::add(std::string_view name, const JsonText& value) { append(json_string(name) + ':' + value.text_); }

void JsonText::add(Members members) {
  for (const auto& [name, value] : members) add(name, value);
}

std::string json_lines(const std::vector<std::pair<std::string_view, JsonText>>& members) {
  std::string lines = "{";
  for (const auto& [name, value] : members)
    lines += (lines.size() > 1 ? ",\n  " : "\n  ") + json_string(name) + ": " + value.dump();
  return lines + "\n}\n";
}

void append_json_escaped(std::string& json, char c) {
  switch (c) {
    case '"': json += "\\\""; return;
    case '\\': json += "\\\\"; return;
    case '\n': json += "\\n"; return;
    case '\r': json += "\\r"; return;
    case '\t': json += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) >= 0x20) {
    json += c;
    return;
  }
  std::array<char, 8> escaped{};
  std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
  json += escaped.data();
}

std::string json_string(std::string_view text) {
  if (!is_valid_utf8(text)) return json_string(replace_invalid_utf8(text));
  std::string json = "\"";
  for (const char c : text) append_json_escaped(json, c);
  return json + "\"";
}

}  // namespace mote
