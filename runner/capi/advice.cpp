#include "runner/advice/advice.h"
#include "base/parts.h"

#include "runner/capi/options.h"

using mote::Status;
using mote::capi::guarded;

namespace {

Status advise(const mote::Source& beginning, const mote_options* requested, int64_t prompt_tokens, int64_t depth,
              mote_advice* advice) {
  MOTE_REQUIRE_PART("advice", mote::Code::kInvalidArgument);
  MOTE_REQUIRE_POINTER(advice);
  MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
  MOTE_ASSIGN(const mote::SessionOptions session, given.session());
  MOTE_ASSIGN(const mote::Advice found, mote::advise(beginning, {session, prompt_tokens, depth}));
  return mote::capi::write_struct(
      mote_advice{0, found.num_threads, found.context_length, found.prefill_tokens_per_second,
                  found.decode_tokens_per_second, found.file_bytes, found.state_bytes, found.working_bytes,
                  found.device_bytes},
      advice);
}

}  // namespace

mote_error_code mote_advise(const char* path, const mote_options* options, int64_t prompt_tokens, int64_t depth,
                            mote_advice* advice, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(path);
    return advise(std::string(path), options, prompt_tokens, depth, advice);
  });
}

mote_error_code mote_advise_memory(const char* name, const void* beginning, size_t count, const mote_options* options,
                                   int64_t prompt_tokens, int64_t depth, mote_advice* advice, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(name);
    MOTE_REQUIRE_POINTER(beginning);
    return advise(mote::MemoryBytes{name, {static_cast<const std::byte*>(beginning), count}, nullptr}, options,
                  prompt_tokens, depth, advice);
  });
}
