#include "rl/kernel/thread_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/blocking_thread.h"
#include "tests/support/eventually.h"

namespace rl::kernel {
namespace {

// Adds one to every element of a loop and checks the ranges.
void count_visits(ThreadPool& pool, std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
  pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    ASSERT_LT(begin, end);
    ASSERT_LE(end - begin, grain);
    for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
  });
  for (const auto& visit : visits) ASSERT_EQ(visit.load(), 1);
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (std::int64_t count : {0, 1, 7, 1000}) {
      for (std::int64_t grain : {1, 3, 1000}) count_visits(pool, count, grain);
    }
  }
}

TEST(ThreadPool, RunsManyShortLoopsInARow) {
  ThreadPool pool(3);
  std::atomic<std::int64_t> sum{0};
  for (int i = 0; i < 20000; ++i) {
    pool.parallel_for(4, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  }
  EXPECT_EQ(sum.load(), 80000);
}

// A loop whose first range ends once another thread has taken the second one: gives that thread.
pid_t thread_that_helps(ThreadPool& pool) {
  std::atomic<pid_t> helper{0};
  const pid_t caller = ::gettid();
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    if (::gettid() != caller) helper = ::gettid();
    support::eventually([&] { return helper != 0; });
  });
  return helper;
}

TEST(ThreadPool, WakesThreadsThatWentToSleep) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    const pid_t helper = thread_that_helps(pool);
    ASSERT_NE(helper, 0);
    ASSERT_TRUE(support::eventually([&] { return support::is_asleep(helper); }));
    count_visits(pool, 100, 1);
  }
}

TEST(ThreadPool, RunsNestedAndConcurrentLoopsOnTheirCaller) {
  ThreadPool pool(2);
  std::atomic<int> visits{0};
  const auto nested = [&] {
    pool.parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
      pool.parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
        visits += static_cast<int>(end - begin);
      });
    });
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back(nested);
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(visits.load(), 4 * 64);
}

TEST(ThreadPool, ChangesItsNumberOfThreads) {
  ThreadPool pool(1);
  pool.set_threads(4);
  EXPECT_EQ(pool.threads(), 4);
  count_visits(pool, 50, 2);
  pool.set_threads(0);
  EXPECT_EQ(pool.threads(), usable_cores());
}

}  // namespace
}  // namespace rl::kernel
