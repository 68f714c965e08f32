// Names of error codes, for the tables of what mutations led to.
#pragma once

#include "base/status.h"

namespace mote {

inline const char* code_name(Code code) {
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

}  // namespace mote
