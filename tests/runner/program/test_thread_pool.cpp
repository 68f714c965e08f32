#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runner/program/thread_pool.h"

namespace mote {
namespace {

// How often each index was visited, and whether every thread number was below the pool's.
std::vector<int> visits(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<int> seen(static_cast<size_t>(count));
  pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int thread) {
    EXPECT_GE(thread, 0);
    EXPECT_LT(thread, pool.num_threads());
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  return seen;
}

TEST(ThreadPool, covers_every_index_once) {
  for (const int threads : {1, 2, 3, 8}) {
    auto pool = *make_thread_pool(threads);
    EXPECT_EQ(pool->num_threads(), threads);
    for (const int64_t count : {1, 2, 7, 100, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        EXPECT_EQ(visits(*pool, count, grain), std::vector<int>(static_cast<size_t>(count), 1)) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, ranges_are_at_least_grain_long_but_the_last) {
  auto pool = *make_thread_pool(3);
  std::vector<int64_t> lengths(1000);
  pool->parallel_for(1000, 7, [&](int64_t begin, int64_t end, int) { lengths[static_cast<size_t>(begin)] = end - begin; });
  int64_t covered = 0;
  for (size_t begin = 0; begin < lengths.size(); ++begin) {
    if (lengths[begin] == 0) continue;
    covered += lengths[begin];
    const bool is_last = begin + static_cast<size_t>(lengths[begin]) == lengths.size();
    EXPECT_TRUE(is_last || lengths[begin] >= 7) << lengths[begin];
  }
  EXPECT_EQ(covered, 1000);
}

TEST(ThreadPool, does_nothing_for_an_empty_loop) {
  auto pool = *make_thread_pool(2);
  bool called = false;
  pool->parallel_for(0, 1, [&](int64_t, int64_t, int) { called = true; });
  pool->parallel_for(-5, 1, [&](int64_t, int64_t, int) { called = true; });
  EXPECT_FALSE(called);
}

TEST(ThreadPool, takes_a_grain_below_one_as_one) {
  auto pool = *make_thread_pool(2);
  EXPECT_EQ(visits(*pool, 10, 0), std::vector<int>(10, 1));
}

TEST(ThreadPool, results_of_one_loop_are_seen_by_the_next) {
  auto pool = *make_thread_pool(4);
  std::vector<int64_t> values(64, 0);
  for (int64_t round = 0; round < 2000; ++round) {
    pool->parallel_for(64, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>((i + round) % 64)] += 1;
    });
  }
  EXPECT_EQ(values, std::vector<int64_t>(64, 2000));
}

TEST(ThreadPool, wakes_workers_that_went_to_sleep) {
  auto pool = *make_thread_pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(visits(*pool, 100, 1), std::vector<int>(100, 1));
  }
}

TEST(ThreadPool, work_reaches_other_threads) {
  auto pool = *make_thread_pool(2);
  // Holds the caller inside its first range until the worker has taken one.
  std::atomic<bool> worker_came{false};
  pool->parallel_for(100, 1, [&](int64_t, int64_t, int thread) {
    if (thread != 0) worker_came = true;
    while (!worker_came) std::this_thread::yield();
  });
  EXPECT_TRUE(worker_came);
}

TEST(ThreadPool, stops_without_having_worked) {
  for (int round = 0; round < 50; ++round) EXPECT_TRUE(make_thread_pool(4).ok());
}

TEST(ThreadPool, refuses_impossible_sizes) {
  for (const int threads : {0, -1, kMaxThreads + 1}) {
    const auto pool = make_thread_pool(threads);
    EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
    EXPECT_NE(pool.status().message().find("must be 1..256"), std::string::npos);
  }
}

}  // namespace
}  // namespace mote
