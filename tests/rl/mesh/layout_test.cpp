#include "rl/mesh/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/rl/mesh/mesh_shapes.h"

namespace rl {
namespace {

using testing::shape;

// A model of so many layers: unit 0 and the last one have a vocabulary, layers have norms, blocks
// and, where asked for, experts.
AddressSpace space_of(int layers, int blocks, int experts, std::int64_t scale = 700) {
  std::vector<Piece> pieces;
  std::int64_t parameter = 0;
  const auto add = [&](int unit, int block, int expert, std::int64_t rows) {
    pieces.push_back({.parameter = parameter++,
                      .part = {.rows = rows, .columns = 1},
                      .unit = unit,
                      .block = block,
                      .expert = expert});
  };
  for (int unit = 0; unit < layers + 2; ++unit) {
    add(unit, kUncut, kUncut, 33);
    for (int block = 0; block < blocks; ++block) add(unit, block, kUncut, scale * (block + 1));
    const bool is_layer = unit > 0 && unit <= layers;
    for (int expert = 0; is_layer && expert < experts; ++expert)
      add(unit, kUncut, expert, scale * 2);
  }
  return AddressSpace(std::move(pieces), layers + 2, blocks);
}

ModelUnits units_of(int layers, bool tied = false) {
  return {.first_layer = 1, .last_layer = 1 + layers, .tied = tied};
}

RangeSet whole(const AddressSpace& space) { return RangeSet{{0, space.elements()}}; }

TEST(Layout, OfOneRankIsEverything) {
  const AddressSpace space = space_of(3, 2, 0);
  for (const ZeroLevel level : {ZeroLevel::kNone, ZeroLevel::kWeights}) {
    const auto layout = layout_of(space, units_of(3), Mesh(), level);
    ASSERT_TRUE(layout.ok()) << layout.status().to_string();
    EXPECT_EQ(layout->used.front(), whole(space));
    EXPECT_EQ(layout->weights_home.front(), whole(space));
  }
}

TEST(Layout, LevelsOfZeroShardOneMoreThingEach) {
  const AddressSpace space = space_of(4, 2, 0, 4096);
  const Mesh mesh(shape(1, 1, 4, 1, 1));
  for (int level = 0; level <= 3; ++level) {
    const auto layout = layout_of(space, units_of(4), mesh, static_cast<ZeroLevel>(level));
    ASSERT_TRUE(layout.ok());
    const auto sharded = [&](const std::vector<RangeSet>& home) {
      return home[1].elements() < space.elements() / 3;
    };
    EXPECT_EQ(sharded(layout->moments_home), level >= 1);
    EXPECT_EQ(sharded(layout->gradients_home), level >= 2);
    EXPECT_EQ(sharded(layout->weights_home), level >= 3);
    EXPECT_EQ(layout->used[1], whole(space));
  }
}

TEST(Layout, StagesGetLayersUnevenlyAndTheTiedEmbeddingTwice) {
  const AddressSpace space = space_of(3, 1, 0);
  const Mesh mesh(shape(2, 1, 1, 1, 1));
  const auto layout = layout_of(space, units_of(3, /*tied=*/true), mesh, ZeroLevel::kNone);
  ASSERT_TRUE(layout.ok());
  const auto has = [&](int rank, int unit) {
    return layout->used[static_cast<std::size_t>(rank)].contains(space.unit(unit));
  };
  for (const int unit : {0, 1, 2}) EXPECT_TRUE(has(0, unit)) << unit;
  for (const int unit : {3, 4}) EXPECT_FALSE(has(0, unit)) << unit;
  for (const int unit : {0, 3, 4}) EXPECT_TRUE(has(1, unit)) << unit;
  for (const int unit : {1, 2}) EXPECT_FALSE(has(1, unit)) << unit;
}

TEST(Layout, TensorRanksShareBlocksAndRepeatWhatIsNotCut) {
  const AddressSpace space = space_of(2, 4, 0);
  const auto layout = layout_of(space, units_of(2), Mesh(shape(1, 1, 1, 1, 2)), ZeroLevel::kNone);
  ASSERT_TRUE(layout.ok());
  for (int unit = 0; unit < space.units(); ++unit) {
    for (int rank = 0; rank < 2; ++rank) {
      const RangeSet& used = layout->used[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(used.contains(space.uncut(unit)));
      for (int block = 0; block < 4; ++block)
        EXPECT_EQ(used.contains(space.block(unit, block)), block / 2 == rank);
    }
  }
}

TEST(Layout, ExpertsAreDealtToExpertRanks) {
  const AddressSpace space = space_of(2, 1, 5);
  const auto layout =
      layout_of(space, units_of(2), Mesh(shape(1, 1, 2, 1, 1, /*experts=*/2)), ZeroLevel::kNone);
  ASSERT_TRUE(layout.ok());
  for (int expert = 0; expert < 5; ++expert) {
    EXPECT_EQ(layout->used[0].contains(space.expert(1, expert)), expert < 3);
    EXPECT_EQ(layout->used[1].contains(space.expert(1, expert)), expert >= 3);
  }
}

// Whatever the mesh: what any rank uses is the model; each element that a rank uses has exactly one
// home among the ranks of its replica with the same blocks, and so has each expert.
TEST(Layout, EveryElementHasOneHomeInEachReplica) {
  std::mt19937 random(3);
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  for (int round = 0; round < 300; ++round) {
    const int layers = one_of({1, 2, 3, 5});
    const int blocks = one_of({1, 2, 4});
    const int experts = one_of({0, 0, 4, 5});
    const AddressSpace space = space_of(layers, blocks, experts, one_of({10, 700, 3000}));
    MeshShape drawn = shape(std::min(layers, one_of({1, 2})), one_of({1, 2}), one_of({1, 2, 3}),
                            one_of({1, 2}), std::min(blocks, one_of({1, 2, 4})));
    if (experts > 0 && drawn[Axis::kReplica] * drawn[Axis::kShard] % 2 == 0) drawn.experts = 2;
    const Mesh mesh(drawn);
    const auto layout = layout_of(space, units_of(layers, random() % 2 == 0), mesh,
                                  static_cast<ZeroLevel>(random() % 4));
    ASSERT_TRUE(layout.ok()) << layout.status().to_string() << " " << drawn.text();
    RangeSet all;
    for (int rank = 0; rank < mesh.world(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      all = all.united(layout->used[at]);
      for (const auto* home :
           {&layout->weights_home, &layout->gradients_home, &layout->moments_home}) {
        ASSERT_TRUE((*home)[at].without(layout->used[at]).empty()) << drawn.text();
        if ((*home)[at] == layout->used[at]) continue;  // not sharded
        const std::vector<int> peers = mesh.peers(rank, {Axis::kShard, Axis::kSequence});
        RangeSet of_peers;
        std::int64_t counted = 0, used = 0;
        RangeSet used_by_peers;
        for (const int peer : peers) {
          of_peers = of_peers.united((*home)[static_cast<std::size_t>(peer)]);
          counted += (*home)[static_cast<std::size_t>(peer)].elements();
          used_by_peers = used_by_peers.united(layout->used[static_cast<std::size_t>(peer)]);
        }
        used = used_by_peers.elements();
        ASSERT_EQ(of_peers, used_by_peers) << drawn.text();
        ASSERT_EQ(counted, used) << drawn.text();
      }
    }
    ASSERT_EQ(all, whole(space)) << drawn.text();
  }
}

TEST(Layout, NamesWhatDoesNotFit) {
  const auto message = [](const AddressSpace& space, int layers, const MeshShape& mesh) {
    const auto layout = layout_of(space, units_of(layers), Mesh(mesh), ZeroLevel::kNone);
    EXPECT_EQ(layout.status().code(), runtime::ErrorCode::kInvalidArgument);
    return layout.status().message();
  };
  EXPECT_EQ(message(space_of(3, 1, 0), 3, shape(4, 1, 1, 1, 1)),
            "4 pipeline stages cannot share 3 layers");
  EXPECT_EQ(message(space_of(3, 3, 0), 3, shape(1, 1, 1, 1, 2)),
            "the model's heads make 3 blocks, which 2 tensor-parallel ranks do not divide");
  EXPECT_EQ(message(space_of(3, 1, 2), 3, shape(1, 1, 4, 1, 1, 4)),
            "4 expert-parallel ranks cannot share 2 experts");
  EXPECT_EQ(message(space_of(3, 1, 0), 3, shape(1, 1, 2, 1, 1, 2)),
            "expert parallelism of a model without experts");
}

}  // namespace
}  // namespace rl
