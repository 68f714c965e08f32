#include "runner/templates/escapes.h"

#include "base/utf8.h"
#include "runner/templates/characters.h"

namespace mote::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Reads the escapes of one literal.
class Unescaper {
 public:
  explicit Unescaper(std::string_view literal) : literal_(literal) {}

  Result<std::string> run() {
    while (position_ < literal_.size()) {
      const char c = literal_[position_++];
      if (c != '\\' || position_ == literal_.size()) {
        text_ += c;
      } else {
        MOTE_RETURN_IF_ERROR(read_escape(literal_[position_++]));
      }
    }
    return std::move(text_);
  }

 private:
  Status read_escape(char c) {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t found = kNames.find(c); found != kNames.npos) {
      text_ += kValues[found];
    } else if (c >= '0' && c <= '7') {
      read_octal(c);
    } else if (c == 'x') {
      return read_hex(2, "truncated \\xXX escape");
    } else if (c == 'u') {
      return read_hex(4, "truncated \\uXXXX escape");
    } else if (c == 'U') {
      return read_hex(8, "truncated \\UXXXXXXXX escape");
    } else if (c == 'N') {
      return Status(Code::kInvalidTemplate, "unknown Unicode character name");
    } else if (c != '\n') {
      text_ += '\\';
      text_ += c;
    }
    return {};
  }

  void read_octal(char first) {
    char32_t value = static_cast<char32_t>(first - '0');
    for (int i = 0; i < 2 && position_ < literal_.size() && literal_[position_] >= '0' && literal_[position_] <= '7';
         ++i) {
      value = value * 8 + static_cast<char32_t>(literal_[position_++] - '0');
    }
    append_utf8(text_, value);
  }

  Status read_hex(int count, const char* message) {
    char32_t value = 0;
    for (int i = 0; i < count; ++i) {
      const int digit = position_ < literal_.size() ? hex_digit(literal_[position_]) : -1;
      MOTE_REQUIRE(digit >= 0, Code::kInvalidTemplate, "%s", message);
      value = value * 16 + static_cast<char32_t>(digit);
      ++position_;
    }
    MOTE_REQUIRE(value <= 0x10FFFF, Code::kInvalidTemplate, "illegal Unicode character");
    MOTE_REQUIRE(value < 0xD800 || value > 0xDFFF, Code::kInvalidTemplate,
                 "\\u%04x is a surrogate and no character: write the character itself, or \\UXXXXXXXX",
                 static_cast<unsigned>(value));
    append_utf8(text_, value);
    return {};
  }

  std::string_view literal_;
  size_t position_ = 0;
  std::string text_;
};

}  // namespace

Result<std::string> unescape(std::string_view literal) { return Unescaper(literal).run(); }

void append_python_escape(std::string& text, char32_t c) {
  if (c == '\n' || c == '\r' || c == '\t') {
    text += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
  } else {
    text += format(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", static_cast<unsigned>(c));
  }
}

std::string repr_of(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string result(1, quote);
  for (size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    if (character.code == static_cast<char32_t>(quote) || character.code == '\\') {
      result += '\\';
      result += static_cast<char>(character.code);
    } else if (is_printable(character.code)) {
      result += text.substr(i, character.length);
    } else {
      append_python_escape(result, character.code);
    }
    i += character.length;
  }
  return result + quote;
}

void append_json_character(std::string& text, char32_t c, bool ensure_ascii) {
  switch (c) {
    case '"': text += "\\\""; return;
    case '\\': text += "\\\\"; return;
    case '\n': text += "\\n"; return;
    case '\r': text += "\\r"; return;
    case '\t': text += "\\t"; return;
    case '\f': text += "\\f"; return;
    case '\b': text += "\\b"; return;
    default: break;
  }
  if (c < 0x20) {
    text += format("\\u%04x", static_cast<unsigned>(c));
  } else if (!ensure_ascii || c < 0x7F) {
    append_utf8(text, c);
  } else if (c < 0x10000) {
    text += c == 0x7F ? std::string(1, '\x7F') : format("\\u%04x", static_cast<unsigned>(c));
  } else {
    const auto rest = static_cast<unsigned>(c - 0x10000);
    text += format("\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
  }
}

void append_html_character(std::string& text, char32_t c) {
  switch (c) {
    case '&': text += "&amp;"; return;
    case '<': text += "&lt;"; return;
    case '>': text += "&gt;"; return;
    case '\'': text += "&#39;"; return;
    case '"': text += "&#34;"; return;
    default: append_utf8(text, c);
  }
}

}  // namespace mote::jinja
