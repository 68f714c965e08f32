#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace mote {

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
  state->temporary = format("%s.tmp-%ld-%u", path.c_str(), static_cast<long>(::getpid()), count.fetch_add(1));
  state->file = ::open(state->temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (state->file < 0) return state->failed("cannot be written");
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
  return {};
}

}  // namespace mote
