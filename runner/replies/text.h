// Small things that the readers share.
#pragma once

#include <string_view>

namespace mote::reply {

constexpr std::string_view kWhiteSpace = " \t\n\r";

inline bool is_white_space(char c) { return kWhiteSpace.find(c) != std::string_view::npos; }
inline bool is_blank(std::string_view text) { return text.find_first_not_of(kWhiteSpace) == std::string_view::npos; }
std::string_view stripped(std::string_view text);

// Whether a character may stand in the name of a tool: no white space, quotes or brackets.
bool is_name_character(char c);

}  // namespace mote::reply
