// Numbers from texts, as Python's int() and float() read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mote::jinja {

// base: 0 or 2..36. Nothing if it is no integer. Errors: throws Error if it does not fit 64 bits.
std::optional<int64_t> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_float(std::string_view text);

}  // namespace mote::jinja
