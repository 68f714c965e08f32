#include "base/parts.h"

namespace mote {

bool was_left_out(std::string_view part) {
  const std::string all = " " + std::string(kPartsLeftOut) + " ";
  return all.find(" " + std::string(part) + " ") != std::string::npos;
}

Status left_out(std::string_view part, Code code, std::string_view place) {
  const std::string name(part), before = place.empty() ? "" : std::string(place) + ": ";
  return {code, before + "this build leaves out " + name + " (built with MOTE_FOR=" + std::string(kBuiltFor) +
                    "); build with the file in MOTE_FOR, or with MOTE_PARTS=" + name};
}

}  // namespace mote
