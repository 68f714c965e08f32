#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace mote {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::time_t kYoungSeconds = 60;  // a file this young may not be locked by its writer yet

void remove_if_left(const std::filesystem::path& temporary) {
  const int file = ::open(temporary.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  struct stat info{};
  const bool is_old =
      ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && std::time(nullptr) - info.st_mtime > kYoungSeconds;
  if (is_old && ::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(temporary.c_str());
  ::close(file);
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

// So that a new name survives a crash; not every system can sync a folder.
void sync_folder(const std::filesystem::path& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (opened < 0) return;
  (void)::fsync(opened);
  ::close(opened);
}

// Removes the temporary files of writers of the same file that ended before they could do so.
void remove_left(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string prefix = file.filename().string() + std::string(kTemporary);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder_of(file), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) remove_if_left(entry->path());
  }
}

}  // namespace

struct AtomicFile::State {
  std::string path;
  std::string temporary;
  int file = -1;

  Status failed(const char* what) const {
    return {Code::kFileUnwritable, format("%s: %s: %s", path.c_str(), what, std::strerror(errno))};
  }

  ~State() {
    if (file < 0) return;
    ::close(file);
    ::unlink(temporary.c_str());
  }
};

AtomicFile::AtomicFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  static std::atomic<unsigned> count{0};
  auto state = std::make_unique<State>();
  state->path = path;
  state->temporary =
      format("%s%s%ld-%u", path.c_str(), kTemporary.data(), static_cast<long>(::getpid()), count.fetch_add(1));
  remove_left(path);
  state->file = ::open(state->temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (state->file < 0) return state->failed("cannot be written");
  (void)::flock(state->file, LOCK_EX | LOCK_NB);  // tells other writers that this file is being written
  return AtomicFile(std::move(state));
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(state_->file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return state_->failed("cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::overwrite_start(std::span<const std::byte> bytes) {
  if (::lseek(state_->file, 0, SEEK_SET) != 0) return state_->failed("cannot be written");
  return write(bytes);
}

int AtomicFile::descriptor() const { return state_->file; }

Status AtomicFile::commit() {
  if (::fsync(state_->file) != 0) return state_->failed("cannot be synced");
  if (::rename(state_->temporary.c_str(), state_->path.c_str()) != 0) return state_->failed("cannot be replaced");
  ::close(std::exchange(state_->file, -1));
  sync_folder(folder_of(state_->path));
  return {};
}

}  // namespace mote
