// Parts that a build of Mote can leave out: cmake/MoteParts.cmake lists them, docs/size.md says what each weighs.
#pragma once

#include <string_view>

#include "base/status.h"
#include "built_parts.h"

namespace mote {

// Whether this build has a part. Code behind `if constexpr (is_built(..))` links nothing of what is left out; no object
// holds this function, so files for newer CPUs may ask too.
consteval bool is_built(std::string_view part) {
  std::string_view rest = kPartsLeftOut;
  while (!rest.empty()) {
    const size_t end = rest.find(' ') < rest.size() ? rest.find(' ') : rest.size();
    if (rest.substr(0, end) == part) return false;
    rest.remove_prefix(end < rest.size() ? end + 1 : end);
  }
  return true;
}

// The same for names that are known when the program runs.
bool was_left_out(std::string_view part);

// The error for who asks for a part that this build has not.  place: who asks, before the sentence; may be empty
Status left_out(std::string_view part, Code code, std::string_view place = {});

}  // namespace mote

// Returns that error from the calling function if this build has not the part. What only the rest of the function calls
// is then not linked.
#define MOTE_REQUIRE_PART(part, code) \
  if constexpr (!::mote::is_built(part)) return ::mote::left_out(part, code)
