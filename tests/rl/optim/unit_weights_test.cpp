// Weights that groups of ranks keep once each: what a rank has, and what goes where.
#include "rl/optim/unit_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/mesh/unit_homes.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/optimizer.h"
#include "rl/optim/unit_shards.h"
#include "tests/rl/model/large_config.h"
#include "tests/rl/optim/counting_links.h"

namespace rl {
namespace {

constexpr int kRanksInGroups = 6;
constexpr int kGroupRanks = 2;

struct RankOfGroup {
  int rank = 0;
  Transformer& model;
  UnitWeights& weights;
  const std::vector<RangeSet>& homes;  // by rank
  std::vector<std::size_t>& sent;      // bytes, by rank

  bool shares_group(int other) const { return other / kGroupRanks == rank / kGroupRanks; }
  bool shares_place(int other) const { return other % kGroupRanks == rank % kGroupRanks; }
  std::int64_t kept() const {
    return group_homes(homes, kGroupRanks)[static_cast<std::size_t>(rank)].elements();
  }
  std::int64_t home() const { return homes[static_cast<std::size_t>(rank)].elements(); }
};

// Ranks are threads, each with a model of the same weights that lets go of them.
void on_each_rank(const std::function<void(RankOfGroup)>& body) {
  const std::vector<ParameterSpec> specs = parameter_layout(testing::large_config());
  const std::vector<ArenaUnit> units = arena_units(testing::large_config(), specs);
  const std::vector<RangeSet> homes =
      homes_of(units, arena_elements(specs), kRanksInGroups, kGroupRanks);
  auto links = make_thread_links(kRanksInGroups);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanksInGroups; ++rank) {
    threads.emplace_back([&, rank] {
      Transformer model(testing::large_config(), Parameters::random(testing::large_config(), 1),
                        {.threads = 1});
      std::vector<std::size_t> sent(kRanksInGroups, 0);
      Communicator communicator(std::make_unique<testing::CountingLinks>(
          std::move(links[static_cast<std::size_t>(rank)]), sent));
      UnitWeights weights(communicator, model, units, homes, {.shard_ranks = kGroupRanks});
      weights.scatter();
      body({rank, model, weights, homes, sent});
      (void)communicator.barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(UnitWeights, ARankKeepsItsPartOfItsGroupAndGathersWithinIt) {
  on_each_rank([](const RankOfGroup& mine) {
    const Parameters whole = Parameters::random(testing::large_config(), 1);
    EXPECT_EQ(std::ssize(mine.weights.kept_values()), mine.kept());
    EXPECT_LE(mine.kept(), whole.arena_size() / kGroupRanks + 4 * kNormChunk) << "four units";
    EXPECT_EQ(mine.weights.needed().elements(), mine.kept());
    ASSERT_TRUE(mine.weights.gather().ok());
    EXPECT_TRUE(mine.model.parameters().arena().equal(whole.arena()));
    for (int other = 0; other < kRanksInGroups; ++other) {
      const bool receives = mine.shares_group(other) && other != mine.rank;
      EXPECT_EQ(mine.sent[static_cast<std::size_t>(other)],
                receives ? sizeof(float) * static_cast<std::size_t>(mine.kept()) : 0);
    }
  });
}

TEST(UnitWeights, AStepGoesToThosePlacesOfOtherGroupsThatKeepIt) {
  on_each_rank([](const RankOfGroup& mine) {
    at::Tensor expected = Parameters::random(testing::large_config(), 1).arena();
    for (std::size_t rank = 0; rank < mine.homes.size(); ++rank) {
      for (const ArenaRange& range : mine.homes[rank].ranges())
        for (float& value : part_of(elements_of(expected), range))
          value += static_cast<float>(rank + 1);
    }
    const std::span<float> home = mine.weights.home();
    ASSERT_EQ(std::ssize(home), mine.home());
    for (float& value : home) value += static_cast<float>(mine.rank + 1);
    ASSERT_TRUE(mine.weights.spread().ok());
    for (int other = 0; other < kRanksInGroups; ++other) {
      const bool receives = mine.shares_place(other) && other != mine.rank;
      EXPECT_EQ(mine.sent[static_cast<std::size_t>(other)],
                receives ? sizeof(float) * static_cast<std::size_t>(mine.home()) : 0);
    }
    std::vector<float> collected(mine.rank == 0 ? elements_of(expected).size() : 0);
    ASSERT_TRUE(mine.weights.collect(collected).ok());
    EXPECT_TRUE(std::ranges::equal(collected, elements_of(expected).first(collected.size())));
    ASSERT_TRUE(mine.weights.gather().ok());
    EXPECT_TRUE(mine.model.parameters().arena().equal(expected));
  });
}

// As where the arena was copied first, and let go of then.
TEST(UnitWeights, ThoseThatBeginScatteredKeepTheSame) {
  const std::vector<ParameterSpec> specs = parameter_layout(testing::large_config());
  const std::vector<ArenaUnit> units = arena_units(testing::large_config(), specs);
  const std::vector<RangeSet> homes = homes_of(units, arena_elements(specs), 2, 2);
  auto links = make_thread_links(2);
  std::vector<std::thread> threads;
  for (auto& link : links) {
    threads.emplace_back([&, link = std::move(link)]() mutable {
      Communicator communicator(std::move(link));
      const Parameters whole = Parameters::random(testing::large_config(), 1);
      Transformer model(testing::large_config(), Parameters::random(testing::large_config(), 1),
                        {.threads = 1});
      UnitWeights weights(communicator, model, units, homes, {.begins_scattered = true});
      EXPECT_TRUE(weights.is_scattered());
      EXPECT_EQ(weights.most_there(), 0);
      ASSERT_TRUE(weights.gather().ok());
      EXPECT_TRUE(model.parameters().arena().equal(whole.arena()));
      weights.scatter();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A cleared vector keeps its memory, and an empty one has none.
TEST(UnitWeights, WhereAllStaysTheCopyOfAStepGivesItsMemoryBack) {
  const std::vector<ParameterSpec> specs = parameter_layout(testing::large_config());
  const std::vector<ArenaUnit> units = arena_units(testing::large_config(), specs);
  const std::vector<RangeSet> homes = homes_of(units, arena_elements(specs), 1, 1);
  Transformer model(testing::large_config(), Parameters::random(testing::large_config(), 1),
                    {.threads = 1});
  Communicator communicator(std::move(make_thread_links(1).front()));
  UnitWeights weights(communicator, model, units, homes, {.stays = true});
  EXPECT_NE(weights.home().data(), nullptr);
  ASSERT_TRUE(weights.spread().ok());
  EXPECT_EQ(weights.kept_values().data(), nullptr);
}

}  // namespace
}  // namespace rl
