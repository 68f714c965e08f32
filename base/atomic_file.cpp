#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/open_file.h"
#include "base/replacement.h"

namespace mote {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;
constexpr size_t kCopyBytes = size_t{1} << 20;
constexpr mode_t kPermissions = 0777;
constexpr mode_t kOwnerMode = 0600;
constexpr mode_t kSharedMode = 0666;  // of which the system takes what the umask forbids

// The file that a symbolic link leads to, whether it exists or not; anything else as it is.
Result<std::string> follow_links(const std::string& path) {
  fs::path followed(path);
  for (int links = 0; links < kMaxLinks; ++links) {
    std::error_code error;
    const fs::path target = fs::read_symlink(followed, error);
    if (error) return followed.string();
    followed = target.is_absolute() ? target : fs::path(folder_of(followed)) / target;
  }
  return unwritable(path, "cannot be written", "too many symbolic links");
}

// The permissions of the file that will be replaced; none: there is no file.
std::optional<mode_t> mode_of(const std::string& target) {
  struct stat info{};
  if (::lstat(target.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return info.st_mode & kPermissions;
}

// A writer holds a lock on what it writes.
void remove_if_left(const fs::path& temporary) {
  const Result<OpenedFile> file = open_regular_file(temporary.string(), Links::kRefuse);
  if (file.ok() && ::flock(file->descriptor.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(temporary.c_str());
}

// Removes the temporary files of writers of the same file that ended before they could do so.
void remove_left(const std::string& target) {
  for (const fs::path& temporary : temporary_files(target)) remove_if_left(temporary);
}

// Whether the descriptor is locked and has a name still: another writer that came before the lock has taken it for one
// that was left.
bool keeps_name(int descriptor) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat info{};
  return ::fstat(descriptor, &info) == 0 && info.st_nlink > 0;
}

}  // namespace

void sync_folder(const std::string& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (opened.get() >= 0) (void)::fsync(opened.get());
}

struct AtomicFile::State {
  std::string path;       // as it was given
  std::string target;     // where that leads
  std::string temporary;  // empty: it has no name yet
  Access access = Access::kOwner;
  FileDescriptor file;

  Status failed(const char* what) const { return unwritable(path, what, std::strerror(errno)); }

  ~State() { remove_temporary(); }

  void remove_temporary() {
    if (!temporary.empty()) ::unlink(std::exchange(temporary, "").c_str());
  }

  // While it is written nobody may read it who could not read what it replaces.
  mode_t mode() const { return access == Access::kOwner ? kOwnerMode : mode_of(target).value_or(kSharedMode); }

  bool open_unnamed() {
#if defined(__linux__) && !defined(__ANDROID__)  // Android lets no application link files
    file = FileDescriptor(::open(folder_of(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode()));
    // Another writer must not take the name that it has for a moment for one that was left.
    return file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
#else
    return false;
#endif
  }

  Status open_named() {
    for (int i = 0; i < kMaxTemporaryNames; ++i) {
      MOTE_ASSIGN(const std::string name, temporary_name(target));
      FileDescriptor opened(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode()));
      if (opened.get() < 0 && errno == EEXIST) continue;
      if (opened.get() < 0) return failed("cannot be written");
      if (!keeps_name(opened.get())) continue;
      file = std::move(opened);
      temporary = name;
      return {};
    }
    return unwritable(path, "cannot be written", "other processes write it too often");
  }

  Status write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed("cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return {};
  }

  // Gives a file without a name a temporary one: no system links over a file that is there. Where links are forbidden
  // it is copied.
  Status name_it() {
    if (!temporary.empty()) return {};
    MOTE_ASSIGN(const std::string name, temporary_name(target));
    const std::string number = "/proc/self/fd/" + std::to_string(file.get());
    if (::linkat(AT_FDCWD, number.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary = name;
      return {};
    }
    const FileDescriptor unnamed = std::move(file);
    MOTE_RETURN_IF_ERROR(open_named());
    std::vector<std::byte> buffer(kCopyBytes);
    for (off_t done = 0;;) {
      const ssize_t count = ::pread(unnamed.get(), buffer.data(), buffer.size(), done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed("cannot be copied");
      if (count == 0) break;
      MOTE_RETURN_IF_ERROR(write({buffer.data(), static_cast<size_t>(count)}));
      done += count;
    }
    return ::fsync(file.get()) == 0 ? Status() : failed("cannot be synced");
  }

  // File systems without permissions refuse, and there is nothing to keep.
  Status keep_mode() const {
    const std::optional<mode_t> replaced = access == Access::kOwner ? std::nullopt : mode_of(target);
    if (!replaced || ::fchmod(file.get(), *replaced) == 0 || errno == EPERM || errno == ENOTSUP) return {};
    return failed("cannot be given the mode of what it replaces");
  }

  Status commit() {
    if (::fsync(file.get()) != 0) return failed("cannot be synced");
    MOTE_RETURN_IF_ERROR(check_target(path, target));
    MOTE_RETURN_IF_ERROR(name_it());
    MOTE_RETURN_IF_ERROR(keep_mode());
    if (::rename(temporary.c_str(), target.c_str()) != 0) return failed("cannot be replaced");
    temporary.clear();
    file = FileDescriptor();
    sync_folder(folder_of(target));
    return {};
  }
};

AtomicFile::AtomicFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::create(const std::string& path, Access access, const Options& options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->target = path;
  state->access = access;
  if (options.links == Links::kFollow) { MOTE_ASSIGN(state->target, follow_links(path)); }
  MOTE_RETURN_IF_ERROR(check_target(path, state->target));
  remove_left(state->target);
  if (options.temporary == Temporary::kNamed || !state->open_unnamed()) MOTE_RETURN_IF_ERROR(state->open_named());
  return AtomicFile(std::move(state));
}

Status AtomicFile::write(std::span<const std::byte> bytes) { return state_->write(bytes); }

Status AtomicFile::overwrite_start(std::span<const std::byte> bytes) {
  if (::lseek(state_->file.get(), 0, SEEK_SET) != 0) return state_->failed("cannot be written");
  return write(bytes);
}

int AtomicFile::descriptor() const { return state_->file.get(); }

Status AtomicFile::commit() { return state_->commit(); }

}  // namespace mote
