// Floating-point numbers as text, with a point whatever the language of the process. The C++ library's own functions
// bring tables of 200 kB into a program that it is linked into, and older systems have none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mote {

// The double that is nearest to a decimal number: -1, .5, 2.5e-3, also inf, infinity and nan in any case; too large
// ones are infinite. Nothing: the text is no such number, or more than one.
std::optional<double> read_decimal(std::string_view text);

// The shortest text that reads back as the number, the nearest of several: 100, 0.1, -2.5e-07, 1e+16; inf, -inf, nan.
std::string shortest_text(double value);
std::string shortest_text(float value);

}  // namespace mote
