#include "rl/run/gradient_leaves.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

TEST(GradientLeaves, AreAtLeastAsManyAsTheWorkersOrOneEach) {
  const auto config = Config::load({.file = {}, .overrides = {"trainer.gradient_leaves=3"}});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_TRUE(check_gradient_leaves(*config, 0, 4).ok()) << "one a worker";
  EXPECT_TRUE(check_gradient_leaves(*config, 4, 4).ok());
  EXPECT_TRUE(check_gradient_leaves(*config, 7, 4).ok());
  support::expect_failure(check_gradient_leaves(*config, 3, 4),
                          runtime::ErrorCode::kInvalidArgument,
                          {"trainer.gradient_leaves", "4 workers", "from the command line"});
}

}  // namespace
}  // namespace rl
