#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <filesystem>

#include "base/growing_file.h"
#include "base/path.h"
#include "base/replacement.h"
#include "base/windows.h"

namespace mote {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of one call

HANDLE handle_of(const FileDescriptor& file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file.get())); }

bool seek(HANDLE file, int64_t offset) {
  LARGE_INTEGER place;
  place.QuadPart = offset;
  return ::SetFilePointerEx(file, place, nullptr, FILE_BEGIN) != 0;
}

}  // namespace

Result<GrowingFile> GrowingFile::open(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(to_path(folder_of(to_path(path))), ignored);
  MOTE_RETURN_IF_ERROR(check_target(path, path));
  windows::Handle opened(::CreateFileW(windows::native_path(path).c_str(), GENERIC_READ | GENERIC_WRITE,
                                       FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL,
                                       nullptr));
  LARGE_INTEGER size{};
  if (!opened || ::GetFileSizeEx(opened.get(), &size) == 0)
    return unwritable(path, "cannot be opened", windows::last_message());
  FileDescriptor file(::_open_osfhandle(reinterpret_cast<intptr_t>(opened.get()), _O_RDWR | _O_BINARY));
  if (file.get() < 0) return unwritable(path, "cannot be opened", "too many files are open");
  (void)opened.release();
  return GrowingFile(path, std::move(file), size.QuadPart);
}

Status GrowingFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    DWORD written = 0;
    const auto count = static_cast<DWORD>(std::min(bytes.size(), kMostBytes));
    if (!seek(handle_of(file_), bytes_) || ::WriteFile(handle_of(file_), bytes.data(), count, &written, nullptr) == 0)
      return unwritable(path_, "cannot be written", windows::last_message());
    bytes_ += written;
    bytes = bytes.subspan(written);
  }
  return {};
}

Status GrowingFile::truncate(int64_t bytes) {
  if (!seek(handle_of(file_), bytes) || ::SetEndOfFile(handle_of(file_)) == 0)
    return unwritable(path_, "cannot be shortened", windows::last_message());
  bytes_ = bytes;
  return {};
}

Status GrowingFile::commit(const std::string& target) {
  MOTE_RETURN_IF_ERROR(check_target(target, target));
  if (::FlushFileBuffers(handle_of(file_)) == 0) return unwritable(path_, "cannot be synced", windows::last_message());
  file_ = FileDescriptor();
  if (::MoveFileExW(windows::native_path(path_).c_str(), windows::native_path(target).c_str(),
                    MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) == 0)
    return unwritable(target, "cannot be replaced", windows::last_message());
  return {};
}

}  // namespace mote
