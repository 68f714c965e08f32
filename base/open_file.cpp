#include "base/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mote {
namespace {

FileKind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return FileKind::kFolder;
  if (S_ISFIFO(mode)) return FileKind::kPipe;
  if (S_ISSOCK(mode)) return FileKind::kSocket;
  if (S_ISLNK(mode)) return FileKind::kLink;
  return S_ISREG(mode) ? FileKind::kRegular : FileKind::kDevice;
}

FileInfo translate(const struct stat& info) {
#if defined(__APPLE__)
  const timespec& time = info.st_mtimespec;
#else
  const timespec& time = info.st_mtim;
#endif
  FileInfo result;
  result.kind = kind_of(info.st_mode);
  result.bytes = static_cast<int64_t>(info.st_size);
  result.owner = static_cast<uint32_t>(info.st_uid);
  result.others_may_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  result.identity = {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), result.bytes,
                     static_cast<int64_t>(time.tv_sec), static_cast<int64_t>(time.tv_nsec)};
  return result;
}

template <typename Read>
ReadBytes read_again(const Read& read) {
  while (true) {
    const ssize_t count = read();
    if (count >= 0) return {static_cast<size_t>(count), ""};
    if (errno != EINTR) return {0, std::strerror(errno)};
  }
}

Result<FileDescriptor> open_with(const std::string& path, int flags) {
  FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (opened.get() >= 0) return opened;
  const bool is_link = (flags & O_NOFOLLOW) != 0 && (errno == ELOOP || errno == EMLINK);
  const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kFileNotFound : Code::kFileUnreadable;
  return Status(
      code, format("%s: cannot be opened: %s", path.c_str(), is_link ? "it is a symbolic link" : std::strerror(errno)));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<OpenedFile> open_regular_file(const std::string& path, Links links) {
  const int no_links = links == Links::kRefuse ? O_NOFOLLOW : 0;
  MOTE_ASSIGN(FileDescriptor descriptor, open_with(path, O_NONBLOCK | O_NOCTTY | no_links));
  const std::optional<FileInfo> info = info_of(descriptor.get());
  MOTE_REQUIRE(info.has_value(), Code::kFileUnreadable, "%s: cannot be read: %s", path.c_str(), std::strerror(errno));
  MOTE_RETURN_IF_ERROR(require_regular(path, info->kind));
  return OpenedFile{std::move(descriptor), *info};
}

Result<FileDescriptor> open_any_file(const std::string& path) { return open_with(path, 0); }

bool append_to_file(const std::string& path, std::string_view text) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  const FileDescriptor file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  return file.get() >= 0 && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::optional<uint32_t> this_user() { return static_cast<uint32_t>(::geteuid()); }

std::optional<FileInfo> info_of(int descriptor) {
  struct stat info{};
  return ::fstat(descriptor, &info) == 0 ? std::optional(translate(info)) : std::nullopt;
}

std::optional<FileInfo> info_of_name(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? std::optional(translate(info)) : std::nullopt;
}

FileDescriptor duplicate(int descriptor) { return FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

ReadBytes read_some(int descriptor, std::span<std::byte> to) {
  return read_again([&] { return ::read(descriptor, to.data(), to.size()); });
}

ReadBytes read_some_at(int descriptor, int64_t offset, std::span<std::byte> to) {
  return read_again([&] { return ::pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset)); });
}

}  // namespace mote
