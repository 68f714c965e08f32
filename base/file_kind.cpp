#include "base/open_file.h"

namespace mote {

const char* name_of(FileKind kind) {
  switch (kind) {
    case FileKind::kRegular: return "a regular file";
    case FileKind::kFolder: return "a folder";
    case FileKind::kPipe: return "a named pipe";
    case FileKind::kSocket: return "a socket";
    case FileKind::kLink: return "a symbolic link";
    case FileKind::kDevice: break;
  }
  return "a device";
}

Status require_regular(const std::string& name, FileKind kind) {
  MOTE_REQUIRE(kind == FileKind::kRegular, Code::kFileUnreadable, "%s: is %s: must be a regular file", name.c_str(),
               name_of(kind));
  return {};
}

}  // namespace mote
