#include "runtime/core/nearest.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(Nearest, OffersWhatIsNear) {
  EXPECT_EQ(nearest("trianer", {"trainer", "critic", "trainers"}),
            (std::vector<std::string>{"trainer", "trainers"}));
  EXPECT_TRUE(nearest("policy", {"critic", "reward"}).empty());
  EXPECT_EQ(did_you_mean("conter", {"counter"}), "; did you mean 'counter'?");
  EXPECT_EQ(did_you_mean("xyz", {"counter"}), "");
}

TEST(Nearest, ComparesTheFirstDigitsOfIds) {
  EXPECT_EQ(nearest("7f3b00", {"7f3a0011223344556677", "11112222333344445555"}),
            (std::vector<std::string>{"7f3a0011223344556677"}));
}

TEST(Nearest, OffersWhatMayHaveBeenMeant) {
  EXPECT_EQ(closest("abdd", {"ffff0000", "abcd0000", "abce0000"}, 2),
            (std::vector<std::string>{"abcd0000", "abce0000"}));
  EXPECT_TRUE(closest("x", {}).empty());
}

}  // namespace
}  // namespace runtime
