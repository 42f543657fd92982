// Weights that groups of ranks keep once each: what a rank has, and what goes where.
#include "rl/optim/unit_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
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
void on_each_rank(const std::function<void(RankOfGroup)>& body,
                  const ModelConfig& config = testing::large_config()) {
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::vector<ArenaUnit> units = arena_units(config, specs);
  const std::vector<RangeSet> homes =
      homes_of(units, arena_elements(specs), kRanksInGroups, kGroupRanks);
  auto links = make_thread_links(kRanksInGroups);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanksInGroups; ++rank) {
    threads.emplace_back([&, rank] {
      Transformer model(config, Parameters::random(config, 1), {.threads = 1});
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

// What two passes begin and end with is gathered once for both.
TEST(UnitWeights, WhatTheNextPassBeginsWithComesWhileThisOneEnds) {
  for (const bool tied : {false, true}) {
    for (const bool with_backward : {false, true}) {
      SCOPED_TRACE(std::string(tied ? "tied" : "untied") + (with_backward ? ", backward" : ""));
      ModelConfig config = testing::large_config();
      config.tie_word_embeddings = tied;
      const std::vector<ArenaUnit> units = arena_units(config, parameter_layout(config));
      on_each_rank(
          [&](const RankOfGroup& mine) {
            const auto total = [&] {
              return std::accumulate(mine.sent.begin(), mine.sent.end(), 0UL);
            };
            const auto sent_by = [&](std::initializer_list<bool> followed) {
              const std::size_t before = total();
              for (const bool another : followed) {
                mine.model.begin_pass(another);
                EXPECT_TRUE(mine.model.idle_pass(with_backward).ok());
              }
              return total() - before;
            };
            std::int64_t two = 0;
            for (std::size_t unit = 1; unit < units.size(); ++unit)
              two = std::max(two, units[unit - 1].read.elements() + units[unit].read.elements());
            (void)mine.weights.most_there();
            const std::size_t alone = sent_by({false});
            const std::int64_t most = mine.weights.most_there();
            EXPECT_LE(most, two + 4 * 1024) << "whole pages";

            const std::size_t in_a_row = sent_by({true, true, false});
            EXPECT_LE(mine.weights.most_there(), two + 4 * 1024);
            const RangeSet kept =
                group_homes(mine.homes, kGroupRanks)[static_cast<std::size_t>(mine.rank)];
            const auto bytes = [&](const ArenaUnit& unit) {
              return sizeof(float) *
                     static_cast<std::size_t>(kept.intersected(unit.read).elements());
            };
            const std::size_t saved = with_backward ? bytes(units[1]) : tied ? bytes(units[0]) : 0;
            EXPECT_EQ(saved > 0, tied || with_backward);
            EXPECT_EQ(in_a_row, 3 * alone - 2 * saved);

            ASSERT_TRUE(mine.weights.gather().ok());
            EXPECT_TRUE(
                mine.model.parameters().arena().equal(Parameters::random(config, 1).arena()));
            mine.weights.scatter();
            EXPECT_EQ(sent_by({false}), alone) << "nothing has stayed";
          },
          config);
    }
  }
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
