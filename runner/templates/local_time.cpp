#include "runner/templates/local_time.h"

namespace mote::jinja {

std::tm local_time(std::time_t seconds) {
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local;
}

size_t format_time(std::span<char> to, const std::string& pattern, const std::tm& time) {
  return std::strftime(to.data(), to.size(), pattern.c_str(), &time);
}

}  // namespace mote::jinja
