// Backward passes cut over threads: the bits must not depend on which thread takes what.
#include "rl/model/parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rl {
namespace {

// As workers have it, and read by MKL at its first product.
[[maybe_unused]] const int kReproducible = ::setenv("MKL_CBWR", "AUTO,STRICT", 1);

// The product is small enough that MKL computes it otherwise with two threads than with one.
TEST(SingleThreadedTest, HoldsOnAThreadThatHasRunNoOperatorYet) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const at::Tensor a = at::randn({12, 24}), b = at::randn({24, 18});
  const auto product = [&] {
    const SingleThreaded alone;
    at::arange(4);  // asks how many threads there are
    return at::mm(a, b);
  };
  const at::Tensor here = product();
  for (int i = 0; i < 8; ++i) {
    at::Tensor there;
    std::thread([&] { there = product(); }).join();
    EXPECT_TRUE(there.equal(here));
  }
  at::set_num_threads(before);
}

TEST(Parallel, ADeviceGetsOneBlockOnTheCallersThread) {
  const at::Device device(at::kCUDA, 0);
  const std::vector<Block> whole = cut(1000, 64, device);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole.front().first, 0);
  EXPECT_EQ(whole.front().count, 1000);
  EXPECT_TRUE(cut(0, 64, device).empty());
  EXPECT_EQ(cut(1000, 64, at::kCPU).size(), 8U);

  kernel::ThreadPool pool(4);
  std::vector<std::thread::id> threads(64);
  std::vector<std::function<void()>> tasks;
  for (std::thread::id& thread : threads)
    tasks.emplace_back([&thread] { thread = std::this_thread::get_id(); });
  run_tasks(pool, tasks, device);
  for (const std::thread::id& thread : threads) EXPECT_EQ(thread, std::this_thread::get_id());
  const auto refused = [] { throw std::runtime_error("of a task"); };
  EXPECT_THROW(run_tasks(pool, {refused}, device), std::runtime_error);
}

}  // namespace
}  // namespace rl
