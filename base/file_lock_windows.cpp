#include <filesystem>

#include "base/file_lock.h"
#include "base/path.h"
#include "base/replacement.h"
#include "base/windows.h"

#include <fcntl.h>
#include <io.h>

namespace mote {

Result<std::optional<FileLock>> FileLock::try_take(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(to_path(folder_of(to_path(path))), ignored);
  windows::Handle file(::CreateFileW(windows::native_path(path).c_str(), GENERIC_READ | GENERIC_WRITE,
                                     FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL,
                                     nullptr));
  if (!file) return unwritable(path, "cannot be opened", windows::message_of(::GetLastError()));
  OVERLAPPED first_byte{};
  if (::LockFileEx(file.get(), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &first_byte) == 0)
    return std::optional<FileLock>();
  FileDescriptor descriptor(::_open_osfhandle(reinterpret_cast<intptr_t>(file.get()), _O_RDWR | _O_BINARY));
  if (descriptor.get() < 0) return unwritable(path, "cannot be locked", "no more files can be opened");
  (void)file.release();
  return std::optional(FileLock(std::move(descriptor)));
}

void note_use(int) {}

bool is_in_use(const std::string&) { return false; }

}  // namespace mote
