// Some C libraries of Windows end the process for a conversion that they do not know, so those get there neither that
// none of them knows nor those that only some know.
#include "runner/templates/local_time.h"

#include <string_view>

namespace mote::jinja {
namespace {

constexpr std::string_view kKnownEverywhere = "aAbBcdHIjmMpSUwWxXyYzZ%";

// What stands for a conversion.
std::string spelled(char conversion, const std::tm& time) {
  switch (conversion) {
    case 'D': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'T': return "%H:%M:%S";
    case 'r': return "%I:%M:%S %p";
    case 'h': return "%b";
    case 'n': return "\n";
    case 't': return "\t";
    case 'e': return (time.tm_mday < 10 ? " " : "") + std::to_string(time.tm_mday);
    case 'C': return std::to_string((time.tm_year + 1900) / 100);
    case 'u': return std::to_string(time.tm_wday == 0 ? 7 : time.tm_wday);
    default: break;
  }
  const bool is_known = kKnownEverywhere.find(conversion) != std::string_view::npos;
  return (is_known ? "%" : "%%") + std::string(1, conversion);
}

}  // namespace

std::tm local_time(std::time_t seconds) {
  std::tm local{};
  (void)::localtime_s(&local, &seconds);
  return local;
}

size_t format_time(std::span<char> to, const std::string& pattern, const std::tm& time) {
  std::string known;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%')
      known += pattern[i];
    else
      known += ++i < pattern.size() ? spelled(pattern[i], time) : "%%";
  }
  return std::strftime(to.data(), to.size(), known.c_str(), &time);
}

}  // namespace mote::jinja
