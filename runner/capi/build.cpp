// What this library was built from, and with what.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "commit.h"
#include "runner/capi/handles.h"
#include "runner/generation/options/read_value.h"
#include "runner/program/delegate.h"

using mote::Status;
using mote::capi::give_string;
using mote::capi::guarded;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) found.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::string describe_build() {
  std::vector<std::string> backends = {"cpu"};
  for (const mote::Backend* backend : mote::all_backends()) backends.emplace_back(backend->name());
  return "{\"version\": " + mote::json_of(std::string_view(MOTE_VERSION)) +
         ", \"commit\": " + mote::json_of(std::string_view(MOTE_COMMIT)) +
         ", \"compiler\": " + mote::json_of(std::string_view(MOTE_COMPILER)) +
         ", \"system\": " + mote::json_of(std::string_view(MOTE_SYSTEM)) +
         ", \"architecture\": " + mote::json_of(std::string_view(MOTE_ARCHITECTURE)) +
         ", \"instruction_sets\": " + mote::json_of(words(MOTE_INSTRUCTION_SETS)) +
         ", \"backends\": " + mote::json_of(backends) + "}";
}

}  // namespace

const char* mote_version(void) { return MOTE_VERSION; }

mote_error_code mote_describe_build(char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    return give_string(describe_build(), json);
  });
}
