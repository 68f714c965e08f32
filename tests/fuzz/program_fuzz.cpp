// libFuzzer target. The corpus is any set of .mote files.
#include <cstdint>

#include "tests/fuzz/run_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)mote::test::run_program({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
