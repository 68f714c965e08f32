#include "runner/advice/advice.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/large_files.h"
#include "runner/advice/prediction.h"
#include "runner/advice/stand_in.h"
#include "runner/session/session.h"

namespace mote {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kPrefillTime{3.0};
constexpr Seconds kDecodeTime{1.5};
constexpr size_t kLeastSteps = 3, kMostSteps = 16;

double seconds_since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

std::vector<int32_t> random_ids(int64_t count, int32_t vocab_size) {
  std::minstd_rand random(1);
  std::uniform_int_distribution<int32_t> any(0, vocab_size - 1);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::ranges::generate(ids, [&] { return any(random); });
  return ids;
}

// Ends a session's call some time after it began, unless it is over by then.
class Deadline {
 public:
  Deadline(Session& session, Seconds after)
      : thread_([this, &session, after] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, after, [this] { return is_over_; })) session.cancel();
        }) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;  // last, so that it starts when the others are there
};

// The session at a position that it has not computed, its caches full of numbers.
Status go_to(Session& session, const std::vector<int32_t>& ids) {
  const auto depth = static_cast<int64_t>(ids.size());
  const SessionOptions& options = session.options();
  MOTE_ASSIGN(StateMemory states,
              StateMemory::allocate(*session.model().bound(),
                                    {options.context_length, options.prefill_chunk, options.kv_dtype}));
  MOTE_RETURN_IF_ERROR(states.reserve(0, depth));
  for (const KvCache& cache : states.kv_caches()) {
    if (cache.num_heads == 0) continue;
    for (int64_t page = 0; page < cache.num_pages(); ++page) {
      std::byte* const memory = cache.pages[page];
      if (memory == nullptr) continue;
      fill_with_small_numbers({memory + cache.page_offset, static_cast<size_t>(cache.page_bytes().unsigned_value())});
    }
    for (int64_t p = 0; p < depth; ++p) {
      const int64_t slot = cache.slot_of(p);
      cache.positions[slot] = cache.window == 0 ? slot : p;
    }
  }
  return session.adopt({session.model().bound(), ids, states.snapshot(depth)}, depth);
}

// Seconds of a step behind `depth` tokens, and what it consists of.
Result<double> time_decode(Session& session, int64_t depth, Prediction& prediction) {
  const std::vector<int32_t> ids = random_ids(depth + 1, session.model().vocab_size());
  MOTE_RETURN_IF_ERROR(go_to(session, {ids.begin(), ids.end() - 1}));
  MOTE_RETURN_IF_ERROR(session.decode(ids.back()).status());  // code, caches and clocks
  session.start_profile();
  MOTE_RETURN_IF_ERROR(session.decode(ids.back()).status());
  prediction.add_decode(*session.stop_profile());
  std::vector<double> steps;
  const Clock::time_point start = Clock::now();
  const size_t room = std::min(session.room(), kMostSteps);
  while (steps.size() < room && (steps.size() < kLeastSteps || seconds_since(start) < kDecodeTime.count())) {
    const Clock::time_point begin = Clock::now();
    MOTE_RETURN_IF_ERROR(session.decode(ids.back()).status());
    steps.push_back(seconds_since(begin));
  }
  std::ranges::nth_element(steps, steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2));
  return steps[steps.size() / 2];
}

// Seconds of a prompt: as measured, or told from what of it could be done in kPrefillTime.
Result<double> time_prefill(Session& session, int64_t tokens, const Prediction& prediction) {
  session.reset();
  const std::vector<int32_t> ids = random_ids(tokens, session.model().vocab_size());
  session.start_profile();
  const Clock::time_point start = Clock::now();
  Status status;
  {
    const Deadline deadline(session, kPrefillTime);
    status = session.prefill(ids).status();
  }
  const double seconds = seconds_since(start);
  const std::unique_ptr<Profile> profile = session.stop_profile();
  if (status.ok()) return seconds;
  if (status.code() != Code::kCancelled) return status;
  return prediction.of_prompt(*profile, tokens);
}

Status check_lengths(const Session& session, const AdviceOptions& options) {
  const int64_t room = session.context_length();
  const auto longest = room - static_cast<int64_t>(kLeastSteps) - 2;
  MOTE_REQUIRE(options.prompt_tokens >= 1 && options.prompt_tokens <= room, Code::kInvalidArgument,
               "prompt_tokens = %lld: must be 1..%lld, the context_length",
               static_cast<long long>(options.prompt_tokens), static_cast<long long>(room));
  MOTE_REQUIRE(options.depth >= 1 && options.depth <= longest, Code::kInvalidArgument,
               "depth = %lld: must be 1..%lld, so that some tokens of the context_length %lld are free",
               static_cast<long long>(options.depth), static_cast<long long>(longest), static_cast<long long>(room));
  return {};
}

}  // namespace

Result<Advice> advise(const Source& beginning, const AdviceOptions& options) {
  MOTE_ASSIGN(const StandIn stand_in, open_stand_in(beginning));
  MOTE_ASSIGN(const std::unique_ptr<Session> session, Session::open(stand_in.model, options.session));
  MOTE_RETURN_IF_ERROR(check_lengths(*session, options));
  Prediction prediction(*stand_in.model->bound());
  Advice advice;
  MOTE_ASSIGN(const double decode, time_decode(*session, options.depth, prediction));
  MOTE_ASSIGN(const double prefill, time_prefill(*session, options.prompt_tokens, prediction));
  advice.decode_tokens_per_second = 1 / decode;
  advice.prefill_tokens_per_second = static_cast<double>(options.prompt_tokens) / prefill;
  advice.num_threads = session->num_threads();
  advice.context_length = session->context_length();
  advice.file_bytes = stand_in.model->file_bytes();
  advice.state_bytes = session->state_bytes();
  const Bound& bound = *stand_in.model->bound();
  advice.working_bytes = session->arena_bytes() + bound.packed_weights().bytes() + bound.file().program_bytes().size() +
                         stand_in.tokenizer_bytes;
  advice.device_bytes = static_cast<uint64_t>(std::max<int64_t>(0, memory_limit_bytes()));
  return advice;
}

}  // namespace mote
