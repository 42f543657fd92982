#include "placement/group/strategy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace placement {
namespace {

using runtime::GroupStrategy;

std::vector<Resources> cpus(std::initializer_list<double> amounts) {
  std::vector<Resources> list;
  for (double amount : amounts) list.push_back(*Resources::from_map({{"CPU", amount}}));
  return list;
}

TEST(Strategy, StrictPackTakesTheTightestNodeThatHoldsAll) {
  auto chosen = assign_bundles(GroupStrategy::kStrictPack, cpus({1, 2}), cpus({2, 8, 4}));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, (std::vector<std::size_t>{2, 2}));
  EXPECT_FALSE(assign_bundles(GroupStrategy::kStrictPack, cpus({5, 5}), cpus({8, 8})));
}

TEST(Strategy, OfNodesWhoseCpusAreAllTakenTheOneWithTheLeastMemory) {
  const auto node = [](double memory) {
    return *Resources::from_map({{"CPU", 2}, {"memory", memory}});
  };
  const std::vector<Resources> nodes = {node(64e9), node(8e9), node(16e9)};
  for (const auto& [bytes, where] : std::map<double, std::size_t>{{6e9, 1}, {8e9, 1}, {9e9, 2}}) {
    const auto chosen = assign_bundles(GroupStrategy::kPack, std::vector{node(bytes)}, nodes);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->front(), where) << bytes;
  }
  EXPECT_EQ(assign_bundles(GroupStrategy::kPack, cpus({2}), nodes)->front(), 0u) << "all are alike";
}

TEST(Strategy, PackFallsBackToMoreNodes) {
  auto chosen = assign_bundles(GroupStrategy::kPack, cpus({5, 5, 3}), cpus({8, 8, 8}));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::set(chosen->begin(), chosen->end()).size(), 2u);
}

TEST(Strategy, SpreadUsesNodesEvenly) {
  auto chosen = assign_bundles(GroupStrategy::kSpread, cpus({1, 1, 1, 1}), cpus({8, 8}));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::count(chosen->begin(), chosen->end(), 0u), 2);
  // With one node left it still places all there.
  EXPECT_TRUE(assign_bundles(GroupStrategy::kSpread, cpus({1, 1}), cpus({2})));
}

TEST(Strategy, StrictSpreadNeedsANodePerBundle) {
  EXPECT_FALSE(assign_bundles(GroupStrategy::kStrictSpread, cpus({1, 1, 1}), cpus({8, 8})));
  // Greedy would put the small bundle on the large node and fail; the matching does not.
  auto chosen = assign_bundles(GroupStrategy::kStrictSpread, cpus({1, 4}), cpus({4, 1}));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, (std::vector<std::size_t>{1, 0}));
}

TEST(Strategy, NothingFitsNoNodes) {
  for (auto strategy : {GroupStrategy::kPack, GroupStrategy::kSpread, GroupStrategy::kStrictPack,
                        GroupStrategy::kStrictSpread}) {
    EXPECT_FALSE(assign_bundles(strategy, cpus({1}), {}));
  }
}

TEST(Strategy, AssignmentsNeverOverbook) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> amount(1, 8), number(1, 6);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Resources> bundles, nodes;
    for (int i = number(random); i > 0; --i)
      bundles.push_back(*Resources::from_map({{"CPU", amount(random)}}));
    for (int i = number(random); i > 0; --i)
      nodes.push_back(*Resources::from_map({{"CPU", amount(random)}}));
    for (auto strategy : {GroupStrategy::kPack, GroupStrategy::kSpread, GroupStrategy::kStrictPack,
                          GroupStrategy::kStrictSpread}) {
      auto chosen = assign_bundles(strategy, bundles, nodes);
      if (!chosen) continue;
      std::vector<Resources> left = nodes;
      for (std::size_t b = 0; b < bundles.size(); ++b) {
        ASSERT_TRUE(left[(*chosen)[b]].covers(bundles[b]));
        left[(*chosen)[b]] -= bundles[b];
      }
      std::set<std::size_t> distinct(chosen->begin(), chosen->end());
      if (strategy == GroupStrategy::kStrictPack) {
        ASSERT_EQ(distinct.size(), 1u);
      } else if (strategy == GroupStrategy::kStrictSpread) {
        ASSERT_EQ(distinct.size(), bundles.size());
      }
    }
  }
}

}  // namespace
}  // namespace placement
