#include "runner/replies/text.h"

namespace mote::reply {

std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

bool is_name_character(char c) {
  constexpr std::string_view kRefused = "\"'`<>{}()[],;=\\\x7F";
  return static_cast<unsigned char>(c) > 0x20 && kRefused.find(c) == std::string_view::npos;
}

}  // namespace mote::reply
