#include "base/replacement.h"

#include <exception>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>

#include "base/open_file.h"
#include "base/path.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

// Followed by 16 hexadecimal digits; llm_export/program/replacement.py names files in the same way.
constexpr std::string_view kTemporary = ".tmp-";
constexpr size_t kNumDigits = 16;

}  // namespace

Status unwritable(const std::string& path, const char* what, const std::string& why) {
  return {Code::kFileUnwritable, format("%s: %s: %s", path.c_str(), what, why.c_str())};
}

std::string folder_of(const fs::path& file) { return file.has_parent_path() ? to_text(file.parent_path()) : "."; }

Status check_target(const std::string& path, const std::string& target) {
  const std::optional<FileInfo> info = info_of_name(target);
  if (!info.has_value() || info->kind == FileKind::kRegular) return {};
  return {Code::kFileUnwritable,
          format("%s: is %s: must be a regular file, or the name of a new one", path.c_str(), name_of(info->kind))};
}

Result<std::string> temporary_name(const std::string& target) try {
  std::random_device random;
  return format("%s%s%08x%08x", target.c_str(), kTemporary.data(), random(), random());
} catch (const std::exception&) {
  return unwritable(target, "cannot be written", "the system gives no random numbers");
}

std::vector<fs::path> temporary_files(const std::string& target) {
  const std::string prefix = to_text(to_path(target).filename()) + std::string(kTemporary);
  const auto is_temporary = [&](const std::string& name) {
    return name.size() == prefix.size() + kNumDigits && name.starts_with(prefix) &&
           name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
  };
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(to_path(folder_of(to_path(target))), error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_temporary(to_text(entry->path().filename()))) found.push_back(entry->path());
  }
  return found;
}

}  // namespace mote
