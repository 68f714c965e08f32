#include "backends/proof/deadline.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace mote::proof {
namespace {

// What a thread that may never end shares with the one that waits for it.
struct Outcome {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Status> status;
};

}  // namespace

std::optional<Status> within(std::chrono::nanoseconds patience, const std::function<Status()>& work) {
  const auto outcome = std::make_shared<Outcome>();
  const auto run = [outcome, work] {
    Status status = [&]() -> Status {
      try {
        return work();
      } catch (const std::bad_alloc&) { return {Code::kOutOfMemory, "no memory to try it"}; }
    }();
    const std::lock_guard lock(outcome->mutex);
    outcome->status.emplace(std::move(status));
    outcome->ended.notify_all();
  };
  std::thread worker;
  try {
    worker = std::thread(run);
  } catch (const std::system_error&) {
    run();  // without a thread there is nobody to wait
  }
  const bool has_ended = [&] {
    std::unique_lock lock(outcome->mutex);
    return outcome->ended.wait_for(lock, patience, [&] { return outcome->status.has_value(); });
  }();
  // What it holds of the device goes with it, which must not happen while the process ends.
  if (worker.joinable() && has_ended) worker.join();
  if (worker.joinable()) worker.detach();
  return has_ended ? std::optional(*outcome->status) : std::nullopt;
}

}  // namespace mote::proof
