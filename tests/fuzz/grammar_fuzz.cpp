// libFuzzer target. The corpus is any set of grammars behind two bytes, see run_grammar.h.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/run_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (mote::test::run_grammar({reinterpret_cast<const char*>(data), size}).code() == mote::Code::kInternal)
    std::abort();
  return 0;
}
