#include "runner/grammars/json_schema/strings.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mote::constraints {
namespace {

constexpr std::array<std::pair<char, char>, 7> kShortEscapes{
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

#define MOTE_DATE                                                                                                      \
  "(((?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])" \
  "|"                                                                                                                  \
  "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])))|"                                                     \
  "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)"
#define MOTE_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define MOTE_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define MOTE_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define MOTE_HEX "[0-9a-fA-F]{1,4}"
#define MOTE_CLOCK "([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S)"

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kFormats{{
    {"date", MOTE_DATE},
    {"time", MOTE_TIME},
    {"date-time", MOTE_DATE "T" MOTE_TIME},
    {"duration",
     "P([0-9]{1,4}W|([0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D)(T" MOTE_CLOCK
     ")?|T" MOTE_CLOCK ")"},
    {"email", "[A-Za-z0-9!#$%&'*+/=?^_{|}~-]{1,16}(\\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]{1,16}){0,3}@" MOTE_LABEL
              "(\\." MOTE_LABEL "){1,3}"},
    {"hostname", MOTE_LABEL "(\\." MOTE_LABEL "){0,2}"},
    {"ipv4", MOTE_BYTE "(\\." MOTE_BYTE "){3}"},
    {"ipv6",
     "(" MOTE_HEX ":){7}" MOTE_HEX "|(" MOTE_HEX ":){1,7}:|(" MOTE_HEX ":){1,6}:" MOTE_HEX "|(" MOTE_HEX
     ":){1,5}(:" MOTE_HEX "){1,2}|(" MOTE_HEX ":){1,4}(:" MOTE_HEX "){1,3}|(" MOTE_HEX ":){1,3}(:" MOTE_HEX
     "){1,4}|(" MOTE_HEX ":){1,2}(:" MOTE_HEX "){1,5}|" MOTE_HEX ":(:" MOTE_HEX "){1,6}|:(:" MOTE_HEX "){1,7}|::"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uri",
     "[a-z][a-z0-9+.-]{0,15}://[A-Za-z0-9][A-Za-z0-9.-]{0,62}(:[1-9][0-9]{0,3})?(/"
     "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
     "(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?(#([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"},
    {"password", "."},
    {"binary", "."},
    {"path", "."},
    {"file-path", "."},
    {"directory-path", "."},
}};

bool needs_escape(char32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

std::string escape_of(char32_t c) {
  for (const auto& [character, letter] : kShortEscapes) {
    if (c == static_cast<char32_t>(character)) return {'\\', letter};
  }
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("\\u00") + kDigits[c >> 4] + kDigits[c & 15];
}

}  // namespace

ExpressionId encode_json_characters(Rules& rules, std::vector<CodePointRange> characters) {
  std::vector<CodePointRange> plain;
  std::vector<std::string> escapes;
  for (const CodePointRange& range : normalized(std::move(characters))) {
    char32_t next = range.low;
    for (char32_t c = range.low; c <= std::min<char32_t>(range.high, '\\'); ++c) {
      if (!needs_escape(c)) continue;
      if (c > next) plain.push_back({next, c - 1});
      next = c + 1;
      escapes.push_back(escape_of(c));
    }
    if (next <= range.high) plain.push_back({next, range.high});
  }
  std::vector<ExpressionId> branches;
  if (!escapes.empty()) branches.push_back(escapes.size() == 1 ? rules.bytes(escapes[0]) : rules.texts(escapes));
  if (!plain.empty() || branches.empty()) branches.push_back(rules.characters(std::move(plain)));
  return rules.choice(std::move(branches));
}

std::string json_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (needs_escape(static_cast<unsigned char>(c)))
      result += escape_of(static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

ExpressionId append_any_string(Rules& rules) {
  const std::vector<CodePointRange> escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const auto set = [&](std::vector<CodePointRange> ranges) { return rules.characters(std::move(ranges)); };
  const auto one_of = [&](std::string_view letters) {
    std::vector<CodePointRange> ranges;
    for (const char c : letters) ranges.push_back({static_cast<char32_t>(c), static_cast<char32_t>(c)});
    return set(std::move(ranges));
  };
  const std::vector<CodePointRange> hexadecimal = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const ExpressionId digit = set(hexadecimal);
  const ExpressionId not_d = set({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const ExpressionId d = one_of("dD");
  const ExpressionId character = rules.choice(
      {rules.sequence({not_d, digit, digit, digit}), rules.sequence({d, set({{'0', '7'}}), digit, digit}),
       rules.sequence({d, one_of("89abAB"), digit, digit, rules.bytes("\\u"), d, one_of("cdefCDEF"), digit, digit})});
  const ExpressionId escape = rules.sequence(
      {rules.bytes("\\"), rules.choice({one_of("\"\\/bfnrt"), rules.sequence({rules.bytes("u"), character})})});
  const ExpressionId content = rules.repeat(rules.choice({set(complement(escaped)), escape}), 0, kUnbounded);
  return rules.sequence({rules.bytes("\""), content, rules.bytes("\"")});
}

std::string_view format_pattern(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& entry) { return entry.first == name; });
  return found == kFormats.end() ? std::string_view() : found->second;
}

std::string format_names() {
  std::string names;
  for (const auto& [name, pattern] : kFormats) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace mote::constraints
