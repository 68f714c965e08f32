// Spellings of texts: Python's literals, JSON and HTML.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mote::jinja {

// What the inside of a string literal means. Errors: kInvalidTemplate with Python's words.
Result<std::string> unescape(std::string_view literal);

// Python's repr() of a str.
std::string repr_of(std::string_view text);
// The escape that repr shows for a character that is not printable, such as \x00.
void append_python_escape(std::string& text, char32_t c);
// A character inside of quotes in JSON, as json.dumps writes it.
void append_json_character(std::string& text, char32_t c, bool ensure_ascii);
// A character in HTML, as markupsafe.escape writes it.
void append_html_character(std::string& text, char32_t c);

}  // namespace mote::jinja
