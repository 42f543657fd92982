// Backward passes cut over threads: the bits must not depend on which thread takes what.
#include "rl/model/parallel.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

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

}  // namespace
}  // namespace rl
