#include "base/status.h"

#include <cstdio>

namespace mote {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kFileNotFound: return "file not found";
    case Code::kFileUnreadable: return "file unreadable";
    case Code::kFileUnwritable: return "file unwritable";
    case Code::kInvalidSession: return "invalid session";
    case Code::kUnsupportedBackend: return "unsupported backend";
    case Code::kFileChanged: return "file changed";
    case Code::kInvalidProgram: return "invalid program";
    case Code::kUnsupportedVersion: return "unsupported version";
    case Code::kUnsupportedOp: return "unsupported op";
    case Code::kInvalidTokenizer: return "invalid tokenizer";
    case Code::kInvalidTemplate: return "invalid template";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kContextFull: return "context full";
    case Code::kInvalidState: return "invalid state";
    case Code::kOutOfMemory: return "out of memory";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: return "internal error";
  }
  return "unknown";
}

std::string format_list(const char* pattern, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  const int length = std::vsnprintf(nullptr, 0, pattern, copy);
  va_end(copy);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, arguments);
  return text;
}

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  return text;
}

}  // namespace mote
