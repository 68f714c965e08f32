// libFuzzer target; MOTE_FUZZ_TARGET names which of tokenizer_targets() it is.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/tokenizer_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const mote::test::Target& target : mote::test::tokenizer_targets()) {
    if (std::strcmp(target.name, MOTE_FUZZ_TARGET) == 0) target.run({reinterpret_cast<const std::byte*>(data), size});
  }
  return 0;
}
