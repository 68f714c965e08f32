// libFuzzer target. The corpus is any set of templates, each perhaps with a NUL and messages as JSON behind it.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/run_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (mote::test::run_template({reinterpret_cast<const char*>(data), size}).code() == mote::Code::kInternal)
    std::abort();
  return 0;
}
