// Dropout of an adapter: a function of the pass, the module and the place, on any number of
// threads.
#include "rl/model/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace rl {
namespace {

at::Tensor dropped(const DropoutPass& pass, std::uint32_t module, int threads = 1,
                   double share = 0.25) {
  kernel::ThreadPool pool(threads);
  return dropped_out(pool, at::ones({300, 101}), share, pass, module);
}

TEST(Dropout, LeavesTheShareOutAndScalesTheRest) {
  for (const double share : {0.1, 0.25, 0.9}) {
    const at::Tensor y = dropped({.seed = 3}, 0, 1, share);
    const double zeros = (y == 0).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(zeros, share, 0.01);
    EXPECT_NEAR(y.max().item<double>(), 1.0 / (1.0 - share), 1e-6);
    EXPECT_NEAR(y.mean().item<double>(), 1.0, share < 0.5 ? 0.01 : 0.1);
  }
  EXPECT_TRUE(dropped({}, 0, 1, 0.0).equal(at::ones({300, 101})));
}

TEST(Dropout, IsAFunctionOfPassAndModule) {
  const DropoutPass pass{.seed = 3, .rank = 1, .index = 7};
  const at::Tensor mask = dropped(pass, 5);
  EXPECT_TRUE(dropped(pass, 5, /*threads=*/4).equal(mask));
  EXPECT_FALSE(dropped(pass, 6).equal(mask));
  EXPECT_FALSE(dropped({.seed = 4, .rank = 1, .index = 7}, 5).equal(mask));
  EXPECT_FALSE(dropped({.seed = 3, .rank = 2, .index = 7}, 5).equal(mask));
  EXPECT_FALSE(dropped({.seed = 3, .rank = 1, .index = 8}, 5).equal(mask));
}

TEST(Dropout, OfSomeRowsIsThatOfTheWholePass) {
  kernel::ThreadPool pool(2);
  const DropoutPass pass{.seed = 3, .rank = 1, .index = 7};
  const at::Tensor whole = dropped(pass, 5);
  for (const std::int64_t first : {0, 1, 64, 299}) {
    const at::Tensor rows = dropped_out(pool, at::ones({300 - first, 101}), 0.25, pass, 5, first);
    EXPECT_TRUE(rows.equal(whole.narrow(0, first, 300 - first))) << first;
  }
}

TEST(Dropout, APassOfAnotherIsNotCounted) {
  DropoutPasses passes;
  passes.begin_step(/*rank=*/2, /*steps=*/0);
  const std::uint64_t next = passes.next().index;
  passes.follow(DropoutPass{.seed = 1, .rank = 5, .index = 77});
  EXPECT_EQ(passes.take().index, 77U);
  passes.follow(DropoutPass{.seed = 1, .rank = 5, .index = 78});
  passes.follow(std::nullopt);
  EXPECT_EQ(passes.take().index, next);
  EXPECT_EQ(passes.take().index, next + 1);
}

TEST(Dropout, PassesFollowTheOptimizersSteps) {
  DropoutPasses first, resumed;
  for (DropoutPasses* passes : {&first, &resumed}) passes->seed(9);
  first.begin_step(/*rank=*/2, /*steps=*/0);
  const DropoutPass of_step_0 = first.take();
  first.take();
  first.begin_step(2, 1);
  resumed.begin_step(2, 1);
  const DropoutPass of_step_1 = resumed.take();
  EXPECT_EQ(first.take().index, of_step_1.index);
  EXPECT_NE(of_step_0.index, of_step_1.index);
  EXPECT_EQ(of_step_1.seed, 9U);
  EXPECT_EQ(of_step_1.rank, 2U);
}

}  // namespace
}  // namespace rl
