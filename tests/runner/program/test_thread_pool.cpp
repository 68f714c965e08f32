#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runner/program/shares.h"
#include "runner/program/thread_pool.h"
#include "tests/runner/program/counted_allocations.h"

namespace mote {
namespace {

// A pool whose workers all run, however many CPUs the machine has.
std::unique_ptr<ThreadPool> running_pool(int threads) {
  return *make_thread_pool(ThreadPoolOptions{.num_threads = threads, .num_cpus = threads});
}

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
    auto pool = running_pool(threads);
    EXPECT_EQ(pool->num_threads(), threads);
    for (const int64_t count : {1, 2, 7, 100, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        EXPECT_EQ(visits(*pool, count, grain), std::vector<int>(static_cast<size_t>(count), 1))
            << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, ranges_are_at_least_grain_long_but_the_last) {
  auto pool = running_pool(3);
  std::vector<int64_t> lengths(1000);
  pool->parallel_for(1000, 7,
                     [&](int64_t begin, int64_t end, int) { lengths[static_cast<size_t>(begin)] = end - begin; });
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
  auto pool = running_pool(2);
  bool called = false;
  pool->parallel_for(0, 1, [&](int64_t, int64_t, int) { called = true; });
  pool->parallel_for(-5, 1, [&](int64_t, int64_t, int) { called = true; });
  EXPECT_FALSE(called);
}

TEST(ThreadPool, takes_a_grain_below_one_as_one) {
  auto pool = running_pool(2);
  EXPECT_EQ(visits(*pool, 10, 0), std::vector<int>(10, 1));
}

TEST(ThreadPool, results_of_one_loop_are_seen_by_the_next) {
  auto pool = running_pool(4);
  std::vector<int64_t> values(64, 0);
  for (int64_t round = 0; round < 2000; ++round) {
    pool->parallel_for(64, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>((i + round) % 64)] += 1;
    });
  }
  EXPECT_EQ(values, std::vector<int64_t>(64, 2000));
}

TEST(ThreadPool, wakes_workers_that_went_to_sleep) {
  auto pool = running_pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(visits(*pool, 100, 1), std::vector<int>(100, 1));
  }
}

TEST(ThreadPool, work_reaches_other_threads) {
  auto pool = running_pool(2);
  // Holds the caller inside its first range until the worker has taken one.
  std::atomic<bool> worker_came{false};
  pool->parallel_for(100, 1, [&](int64_t, int64_t, int thread) {
    if (thread != 0) worker_came = true;
    while (!worker_came) std::this_thread::yield();
  });
  EXPECT_TRUE(worker_came);
}

TEST(ThreadPool, more_threads_than_cpus_do_the_work_too) {
  auto pool = *make_thread_pool(ThreadPoolOptions{.num_threads = 8, .num_cpus = 2});
  EXPECT_EQ(pool->num_threads(), 8);
  for (int round = 0; round < 200; ++round) EXPECT_EQ(visits(*pool, 100, 1), std::vector<int>(100, 1));
}

// The worker holds one piece until the caller has done all the others, those of the worker's share included.
TEST(ThreadPool, a_slow_threads_share_is_taken_by_the_other) {
  auto pool = running_pool(2);
  std::atomic<int64_t> done{0};
  std::atomic<bool> worker_came{false};
  pool->parallel_for(64, 1, [&](int64_t begin, int64_t end, int thread) {
    if (thread == 0) {
      while (!worker_came) std::this_thread::yield();
      done += end - begin;
    } else if (!worker_came.exchange(true)) {
      while (done < 64 - (end - begin)) std::this_thread::yield();
    } else {
      done += end - begin;
    }
  });
  EXPECT_GE(done, 64 - 8);
}

// So nobody waits for a thread on a core of an eighth of the speed longer than all the work takes without it.
TEST(ThreadPool, a_piece_is_at_most_an_eighth_of_what_is_left_of_a_share) {
  constexpr int64_t kShare = 64;
  Shares shares(2);
  ASSERT_EQ(shares.divide(2 * kShare, 1, 2), 2 * kShare);
  int64_t left = kShare, num_pieces = 0;
  shares.run(1, [&](int64_t begin, int64_t end, int) {
    if (begin < kShare) return;  // of the other's share
    EXPECT_LE(end - begin, (left + 7) / 8);
    left -= end - begin;
    ++num_pieces;
  });
  EXPECT_EQ(left, 0);
  EXPECT_LE(num_pieces, kShare / 2);
}

TEST(ThreadPool, a_thread_reads_its_share_from_front_to_back) {
  Shares shares(2);
  EXPECT_EQ(shares.divide(100, 1, 2), 100);
  std::vector<int64_t> begins;
  int64_t next = 50;
  shares.run(1, [&](int64_t begin, int64_t end, int thread) {
    EXPECT_EQ(thread, 1);
    if (begin >= 50) {
      EXPECT_EQ(begin, next);
      next = end;
    }
    begins.push_back(begin);
  });
  EXPECT_EQ(next, 100);
  EXPECT_EQ(begins.front(), 50);
  EXPECT_EQ(*std::min_element(begins.begin(), begins.end()), 0);  // the other's share, when its own was done
}

TEST(ThreadPool, divides_counts_that_32_bits_do_not_hold) {
  Shares shares(3);
  const int64_t count = (int64_t{1} << 40) + 17;
  EXPECT_LE(shares.divide(count, 1, 3), int64_t{1} << 31);
  int64_t covered = 0;
  shares.run(0, [&](int64_t begin, int64_t end, int) { covered += end - begin; });
  EXPECT_EQ(covered, count);
}

TEST(ThreadPool, loops_allocate_nothing) {
  auto pool = running_pool(3);
  std::vector<int64_t> values(64, 0);
  const int64_t a = 1, b = 2, c = 3, d = 4;  // more than a std::function holds
  const auto loop = [&] {
    pool->parallel_for(64, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += a + b + c + d;
    });
  };
  loop();
  const int64_t before = test::num_allocations();
  for (int round = 0; round < 100; ++round) loop();
  EXPECT_EQ(test::num_allocations(), before);
  EXPECT_EQ(values, std::vector<int64_t>(64, 1010));
}

TEST(ThreadPool, workers_run_where_they_were_told_to) {
  const std::vector<int> usable = usable_cpus();
  if (usable.empty()) GTEST_SKIP() << "this system does not bind threads";
  auto pool = *make_thread_pool(ThreadPoolOptions{.num_threads = 3, .cpus = {usable.back()}, .num_cpus = 3});
  std::array<std::vector<int>, 3> seen;
  std::atomic<int> came{0};
  pool->parallel_for(3, 1, [&](int64_t, int64_t, int thread) {
    seen[static_cast<size_t>(thread)] = usable_cpus();
    ++came;
    while (came < 3) std::this_thread::yield();  // no thread takes two
  });
  EXPECT_EQ(seen[0], usable);
  EXPECT_EQ(seen[1], std::vector<int>{usable.back()});
  EXPECT_EQ(seen[2], std::vector<int>{usable.back()});
}

TEST(ThreadPool, reports_cpus_that_the_system_refuses) {
  const auto pool = make_thread_pool(ThreadPoolOptions{.num_threads = 2, .cpus = {1023}});
  EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
  EXPECT_NE(pool.status().message().find("cpus:"), std::string::npos) << pool.status().message();
}

TEST(ThreadPool, accepts_a_low_priority) {
  EXPECT_TRUE(make_thread_pool(ThreadPoolOptions{.num_threads = 2, .priority = ThreadPriority::kLow}).ok());
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
