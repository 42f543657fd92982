// Steps on gradients that passes add up unit by unit, against one loop. Ranks are threads.
#include "rl/optim/unit_shards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "rl/optim/unit_weights.h"
#include "tests/rl/optim/plain_descent.h"
#include "tests/rl/optim/unit_ranks.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;
using testing::GradientWriter;
using testing::made_up_gradient;
using testing::on_unit_ranks;
using testing::packed_home;
using testing::UnitRank;

// One pass of each rank, which is added up.
Status add_up_a_pass(const UnitRank& mine, UnitShards& shards) {
  shards.expect_last_pass(std::vector<std::uint8_t>(mine.homes.size(), 1), /*last_round=*/true,
                          /*passes_before=*/0);
  return mine.model.idle_pass(/*with_backward=*/true);
}

float sum_of_a_pass(int ranks, std::int64_t element) {
  float sum = 0.0F;
  for (int rank = 0; rank < ranks; ++rank) sum += made_up_gradient(rank, 0, element);
  return sum;
}

TEST(UnitShards, HomesHaveWholeChunksOfEachUnitAndTogetherTheArena) {
  const ModelConfig config = testing::unit_config(false);
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::vector<ArenaUnit> units = arena_units(config, specs);
  const std::int64_t elements = arena_elements(specs);
  const std::vector<RangeSet> homes = homes_of(units, elements, 3, 3);
  ASSERT_EQ(homes.size(), 3u);
  RangeSet all;
  std::int64_t kept = 0;
  for (const RangeSet& home : homes) {
    all = all.united(home);
    kept += home.elements();
    for (const ArenaRange& range : home.ranges()) {
      EXPECT_EQ(range.begin % kNormChunk, 0);
      EXPECT_TRUE(range.end % kNormChunk == 0 || range.end == elements) << range.end;
    }
    for (const ArenaUnit& unit : units)
      EXPECT_FALSE(home.intersected(unit.own).empty()) << unit.name << " is not of all ranks";
  }
  EXPECT_EQ(all, (RangeSet{{0, elements}}));
  EXPECT_EQ(kept, elements) << "none has two homes";
}

TEST(UnitShards, AStepOfAllRanksIsThatOfOneLoop) {
  const int ranks = 3;
  const Parameters before = Parameters::random(testing::unit_config(false), 1);
  const at::Tensor expected = before.arena().clone();
  double squares = 0.0;
  for (std::int64_t i = 0; i < before.arena_size(); ++i) {
    const float sum = sum_of_a_pass(ranks, i);
    squares += static_cast<double>(sum) * sum;
    elements_of(expected)[static_cast<std::size_t>(i)] -= 0.25F * (0.5F * sum);
  }
  for (const bool weights_stay : {true, false}) {
    on_unit_ranks(ranks, false, [&](const UnitRank& mine) {
      SCOPED_TRACE(weights_stay ? "weights stay" : "weights are sharded");
      kernel::ThreadPool pool(1);
      GradientWriter writer(mine);
      UnitWeights weights(mine.communicator, mine.model, mine.units, mine.homes,
                          {.stays = weights_stay});
      if (!weights_stay) weights.scatter();
      UnitShards shards(mine.communicator, mine.model, weights, mine.units, mine.homes);
      EXPECT_TRUE(shards.is_sharded());
      EXPECT_TRUE(shards.sums_in_passes());
      const auto rank = static_cast<std::size_t>(mine.communicator.rank());
      EXPECT_EQ(shards.home().set(), mine.homes[rank]);
      ASSERT_EQ(shards.homes().size(), mine.homes.size());

      const Status passed = add_up_a_pass(mine, shards);
      ASSERT_TRUE(passed.ok()) << passed.to_string();
      ASSERT_TRUE(shards.add_round({}, {}, /*last=*/true).ok()) << "the pass has added it up";
      EXPECT_TRUE(shards.is_summed());
      const auto norm = shards.norm(pool, {});
      ASSERT_TRUE(norm.ok()) << norm.status().to_string();
      EXPECT_NEAR(*norm, std::sqrt(squares), 1e-9 * *norm);

      testing::PlainDescent optimizer;
      const Status stepped = shards.step(optimizer, pool, {}, {}, 0.25F, 0.5F);
      ASSERT_TRUE(stepped.ok()) << stepped.to_string();
      EXPECT_EQ(optimizer.elements, mine.homes[rank].elements());
      shards.end_step();
      EXPECT_FALSE(shards.is_summed());
      ASSERT_TRUE(weights.gather().ok());
      EXPECT_TRUE(mine.model.parameters().arena().equal(expected));
    });
  }
}

TEST(UnitShards, WithoutALastPassThereIsNoSum) {
  on_unit_ranks(1, false, [](const UnitRank& mine) {
    UnitWeights weights(mine.communicator, mine.model, mine.units, mine.homes, {.stays = true});
    UnitShards shards(mine.communicator, mine.model, weights, mine.units, mine.homes);
    EXPECT_TRUE(shards.add_round({}, {}, /*last=*/false).ok());
    EXPECT_EQ(shards.add_round({}, {}, /*last=*/true).code(), ErrorCode::kInternal);
    EXPECT_EQ(shards.sum({}).code(), ErrorCode::kInternal);
    EXPECT_FALSE(shards.is_summed());
  });
}

TEST(UnitShards, WhatHomesHaveComesTogetherOnTheFirstRank) {
  on_unit_ranks(3, true, [](const UnitRank& mine) {
    UnitWeights weights(mine.communicator, mine.model, mine.units, mine.homes, {.stays = true});
    UnitShards shards(mine.communicator, mine.model, weights, mine.units, mine.homes);
    const auto value = [](std::int64_t element) { return static_cast<float>(element % 1009); };
    const auto rank = static_cast<std::size_t>(mine.communicator.rank());
    const auto elements = static_cast<std::size_t>(mine.model.parameters().arena_size());
    std::vector<float> whole(rank == 0 ? elements : 0);
    ASSERT_TRUE(shards.collect(packed_home(mine.homes[rank], value), whole).ok());
    for (std::size_t i = 0; i < whole.size(); ++i)
      ASSERT_EQ(whole[i], value(static_cast<std::int64_t>(i))) << "element " << i;
  });
}

// Its optimizer fails in a step in which the others wait for its weights.
TEST(UnitShards, ARankWhoseOptimizerFailsIsAnErrorOfTheOthers) {
  std::vector<Status> ended(3);
  on_unit_ranks(3, false, [&](const UnitRank& mine) {
    kernel::ThreadPool pool(1);
    GradientWriter writer(mine);
    UnitWeights weights(mine.communicator, mine.model, mine.units, mine.homes, {.stays = true});
    UnitShards shards(mine.communicator, mine.model, weights, mine.units, mine.homes);
    ASSERT_TRUE(add_up_a_pass(mine, shards).ok());
    testing::PlainDescent optimizer;
    const auto rank = static_cast<std::size_t>(mine.communicator.rank());
    if (rank == 1) optimizer.status = runtime::task_failed("no step today");
    ended[rank] = shards.step(optimizer, pool, {}, {}, 0.25F, 1.0F);
  });
  EXPECT_EQ(ended[1].message(), "no step today");
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(ended[rank].code(), ErrorCode::kUnavailable) << ended[rank].to_string();
    EXPECT_NE(ended[rank].message().find("has left the group"), std::string::npos)
        << ended[rank].message();
  }
}

}  // namespace
}  // namespace rl
