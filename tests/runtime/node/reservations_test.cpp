#include "runtime/node/reservations.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

class ReservationsTest : public ::testing::Test {
 protected:
  control::Reserve prepare(GroupId group, double cpus) {
    control::Reserve reserve;
    reserve.prepare.push_back({group, {{"CPU", cpus}}});
    return reserve;
  }
  bool takes(GroupId group, double cpus) {
    return reservations_.apply(prepare(group, cpus), "").refused.empty();
  }

  Reservations reservations_{{{"CPU", 4}}};
  const GroupId a_ = GroupId::random(), b_ = GroupId::random();
};

TEST_F(ReservationsTest, RefusesWhatItHasNoRoomFor) {
  EXPECT_TRUE(takes(a_, 3));
  auto refusals = reservations_.apply(prepare(b_, 2), "");
  ASSERT_EQ(refusals.refused.size(), 1u);
  EXPECT_EQ(refusals.refused[0].group, b_);
  EXPECT_NE(refusals.refused[0].reason.find("CPU 2 (has 1)"), std::string::npos)
      << refusals.refused[0].reason;
  EXPECT_FALSE(reservations_.holds(b_));
  EXPECT_TRUE(takes(b_, 1));
  control::Reserve gpu;
  gpu.prepare.push_back({GroupId::random(), {{"GPU", 1}}});
  EXPECT_EQ(reservations_.apply(gpu, "").refused.size(), 1u);
}

TEST_F(ReservationsTest, ReleasesBeforeItPrepares) {
  EXPECT_TRUE(takes(a_, 4));
  control::Reserve swap = prepare(b_, 4);
  swap.release.push_back(a_);
  EXPECT_TRUE(reservations_.apply(swap, "").refused.empty());
  EXPECT_FALSE(reservations_.holds(a_));
  EXPECT_TRUE(reservations_.holds(b_));
}

TEST_F(ReservationsTest, AskedTwiceItHoldsOnce) {
  EXPECT_TRUE(takes(a_, 3));
  EXPECT_TRUE(takes(a_, 4));
  EXPECT_EQ(reservations_.size(), 1u);
}

TEST_F(ReservationsTest, DropsWhatWasNotCommitted) {
  EXPECT_TRUE(takes(a_, 2));
  EXPECT_TRUE(takes(b_, 2));
  control::Reserve commit;
  commit.commit.push_back(a_);
  reservations_.apply(commit, "");
  reservations_.drop_prepared();
  EXPECT_TRUE(reservations_.holds(a_));
  EXPECT_FALSE(reservations_.holds(b_));
  EXPECT_TRUE(takes(b_, 2));
}

TEST_F(ReservationsTest, AResetIsAllThatThereIs) {
  EXPECT_TRUE(takes(a_, 4));
  control::Reserve reset = prepare(b_, 4);
  reset.reset = true;
  EXPECT_TRUE(reservations_.apply(reset, "").refused.empty());
  EXPECT_FALSE(reservations_.holds(a_));
}

TEST_F(ReservationsTest, ANodeThatStopsHoldsNothingNew) {
  EXPECT_TRUE(takes(a_, 1));
  auto refusals = reservations_.apply(prepare(b_, 1), "it is stopping");
  ASSERT_EQ(refusals.refused.size(), 1u);
  EXPECT_EQ(refusals.refused[0].reason, "it is stopping");
  EXPECT_TRUE(reservations_.holds(a_));
}

TEST_F(ReservationsTest, PartsAddUpExactly) {
  std::vector<GroupId> groups;
  for (int i = 0; i < 40; ++i) {
    groups.push_back(GroupId::random());
    EXPECT_TRUE(takes(groups.back(), 0.1));
  }
  EXPECT_FALSE(takes(b_, 0.1));
}

}  // namespace
}  // namespace runtime
