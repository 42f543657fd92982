#include "rl/model/page_users.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using Runs = std::vector<PageRun>;

TEST(PageUsers, TheFirstUserBringsAPageAndTheLastOneLetsItGo) {
  PageUsers users(6, 0);
  EXPECT_EQ(users.pages(), 6u);
  EXPECT_EQ(users.add({1, 4}), (Runs{{1, 4}}));
  EXPECT_EQ(users.add({3, 6}), (Runs{{4, 6}})) << "the fourth page is there";
  EXPECT_EQ(users.remove({1, 4}), (Runs{{1, 3}})) << "the other still has the fourth";
  EXPECT_EQ(users.remove({3, 6}), (Runs{{3, 6}}));
}

TEST(PageUsers, RunsAreCutByWhatIsThere) {
  PageUsers users(5, 0);
  (void)users.add({2, 3});
  EXPECT_EQ(users.add({0, 5}), (Runs{{0, 2}, {3, 5}}));
  EXPECT_EQ(users.remove({0, 5}), (Runs{{0, 2}, {3, 5}}));
}

TEST(PageUsers, NoPagesHaveNoRuns) {
  PageUsers users(3, 1);
  EXPECT_TRUE(users.add({1, 1}).empty());
  EXPECT_EQ(users.remove({0, 3}), (Runs{{0, 3}})) << "each had one from the beginning";
}

}  // namespace
}  // namespace rl
