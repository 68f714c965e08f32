// libFuzzer target. The corpus is any set of replies behind three bytes, see run_reply.h.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/run_reply.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (mote::test::run_reply({reinterpret_cast<const char*>(data), size}).code() == mote::Code::kInternal) std::abort();
  return 0;
}
