#include "runtime/control/demand.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(NodeUse, SaysAllThatKeepsANode) {
  NodeUse use;
  EXPECT_TRUE(use.is_idle());
  EXPECT_EQ(use.describe(), "");
  use.actors = 2;
  use.bundles = 1;
  use.jobs = 1;
  use.sole_copies = 3;
  EXPECT_EQ(use.describe(),
            "2 actors, 1 bundle, 1 driver, 3 published objects that no other node has");
}

TEST(NodeUse, IsNotIdleForAnyOneReason) {
  for (std::uint64_t NodeUse::*count :
       {&NodeUse::actors, &NodeUse::bundles, &NodeUse::jobs, &NodeUse::sole_copies}) {
    NodeUse use;
    use.last_placed = 7;  // by itself no reason
    EXPECT_TRUE(use.is_idle());
    use.*count = 1;
    EXPECT_FALSE(use.is_idle());
    EXPECT_NE(use.describe(), "") << "what keeps it has to be told";
  }
}

}  // namespace
}  // namespace runtime
