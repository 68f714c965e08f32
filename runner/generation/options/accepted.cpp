#include "runner/generation/options/accepted.h"

namespace mote {
namespace {

// The largest integers of 64 bits are no doubles.
std::string limit_text(double limit) {
  if (limit == 0x1p64) return "2^64-1";
  if (limit == 0x1p63) return "2^63-1";
  return format("%.10g", limit);
}

}  // namespace

std::string accepted_text(const char* kind, const Accepted& accepted) {
  std::string text = kind;
  const bool has_most = std::isfinite(accepted.most);
  if (accepted.excludes_least)
    text += " above " + limit_text(accepted.least) + (has_most ? ", at most " + limit_text(accepted.most) : "");
  else if (has_most)
    text += ", " + limit_text(accepted.least) + ".." + limit_text(accepted.most);
  else if (std::isfinite(accepted.least))
    text += ", " + limit_text(accepted.least) + " or more";
  return accepted.note[0] == '\0' ? text : text + " (" + accepted.note + ")";
}

Status check_accepted(const char* name, double value, const char* kind, const Accepted& accepted) {
  const bool is_enough = accepted.excludes_least ? value > accepted.least : value >= accepted.least;
  if (std::isfinite(value) && is_enough && value <= accepted.most) return {};
  return {Code::kInvalidArgument, format("%s = %.10g: must be %s", name, value, accepted_text(kind, accepted).c_str())};
}

}  // namespace mote
