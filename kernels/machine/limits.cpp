#include "kernels/machine/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/memory.h"
#include "kernels/kernel.h"

namespace mote {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes. Threads share the buffer in pieces, long enough that the hardware fetches ahead in each.
constexpr int64_t kPiece = int64_t{1} << 22;
constexpr double kSeconds = 0.25;  // for each rate
constexpr int64_t kTurnsPerUnit = 4096;

// Large enough that caches hold little of it, if memory allows. A whole number of pieces.
int64_t buffer_bytes() {
  const int64_t wanted = std::max<int64_t>(int64_t{256} << 20, 2 * last_cache_bytes());
  return std::max<int64_t>(1, std::min(wanted, physical_memory_bytes() / 4) / kPiece) * kPiece;
}

// Seconds that each pass() takes, of all within kSeconds and at least three, in rising order.
template <typename Pass>
std::vector<double> sorted_seconds(const Pass& pass) {
  const Clock::time_point start = Clock::now();
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  std::vector<double> seconds;
  while (seconds.size() < 3 || elapsed(start) < kSeconds) {
    const Clock::time_point begin = Clock::now();
    pass();
    seconds.push_back(elapsed(begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

// The faster of the probe's two ways, in 10^9 bytes a second: of each the median pass, since others may use the memory
// too and what they leave changes by the millisecond.
double read_rate(ThreadPool& threads, const ReadProbe& probe, const std::byte* data, int64_t bytes) {
  std::atomic<uint64_t> sum{0};
  double rate = 0;
  for (const auto read : {probe.read_one, probe.read_four}) {
    const std::vector<double> seconds = sorted_seconds([&] {
      threads.parallel_for(bytes / kPiece, 1, [&](int64_t begin, int64_t end, int) {
        sum += read(data + begin * kPiece, static_cast<size_t>((end - begin) * kPiece));
      });
    });
    rate = std::max(rate, static_cast<double>(bytes) / seconds[seconds.size() / 2] * 1e-9);
  }
  return rate;
}

Result<double> measure_read(ThreadPool& threads) {
  MOTE_ASSIGN(const ReadProbe* probe, select_functions<ReadProbe>({}, 1));
  const int64_t bytes = buffer_bytes();
  const ReservedPages buffer = reserve_large_pages(static_cast<size_t>(bytes));
  std::byte* data = buffer.get();
  MOTE_REQUIRE(data != nullptr, Code::kOutOfMemory, "no memory to measure reading with: %lld bytes",
               static_cast<long long>(bytes));
  threads.parallel_for(bytes / kPiece, 1, [&](int64_t begin, int64_t end, int) {
    std::memset(data + begin * kPiece, 1, static_cast<size_t>((end - begin) * kPiece));
  });
  return read_rate(threads, *probe, data, bytes);
}

// Of the quickest pass, which no other program slowed.
double multiply_rate(ThreadPool& threads, const Int8Probe::Loop& loop) {
  const int64_t units = int64_t{64} * threads.num_threads();
  std::atomic<int32_t> sum{0};
  const std::vector<double> seconds = sorted_seconds([&] {
    threads.parallel_for(units, 1, [&](int64_t begin, int64_t end, int) {
      sum += loop.multiply((end - begin) * kTurnsPerUnit, static_cast<int32_t>(begin));
    });
  });
  return static_cast<double>(units * kTurnsPerUnit * loop.macs_per_turn) / seconds.front() * 1e-9;
}

}  // namespace

Result<Limits> measure_limits(ThreadPool& threads) {
  Limits limits;
  MOTE_ASSIGN(const Int8Probe* probe, select_functions<Int8Probe>({}, 1));
  MOTE_ASSIGN(limits.read_gb_s, measure_read(threads));
  limits.int8_gmac_s = multiply_rate(threads, probe->narrow);
  limits.int8_wide_gmac_s = multiply_rate(threads, probe->wide);
  return limits;
}

}  // namespace mote
