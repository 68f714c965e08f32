#include "base/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/path.h"
#include "base/replacement.h"

namespace mote {
namespace {

constexpr mode_t kMode = 0666;  // of which the system takes what the umask forbids

}  // namespace

Result<GrowingFile> GrowingFile::open(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(to_path(folder_of(to_path(path))), ignored);
  MOTE_RETURN_IF_ERROR(check_target(path, path));
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (file.get() < 0) return unwritable(path, "cannot be opened", std::strerror(errno));
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  if (end < 0) return unwritable(path, "cannot be read", std::strerror(errno));
  return GrowingFile(path, std::move(file), static_cast<int64_t>(end));
}

Status GrowingFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return unwritable(path_, "cannot be written", std::strerror(errno));
    bytes_ += static_cast<int64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status GrowingFile::truncate(int64_t bytes) {
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
    return unwritable(path_, "cannot be shortened", std::strerror(errno));
  bytes_ = bytes;
  return {};
}

Status GrowingFile::commit(const std::string& target) {
  MOTE_RETURN_IF_ERROR(check_target(target, target));
  if (::fsync(file_.get()) != 0) return unwritable(path_, "cannot be synced", std::strerror(errno));
  if (std::rename(path_.c_str(), target.c_str()) != 0)
    return unwritable(target, "cannot be replaced", std::strerror(errno));
  file_ = FileDescriptor();
  sync_folder(folder_of(to_path(target)));
  return {};
}

}  // namespace mote
