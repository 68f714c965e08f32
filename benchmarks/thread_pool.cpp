// What a decode step costs in a thread pool: 80 short parallel loops, alone, with one thread on a core that is slower
// by some factor, and beside processes that keep every CPU busy.
//
//     bench_thread_pool [loops' work in us, default 100] [seconds a case, default 1]
//
// Prints the median and the fastest time of a step for each number of threads, the cases interleaved.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runner/program/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLoopsPerStep = 80;  // five a layer, sixteen layers
constexpr int64_t kUnits = 128;    // of a loop
constexpr int kRounds = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Arithmetic that no compiler takes out; about a nanosecond a turn.
uint64_t turns(int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed;
}

double turns_per_microsecond() {
  double best = 0;
  volatile uint64_t sink = 0;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    sink = turns(20'000, sink);
    best = std::max(best, 20'000 / (seconds_since(start) * 1e6));
  }
  return best;
}

// slowness: how many times as long the last thread takes
double step(mote::ThreadPool& pool, int64_t turns_per_unit, std::vector<uint64_t>& results, int64_t slowness) {
  const auto start = Clock::now();
  for (int loop = 0; loop < kLoopsPerStep; ++loop) {
    pool.parallel_for(kUnits, 1, [&](int64_t begin, int64_t end, int thread) {
      const bool is_slow = thread > 0 && thread + 1 == pool.num_threads();
      for (int64_t unit = begin; unit < end; ++unit) {
        uint64_t& result = results[static_cast<size_t>(unit)];
        result = turns(turns_per_unit * (is_slow ? slowness : 1), result);
      }
    });
    results[0] = turns(turns_per_unit, results[0]);  // a little serial work
  }
  return seconds_since(start);
}

// Processes that never sleep.
std::vector<pid_t> start_competitors(int count) {
  std::vector<pid_t> processes;
  for (int i = 0; i < count; ++i) {
    const pid_t process = fork();
    if (process == 0) {
      volatile uint64_t sink = 0;
      for (;;) sink = turns(1000, sink);
    }
    processes.push_back(process);
  }
  return processes;
}

void measure(const char* name, double work_us, double seconds, const std::vector<int>& threads = {1, 2, 4, 8},
             int64_t slowness = 1) {
  const auto turns_per_unit = static_cast<int64_t>(work_us * turns_per_microsecond() / kUnits);
  std::vector<std::vector<double>> times(threads.size());
  std::vector<uint64_t> results(kUnits);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < threads.size(); ++i) {
      const auto pool = *mote::make_thread_pool(threads[i]);
      const auto start = Clock::now();
      while (seconds_since(start) < seconds / kRounds)
        times[i].push_back(step(*pool, turns_per_unit, results, slowness));
    }
  }
  for (size_t i = 0; i < threads.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    double sum = 0;
    for (const double time : times[i]) sum += time;
    std::printf("%-8s %6.0f us a loop  %2d threads: median %8.2f ms, mean %8.2f, fastest %8.2f (%zu steps)\n", name,
                work_us, threads[i], 1e3 * times[i][times[i].size() / 2],
                1e3 * sum / static_cast<double>(times[i].size()), 1e3 * times[i][0], times[i].size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double work_us = argc > 1 ? std::atof(argv[1]) : 100;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  measure("alone", work_us, seconds);
  for (const int64_t slowness : {2, 4, 8}) {
    measure((std::to_string(slowness) + " x slow").c_str(), work_us, seconds, {2}, slowness);
  }
  const std::vector<pid_t> competitors = start_competitors(mote::num_usable_cpus());
  measure("busy", work_us, seconds);
  for (const pid_t process : competitors) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  return 0;
}
