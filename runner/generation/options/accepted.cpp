#include "runner/generation/options/accepted.h"

namespace mote {

std::string accepted_text(const char* kind, const Accepted& accepted) {
  std::string text = kind;
  const bool has_most = std::isfinite(accepted.most);
  if (accepted.excludes_least)
    text += format(" above %.10g", accepted.least) + (has_most ? format(", at most %.10g", accepted.most) : "");
  else if (has_most)
    text += format(", %.10g..%.10g", accepted.least, accepted.most);
  else if (std::isfinite(accepted.least))
    text += format(", %.10g or more", accepted.least);
  return accepted.note[0] == '\0' ? text : text + " (" + accepted.note + ")";
}

Status check_accepted(const char* name, double value, const char* kind, const Accepted& accepted) {
  const bool is_enough = accepted.excludes_least ? value > accepted.least : value >= accepted.least;
  if (std::isfinite(value) && is_enough && value <= accepted.most) return {};
  return {Code::kInvalidArgument, format("%s = %.10g: must be %s", name, value, accepted_text(kind, accepted).c_str())};
}

}  // namespace mote
