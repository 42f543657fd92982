#include "rl/data/adaptive_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace rl {
namespace {

Dataset rows(const std::vector<double>& difficulties) {
  std::vector<DataRow> made;
  for (const double difficulty : difficulties) {
    made.push_back({.prompt = "?",
                    .ground_truth = "",
                    .data_source = "",
                    .extra = nullptr,
                    .response = {},
                    .where = "rows:" + std::to_string(made.size() + 1),
                    .difficulty = difficulty});
  }
  return Dataset(std::move(made));
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

const std::vector<RowOutcome> kAllRight{{.row = 0, .score = 1.0}, {.row = 1, .score = 1.0}};
const std::vector<RowOutcome> kAllWrong{{.row = 0, .score = 0.0}};

TEST(AdaptiveOrder, TheTargetFollowsTheScoreWithinItsBounds) {
  const AdaptiveOrderOptions options{.beta = 0.5, .alpha = 2.0, .eta = 50.0};
  EXPECT_NEAR(next_target(20.0, 0.75, options), 20.0 + 50.0 * std::tanh(0.5), 1e-9);
  EXPECT_EQ(next_target(20.0, 0.5, options), 20.0);
  EXPECT_EQ(next_target(20.0, 0.0, options), 0.0);
  EXPECT_EQ(next_target(90.0, 1.0, options), 100.0);
}

TEST(AdaptiveOrder, GivesTheNearestRows) {
  const Dataset data = rows({90, 10, 0, 50, 40, 5});
  const auto order = *make_adaptive_order(data, {.eta = 50.0, .shuffle = false});
  EXPECT_EQ(*order->next(3), (std::vector<std::int64_t>{2, 5, 1}));
  ASSERT_TRUE(order->learn(kAllRight).ok());  // 50 tanh(1) = 38.1
  EXPECT_EQ(*order->next(2), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(order->epoch(), 0);
  EXPECT_EQ(order->next(2)->front(), 4);
  EXPECT_EQ(*order->next(1), std::vector<std::int64_t>{4});  // without news the target stays
  EXPECT_EQ(order->epoch(), 1);                              // as many rows were given as there are
  ASSERT_TRUE(order->learn(kAllWrong).ok());
  EXPECT_EQ(*order->next(1), std::vector<std::int64_t>{2});
  EXPECT_FALSE(order->next(7).ok());
}

TEST(AdaptiveOrder, AmongEqualsTheSeedChoosesAgainEachStep) {
  const Dataset data = rows(std::vector<double>(40, 0.0));
  const auto a = *make_adaptive_order(data, {.seed = 1}),
             b = *make_adaptive_order(data, {.seed = 1}),
             c = *make_adaptive_order(data, {.seed = 2});
  const auto first = *a->next(8), second = *a->next(8);
  EXPECT_NE(sorted(first), sorted(second));
  EXPECT_EQ(*b->next(8), first);
  EXPECT_NE(*c->next(8), first);
}

TEST(AdaptiveOrder, ResumesWithTheSameRows) {
  const Dataset data = rows({90, 10, 0, 50, 40, 5, 0, 0, 40, 40});
  const auto one = *make_adaptive_order(data, {.seed = 9});
  (void)*one->next(3);
  ASSERT_TRUE(one->learn(std::vector<RowOutcome>{{.row = 2, .score = 0.7}}).ok());
  const nlohmann::json position = nlohmann::json::parse(one->position().dump());
  const auto other = *make_adaptive_order(data, {.seed = 9});
  ASSERT_TRUE(other->resume(position).ok());
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(*one->next(3), *other->next(3));
    EXPECT_EQ(one->epoch(), other->epoch());
    ASSERT_TRUE(one->learn(kAllWrong).ok() && other->learn(kAllWrong).ok());
  }
  EXPECT_FALSE((*make_adaptive_order(rows({1, 2}), {.seed = 9}))->resume(position).ok());
  EXPECT_FALSE((*make_adaptive_order(data, {.seed = 8}))->resume(position).ok());
  EXPECT_FALSE(other->resume({{"seed", 0}}).ok());
}

TEST(AdaptiveOrder, ARowWithoutADifficultyIsNamed) {
  Dataset data = rows({1, 2});
  std::vector<DataRow> made = data.rows();
  made[1].difficulty.reset();
  const auto order = make_adaptive_order(Dataset(made), {});
  ASSERT_FALSE(order.ok());
  EXPECT_NE(order.status().message().find("rows:2: data.adarft needs a number `difficulty`"),
            std::string::npos)
      << order.status().message();
}

}  // namespace
}  // namespace rl
