#include "runner/cli/session_flags.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace mote::cli {
namespace {

constexpr std::array<const char*, 4> kKvTypes = {"float32", "float16", "int8", "int4"};  // in the order of MOTE_KV_*
constexpr std::array<const char*, 3> kPriorities = {"normal", "low", "high"};            // of MOTE_PRIORITY_*
constexpr std::array<const char*, 2> kOverflows = {"refuse", "shift"};                   // of MOTE_OVERFLOW_*

template <size_t count>
int32_t index_of(const std::array<const char*, count>& names, const std::string& name) {
  return static_cast<int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// The library leaves the calling thread as it is, but this one is ours. The session's threads were accepted with this
// priority, so a failure here means that there are none.
void set_own_priority(int32_t priority) {
  if (priority == MOTE_PRIORITY_NORMAL) return;
  if (setpriority(PRIO_PROCESS, 0, priority == MOTE_PRIORITY_LOW ? 10 : -8) != 0 && priority == MOTE_PRIORITY_HIGH) {
    throw InputError(std::string("--priority high: the system refuses: ") + std::strerror(errno));
  }
}

}  // namespace

void SessionFlags::add_to(CLI::App& app) {
  app.add_option("--context-length", context_length,
                 "Positions of the context (default: 4096, or the model's maximum if less)")
      ->check(CLI::PositiveNumber);
  app.add_option("--kv-type", kv_type, "Elements of the key/value cache: float32, float16, int8 or int4")
      ->check(CLI::IsMember({"float32", "float16", "int8", "int4"}))
      ->capture_default_str();
  app.add_option("-t,--threads", threads, "Threads (default: the physical cores, or one for each of --cpus)")
      ->check(CLI::PositiveNumber);
  app.add_option("--cpus", cpus, "CPUs to run on, such as 0-3,6 (default: any)");
  app.add_option("--priority", priority, "Priority beside other processes: low, normal or high")
      ->check(CLI::IsMember({"normal", "low", "high"}))
      ->capture_default_str();
  app.add_option("--prefill-chunk", prefill_chunk,
                 "Prompt tokens computed at once; fewer need less memory (default: 256)")
      ->check(CLI::PositiveNumber);
  app.add_option("--overflow", overflow, "When the context is full: refuse more tokens, or shift: forget the oldest")
      ->check(CLI::IsMember({"refuse", "shift"}))
      ->capture_default_str();
  app.add_option("--num-keep", num_keep, "First tokens that --overflow shift never forgets")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--backend", backend,
         "What runs the model, of what the file was exported for: cpu, xnnpack, ... (auto: the best that works here)")
      ->capture_default_str();
  app.add_flag("--no-mmap", no_mmap,
               "Read the whole file into memory instead of mapping it: for slow or removable storage");
}

mote_session_options SessionFlags::options() const {
  auto options = sized<mote_session_options>();
  mote_session_options_default(&options);
  options.context_length = context_length;
  options.num_threads = threads;
  options.prefill_chunk = prefill_chunk;
  options.kv_type = index_of(kKvTypes, kv_type);
  options.cpus = cpus.has_value() ? cpus->c_str() : nullptr;
  options.priority = index_of(kPriorities, priority);
  options.overflow = index_of(kOverflows, overflow);
  options.num_keep = std::max<int64_t>(num_keep, 0);
  return options;
}

Session SessionFlags::open(const Model& model) const {
  const mote_session_options options = this->options();
  mote_session* session = nullptr;
  check([&](mote_error* error) { return mote_session_open(model.get(), &options, &session, error); });
  set_own_priority(options.priority);
  return Session(session);
}

}  // namespace mote::cli
