// Requests and answers of which somebody else does the sending and receiving.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace mote::store {

struct Step {
  enum class Kind : uint8_t {
    kRequest = 1,  // GET `url` with `headers`; redirects are not followed. Then respond, write, end.
    kWait,         // for wait_ms, 0: not at all, because of `reason`; then ask again
    kDone,
  };
  Kind kind = Kind::kDone;
  std::string url{};
  std::string headers{};  // "Name: value\r\n" each
  int64_t wait_ms = 0;
  std::string reason{};
};

// Something that is found out by requests one after the other.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual Result<Step> next() = 0;
  // The header of the answer. False: its body is not wanted, and the connection may be closed.
  virtual Result<bool> respond(int status, std::string_view headers) = 0;
  // The next bytes of the body, in their order; those of a body that is not wanted are dropped.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  // The answer is over. broken: why, where it came to no proper end, else ""; also without respond: no answer came
  virtual Status end(std::string_view broken) = 0;
};

// Whom a token is for: an origin, and nobody to whom that one redirects.
struct Access {
  std::string origin;
  std::string token;  // "": none

  // What every request has. Compressed, an answer would have other positions than the file.
  std::string headers(std::string_view url) const;
};

// How often and how long to wait before it is asked again what brought nothing.
class Retries {
 public:
  // reason: what went wrong   wait_s: that the server asks for   Errors: kFileUnreadable, `what` with the reason, when
  // that was the fifth time in a row, or the wait would be too long
  Status again(const std::string& what, const std::string& reason, int64_t wait_s, bool brought_something);
  // The wait that is due, once.
  std::optional<Step> take_wait();

 private:
  int num_tries_ = 0;
  Step wait_;
};

constexpr int kMaxRedirects = 10;

}  // namespace mote::store
