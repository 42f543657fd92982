#include "placement/resource/room.h"

#include <gtest/gtest.h>

#include <random>

namespace placement {
namespace {

Resources gpus(double amount) { return *Resources::from_map({{"GPU", amount}}); }

TEST(Room, GivesWholeGpusByNumber) {
  Room room(gpus(4));
  EXPECT_EQ(room.take(gpus(2)), (GpuList{0, 1}));
  EXPECT_EQ(room.take(gpus(1)), (GpuList{2}));
  EXPECT_FALSE(room.covers(gpus(2)));
  room.give(gpus(2), {0, 1});
  EXPECT_EQ(room.take(gpus(2)), (GpuList{0, 1}));
}

TEST(Room, PutsPartsTogetherAndKeepsWholesWhole) {
  Room room(gpus(2));
  EXPECT_EQ(room.take(gpus(0.25)), (GpuList{0}));
  EXPECT_EQ(room.take(gpus(0.5)), (GpuList{0}));
  EXPECT_EQ(room.take(gpus(1)), (GpuList{1}));
  EXPECT_FALSE(room.covers(gpus(0.5)));
  EXPECT_TRUE(room.covers(gpus(0.25)));
}

TEST(Room, SaysThatGpusAreFreeInPartsOnly) {
  Room room(gpus(2));
  EXPECT_EQ(room.take(gpus(0.6)), (GpuList{0}));
  EXPECT_EQ(room.take(gpus(0.6)), (GpuList{1}));
  EXPECT_FALSE(room.covers(gpus(0.5)));  // 0.8 are left, in two pieces
  EXPECT_NE(room.missing(gpus(0.5), gpus(2)).find("parts"), std::string::npos);
  EXPECT_EQ(room.missing(gpus(1), gpus(2)), "GPU 1 (has 0.8 free of 2)");
}

TEST(Room, TakesBackWhatARestartedHeadKnows) {
  Room room(gpus(4));
  EXPECT_TRUE(room.take(gpus(2), {1, 3}));
  EXPECT_FALSE(room.take(gpus(1), {3}));
  EXPECT_FALSE(room.take(gpus(1), {7}));
  EXPECT_FALSE(room.take(gpus(2), {0}));
  EXPECT_EQ(room.take(gpus(2)), (GpuList{0, 2}));
}

TEST(Room, OfABundleHasItsGpusOnly) {
  Room bundle(gpus(2), {3, 5});
  EXPECT_EQ(bundle.take(gpus(1)), (GpuList{3}));
  EXPECT_EQ(bundle.take(gpus(0.5)), (GpuList{5}));
  Room part(gpus(0.5), {2});
  EXPECT_EQ(part.take(gpus(0.25)), (GpuList{2}));
  EXPECT_FALSE(part.covers(gpus(0.5)));
}

TEST(Room, OneAndAHalfIsNoAmountOfGpus) {
  EXPECT_TRUE(check_gpus(gpus(0.3)).ok());
  EXPECT_TRUE(check_gpus(gpus(3)).ok());
  EXPECT_EQ(check_gpus(gpus(1.5)).code(), runtime::ErrorCode::kInvalidArgument);
}

TEST(Room, NeverGivesAGpuTwice) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Room room(gpus(4));
    std::vector<std::pair<Resources, GpuList>> taken;
    std::vector<double> used(4);
    for (int step = 0; step < 60; ++step) {
      if (!taken.empty() && random() % 3 == 0) {
        const std::size_t which = random() % taken.size();
        const double each = std::min(
            1.0, static_cast<double>(taken[which].first.units("GPU")) / Resources::kUnitsPerOne);
        for (std::uint32_t gpu : taken[which].second) used[gpu] -= each;
        room.give(taken[which].first, taken[which].second);
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const double amounts[] = {0.25, 0.5, 0.75, 1, 2, 3};
      const Resources demand = gpus(amounts[random() % 6]);
      if (!room.covers(demand)) continue;
      GpuList list = room.take(demand);
      const double each =
          std::min(1.0, static_cast<double>(demand.units("GPU")) / Resources::kUnitsPerOne);
      for (std::uint32_t gpu : list) {
        used[gpu] += each;
        ASSERT_LE(used[gpu], 1.0);
      }
      taken.emplace_back(demand, std::move(list));
    }
  }
}

}  // namespace
}  // namespace placement
