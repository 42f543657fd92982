#include "rl/feed/row_order_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using support::expect_failure;

class RowOrderChoiceTest : public ::testing::Test {
 protected:
  using Keys = std::vector<std::string>;

  static runtime::Result<RowOrderChoice> choice(const Keys& keys, const EarlyDraws& draws = {}) {
    const auto config = Config::load({.overrides = keys});
    if (!config.ok()) return config.status();
    return RowOrderChoice::from_config(*config, draws);
  }

  const Keys adaptive_ = {"data.adarft.enable=true"};
  const Keys sampler_ = {"data.sampler.class_path=a.py", "data.sampler.class_name=A"};
};

TEST_F(RowOrderChoiceTest, OneOfThemOrNone) {
  const auto none = choice({"data.train_weights=[1,2]"}, {true, true, true});
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_FALSE(none->adaptive.has_value());
  EXPECT_TRUE(none->python_sampler.empty());
  const auto adaptive = choice(adaptive_);
  ASSERT_TRUE(adaptive.ok()) << adaptive.status().to_string();
  EXPECT_TRUE(adaptive->adaptive.has_value());
  EXPECT_TRUE(adaptive->python_sampler.empty());
  const auto sampler = choice(sampler_);
  ASSERT_TRUE(sampler.ok()) << sampler.status().to_string();
  EXPECT_FALSE(sampler->adaptive.has_value());
  EXPECT_EQ(sampler->python_sampler.name, "A");
}

TEST_F(RowOrderChoiceTest, TwoThatChooseTheRowsAreRefused) {
  Keys both = sampler_;
  both.insert(both.end(), adaptive_.begin(), adaptive_.end());
  expect_failure(choice(both).status(), ErrorCode::kInvalidArgument,
                 {"data.adarft.enable", "data.sampler.class_path"});
  for (const auto& [keys, key] : {std::pair(adaptive_, "data.adarft.enable"),
                                  std::pair(sampler_, "data.sampler.class_path")}) {
    Keys weighed = keys;
    weighed.push_back("data.train_weights=[1,2]");
    expect_failure(choice(weighed).status(), ErrorCode::kInvalidArgument,
                   {key, "data.train_weights"});
    weighed.back() = "data.train_weights=null";
    EXPECT_TRUE(choice(weighed).ok()) << choice(weighed).status().to_string();
  }
}

// The scores of the rows before choose the next ones, and these ways do not wait for them.
TEST_F(RowOrderChoiceTest, WaysThatDrawEarlyAreRefused) {
  const std::pair<EarlyDraws, const char*> ways[] = {
      {{.filters_groups = true}, "algorithm.filter_groups.enable"},
      {{.has_rollout_workers = true}, "actor_rollout_ref.hybrid_engine"},
      {{.is_partial = true}, "trainer.v1.trainer_mode"}};
  for (const auto& [keys, key] : {std::pair(adaptive_, "data.adarft.enable"),
                                  std::pair(sampler_, "data.sampler.class_path")}) {
    for (const auto& [draws, other] : ways)
      expect_failure(choice(keys, draws).status(), ErrorCode::kUnimplemented, {key, other});
  }
}

}  // namespace
}  // namespace rl
