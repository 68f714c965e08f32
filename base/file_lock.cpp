#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#if defined(__APPLE__)
#include <TargetConditionals.h>
#endif

#include "base/path.h"
#include "base/replacement.h"

namespace mote {
namespace {

constexpr mode_t kLockMode = 0644;

// The file that has the name now is the one that is locked: another holder may have removed it meanwhile.
bool has_name(int descriptor, const std::string& path) {
  const std::optional<FileInfo> opened = info_of(descriptor), named = info_of_name(path);
  return opened && named && opened->identity.device == named->identity.device &&
         opened->identity.number == named->identity.number;
}

}  // namespace

Result<std::optional<FileLock>> FileLock::try_take(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(to_path(folder_of(to_path(path))), ignored);
  while (true) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
    if (file.get() < 0) return unwritable(path, "cannot be opened", std::strerror(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK || errno == EINTR) return std::optional<FileLock>();
      return unwritable(path, "cannot be locked", std::strerror(errno));
    }
    if (has_name(file.get(), path)) return std::optional(FileLock(std::move(file)));
  }
}

void note_use(int descriptor) {
#if defined(__APPLE__) && TARGET_OS_IPHONE
  (void)descriptor;
#else
  (void)::flock(descriptor, LOCK_SH | LOCK_NB);
#endif
}

bool is_in_use(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace mote
