// Paths as texts in UTF-8, which Windows spells in UTF-16.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mote {

inline std::filesystem::path to_path(std::string_view utf8) {
  return std::u8string_view(reinterpret_cast<const char8_t*>(utf8.data()), utf8.size());
}

inline std::string to_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

}  // namespace mote
