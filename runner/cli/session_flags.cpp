#include "runner/cli/session_flags.h"

#include <algorithm>
#include <array>

namespace mote::cli {
namespace {

constexpr std::array<const char*, 4> kKvTypes = {"float32", "float16", "int8", "int4"};  // in the order of MOTE_KV_*

}  // namespace

void SessionFlags::add_to(CLI::App& app) {
  app.add_option("--context-length", context_length, "Positions of the context (default: 4096, or the model's maximum if less)")
      ->check(CLI::PositiveNumber);
  app.add_option("--kv-type", kv_type, "Elements of the key/value cache: float32, float16, int8 or int4")
      ->check(CLI::IsMember({"float32", "float16", "int8", "int4"}))
      ->capture_default_str();
  app.add_option("--threads", threads, "Threads (default: the physical cores)")->check(CLI::PositiveNumber);
  app.add_option("--prefill-chunk", prefill_chunk, "Prompt tokens computed at once; fewer need less memory (default: 256)")
      ->check(CLI::PositiveNumber);
}

Session SessionFlags::open(const Model& model) const {
  auto options = sized<mote_session_options>();
  mote_session_options_default(&options);
  options.context_length = context_length;
  options.num_threads = threads;
  options.prefill_chunk = prefill_chunk;
  options.kv_type = static_cast<int32_t>(std::find(kKvTypes.begin(), kKvTypes.end(), kv_type) - kKvTypes.begin());
  mote_session* session = nullptr;
  check([&](mote_error* error) { return mote_session_open(model.get(), &options, &session, error); });
  return Session(session);
}

}  // namespace mote::cli
