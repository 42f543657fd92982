#include "rl/mesh/mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "rl/mesh/deal.h"
#include "tests/rl/mesh/mesh_shapes.h"

namespace rl {
namespace {

using testing::shape;

TEST(Mesh, PutsTensorPeersNextToEachOtherAndStagesFarthest) {
  const Mesh mesh(shape(2, 1, 2, 1, 2));
  EXPECT_EQ(mesh.world(), 8);
  EXPECT_EQ(mesh.peers(0, {Axis::kTensor}), (std::vector<int>{0, 1}));
  EXPECT_EQ(mesh.peers(0, {Axis::kShard}), (std::vector<int>{0, 2}));
  EXPECT_EQ(mesh.peers(0, {Axis::kStage}), (std::vector<int>{0, 4}));
  EXPECT_EQ(mesh.peers(7, {Axis::kShard, Axis::kTensor}), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(mesh.peers(7, {}), std::vector<int>{7});
}

TEST(Mesh, DataRanksAreReplicasTimesShards) {
  const Mesh mesh(shape(1, 2, 2, 2, 1));
  EXPECT_EQ(mesh.data_ranks(), 4);
  for (int rank = 0; rank < mesh.world(); ++rank) EXPECT_EQ(mesh.data_rank(rank), rank / 2);
}

// Of any shape and order: coordinates and ranks are each other's inverse, and the groups of an axis
// cover every rank once.
TEST(Mesh, GroupsOfAnAxisPartitionTheRanks) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    MeshShape drawn;
    for (const Axis axis : kAllAxes) drawn[axis] = 1 + static_cast<int>(random() % 3);
    std::vector<int> order(static_cast<std::size_t>(Mesh(drawn).world()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const auto mesh = Mesh::make(drawn, order);
    ASSERT_TRUE(mesh.ok()) << mesh.status().to_string();
    for (int rank = 0; rank < mesh->world(); ++rank)
      ASSERT_EQ(mesh->rank_at(mesh->of(rank)), rank) << drawn.text();
    for (const Axis axis : kAllAxes) {
      std::set<std::vector<int>> groups;
      for (int rank = 0; rank < mesh->world(); ++rank) {
        const std::vector<int> peers = mesh->peers(rank, {axis});
        ASSERT_EQ(static_cast<int>(peers.size()), mesh->size(axis));
        ASSERT_EQ(std::ranges::count(peers, rank), 1);
        ASSERT_EQ(peers[static_cast<std::size_t>(mesh->of(rank)[axis])], rank);
        groups.insert(peers);
      }
      ASSERT_EQ(static_cast<int>(groups.size()), mesh->world() / mesh->size(axis));
    }
  }
}

TEST(Mesh, ExpertGroupsAreNeighboursOfTheDataAxes) {
  const auto mesh = Mesh::make(shape(1, 2, 2, 1, 2, /*experts=*/2));
  ASSERT_TRUE(mesh.ok()) << mesh.status().to_string();
  // Ranks are (replica, shard, tensor): 0 = (0,0,0), 2 = (0,1,0).
  EXPECT_EQ(mesh->expert_peers(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(mesh->expert_peers(6), (std::vector<int>{4, 6}));
  EXPECT_EQ(mesh->expert_rank(4), 0);
  EXPECT_EQ(mesh->expert_rank(7), 1);
}

TEST(Mesh, NamesWhatCannotBe) {
  const auto none = Mesh::make(shape(1, 1, 0, 1, 1));
  EXPECT_EQ(none.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(none.status().message().find("0 ranks on its shard axis"), std::string::npos)
      << none.status().message();
  const auto experts = Mesh::make(shape(1, 1, 4, 1, 2, /*experts=*/3));
  EXPECT_NE(experts.status().message().find("3 expert-parallel ranks do not divide the 4"),
            std::string::npos)
      << experts.status().message();
  EXPECT_EQ(Mesh::make(shape(1, 1, 2, 1, 1), {0, 0}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(Mesh::make(shape(1, 1, 2, 1, 1), {0, 1, 2}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

TEST(MeshShape, SaysWhatIsCut) {
  EXPECT_EQ(MeshShape().text(), "1 rank");
  EXPECT_EQ(shape(2, 1, 1, 1, 2).text(), "2 stage x 2 tensor");
  EXPECT_EQ(shape(1, 1, 4, 1, 1, 2).text(), "4 shard, 2 expert");
}

TEST(Deal, CoversEachThingOnceAndDiffersByOneAtMost) {
  for (int count = 0; count < 40; ++count) {
    for (int parts = 1; parts < 9; ++parts) {
      int next = 0;
      for (int index = 0; index < parts; ++index) {
        const Dealt<int> dealt = deal(count, parts, index);
        ASSERT_EQ(dealt.begin, next);
        ASSERT_GE(dealt.size(), count / parts);
        ASSERT_LE(dealt.size(), (count + parts - 1) / parts);
        next = dealt.end;
      }
      ASSERT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace rl
