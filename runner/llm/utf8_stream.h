// Bytes of tokens in, whole characters out.
#pragma once

#include <string>
#include <string_view>

namespace mote {

// All that `push` and `finish` returned, joined, is what Python gives for bytes.decode("utf-8", errors="replace"),
// however the bytes are split.
class Utf8Stream {
 public:
  // The characters that are complete now; the beginning of one is held back.
  std::string push(std::string_view bytes);
  // What was held back: U+FFFD if it is not empty.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace mote
