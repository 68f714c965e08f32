// Prints the table of options, from which the build makes llm_runner/option_types.py.
#include <cstdio>

#include "runner/capi/callers.h"
#include "runner/capi/mote.h"

int main() {
  auto error = mote::sized<mote_error>();
  char* json = nullptr;
  if (mote_describe_options(&json, &error) != MOTE_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  std::puts(json);
  mote_string_free(json);
  return 0;
}
