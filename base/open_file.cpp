#include "base/open_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mote {

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return S_ISREG(mode) ? "a regular file" : "a device";
}

Result<OpenedFile> open_regular_file(const std::string& path, Links links) {
  const int no_links = links == Links::kRefuse ? O_NOFOLLOW : 0;
  OpenedFile opened{FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_links)), {}};
  if (opened.descriptor.get() < 0) {
    const bool is_link = no_links != 0 && (errno == ELOOP || errno == EMLINK);
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kFileNotFound : Code::kFileUnreadable;
    return Status(code, format("%s: cannot be opened: %s", path.c_str(),
                               is_link ? "it is a symbolic link" : std::strerror(errno)));
  }
  MOTE_REQUIRE(::fstat(opened.descriptor.get(), &opened.info) == 0, Code::kFileUnreadable, "%s: cannot be read: %s",
               path.c_str(), std::strerror(errno));
  MOTE_REQUIRE(S_ISREG(opened.info.st_mode), Code::kFileUnreadable, "%s: is %s: must be a regular file", path.c_str(),
               kind_of_file(opened.info.st_mode));
  return opened;
}

}  // namespace mote
