// The calendar of this place, as strftime_now shows it.
#pragma once

#include <cstddef>
#include <ctime>
#include <span>
#include <string>

namespace mote::jinja {

std::tm local_time(std::time_t seconds);
// As strftime: the length of the text; 0: it is empty, or does not fit. Conversions that C does not know stay as they
// are, or become nothing; none is an error.
size_t format_time(std::span<char> to, const std::string& pattern, const std::tm& time);

}  // namespace mote::jinja
