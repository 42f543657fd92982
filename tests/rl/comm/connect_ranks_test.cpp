// Ranks connect to their groups as threads, over Gloo as the workers of a cluster do.
#include "rl/comm/connect_ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace rl {
namespace {

using runtime::Result;

// All ranks of a group; none where one could not connect.
std::vector<TrainingRanks> connected(int size, const PassSharing& sharing, ZeroLevel zero) {
  const std::shared_ptr<Rendezvous> rendezvous = make_local_rendezvous();
  std::vector<TrainingRanks> ranks(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Result<TrainingRanks> mine = connect_ranks(
          rendezvous, {.rank = rank, .size = size, .host = "127.0.0.1"}, sharing, zero);
      ASSERT_TRUE(mine.ok()) << mine.status().to_string();
      ranks[static_cast<std::size_t>(rank)] = std::move(*mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

std::string place_in(const std::unique_ptr<Communicator>& group) {
  return group ? std::to_string(group->rank()) + " of " + std::to_string(group->size()) : "none";
}

TEST(ConnectRanks, StagesOfOneRankEachAreLinkedBelowLevel3) {
  for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kMoments, ZeroLevel::kGradients}) {
    const std::vector<TrainingRanks> ranks = connected(2, {.stages = 2}, zero);
    for (const TrainingRanks& rank : ranks) {
      ASSERT_NE(rank.pipeline, nullptr);
      EXPECT_EQ(rank.pipeline->stages->size(), 2);
      EXPECT_EQ(rank.pipeline->stages->rank(), rank.team->rank());
      EXPECT_EQ(rank.pipeline->losses->rank(), rank.team->rank());
    }
  }
}

TEST(ConnectRanks, StagesHaveNoLinksThatLevel3DoesNotUse) {
  const std::vector<TrainingRanks> ranks = connected(2, {.stages = 2}, ZeroLevel::kWeights);
  for (const TrainingRanks& rank : ranks) {
    ASSERT_NE(rank.team, nullptr);
    EXPECT_EQ(rank.team->size(), 2);
    EXPECT_EQ(rank.pipeline, nullptr);
    EXPECT_EQ(rank.stage, nullptr);
  }
}

TEST(ConnectRanks, MembersOfATeamAreAsManyRanksApartAsThereAreTeams) {
  const std::vector<TrainingRanks> ranks = connected(4, {.ranks = 2}, ZeroLevel::kNone);
  std::vector<std::string> places;
  for (const TrainingRanks& rank : ranks) {
    places.push_back(place_in(rank.all) + ", " + place_in(rank.team));
    EXPECT_EQ(rank.stage, nullptr);
    EXPECT_EQ(rank.pipeline, nullptr);
  }
  EXPECT_EQ(places, (std::vector<std::string>{"0 of 4, 0 of 2", "1 of 4, 0 of 2", "2 of 4, 1 of 2",
                                              "3 of 4, 1 of 2"}));
}

TEST(ConnectRanks, RanksOfAStageShareItInsteadOfLinksBetweenStages) {
  const std::vector<TrainingRanks> ranks =
      connected(4, {.ranks = 2, .stages = 2}, ZeroLevel::kNone);
  std::vector<std::string> places;
  for (const TrainingRanks& rank : ranks) {
    places.push_back(place_in(rank.team) + ", " + place_in(rank.stage));
    EXPECT_EQ(rank.pipeline, nullptr);
  }
  EXPECT_EQ(places, (std::vector<std::string>{"0 of 4, 0 of 2", "1 of 4, 1 of 2", "2 of 4, 0 of 2",
                                              "3 of 4, 1 of 2"}));
}

TEST(ConnectRanks, OneRankNeedsNoOther) {
  const std::vector<TrainingRanks> ranks = connected(1, {}, ZeroLevel::kWeights);
  EXPECT_EQ(place_in(ranks[0].all), "0 of 1");
  EXPECT_EQ(ranks[0].team, nullptr);
}

TEST(ConnectRanks, RefusesTeamsThatDoNotDivideTheGroup) {
  const Result<TrainingRanks> ranks =
      connect_ranks(make_local_rendezvous(), {.rank = 0, .size = 3, .host = "127.0.0.1"},
                    {.stages = 2}, ZeroLevel::kNone);
  EXPECT_EQ(ranks.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(ranks.status().message(), "2 workers that share passes, of 3");
}

}  // namespace
}  // namespace rl
