// libFuzzer target; MOTE_FUZZ_TARGET names which of fuzz_targets() it is.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const mote::test::Target& target : mote::test::fuzz_targets()) {
    if (std::strcmp(target.name, MOTE_FUZZ_TARGET) == 0) target.run({reinterpret_cast<const std::byte*>(data), size});
  }
  return 0;
}
