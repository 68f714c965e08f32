// What an answer of a server means for the file that was asked for.
#pragma once

#include <cstdint>
#include <string>

#include "runner/store/http.h"

namespace mote::store {

// What was asked for: the bytes from `have` on of a file.
struct Asked {
  std::string url;
  int64_t have = 0;
  int64_t total = -1;  // of the file; -1: not known
  std::string etag{};  // that the bytes so far came with; "": none
};

struct Verdict {
  enum class Kind : uint8_t {
    kBody,       // the bytes [from, to) follow; to -1: up to the end of the answer, wherever that is
    kUnchanged,  // what was downloaded before is still there
    kRedirect,   // to `url`
    kAgain,      // ask again, after wait_s if that is more than others would wait; `reason` says what is wrong
    kRestart,    // the file is another one by now: ask for all of it
    kRefused,    // no other answer will come; `reason` goes behind the name of the file
  };
  Kind kind = Kind::kRefused;
  int64_t from = 0;
  int64_t to = -1;
  int64_t total = -1;
  std::string etag;  // a strong one, or ""
  std::string url;
  int64_t wait_s = 0;
  std::string reason;
};

// Thread safety: pure.
Verdict judge(const Asked& asked, int status, const Headers& headers);

// "the hub refuses it with status 403: the token has no right to it"; who: "the hub"
std::string refusal(const char* who, int status);

}  // namespace mote::store
