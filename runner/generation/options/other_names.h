// What other software calls things: names that stand for an option of Mote, and names that have an answer instead.
#pragma once

#include <span>
#include <string_view>

namespace mote {

struct OtherName {
  std::string_view name;
  std::string_view option;  // means the same, for every value
};

struct AnsweredName {
  std::string_view name;
  std::string_view answer;  // what to do instead, as the end of a sentence
};

std::span<const OtherName> other_names();
// "" if nothing is known of the name.
std::string_view answer_for(std::string_view name);

}  // namespace mote
