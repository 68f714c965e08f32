// What somebody may have meant by a name that is not there.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mote {

// The candidate that a mistyped name is closest to, by letters that are wrong, missing, too many or swapped (at most a
// third of them), or that it begins; case, '-' and '_' are the same. "": none is close. A name over 60 bytes has none.
std::string_view closest(std::string_view name, std::span<const std::string_view> candidates);

// ": did you mean 'X'?", or "" if nothing is close.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace mote
