// A run before anything of it is started: its sizes and schedule, and faults that are found early.
#include "rl/run/rl/rl_plan.h"

#include "tests/rl/run/rl/toy_run.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class RlPlanTest : public ToyRunTest {
 protected:
  runtime::Result<RlPlan> make(const std::vector<std::string>& overrides = {}) const {
    return RlPlan::make(config(overrides));
  }
};

// Ten rows make two steps of four prompts an epoch.
TEST_F(RlPlanTest, TheScheduleIsOverTheStepsOfTheData) {
  const auto plan = make({"trainer.total_epochs=3", "actor_rollout_ref.actor.optim.lr=0.5",
                          "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.5",
                          "trainer.nnodes=2", "trainer.n_gpus_per_node=2"});
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->schedule.total_steps, 6);
  EXPECT_EQ(plan->schedule.policy_rate.warmup_steps, 3);
  EXPECT_EQ(plan->schedule.policy_rate.peak, 0.5);
  EXPECT_EQ(plan->workers(), 4);
  EXPECT_EQ(plan->models.policy, model());
  EXPECT_FALSE(plan->checkpoint.has_value());
}

TEST_F(RlPlanTest, EachRoleHasItsOwnPasses) {
  using Counts = std::map<std::string, std::int64_t>;
  const std::string epochs = "actor_rollout_ref.actor.ppo_epochs=2";
  EXPECT_EQ(make({epochs})->passes, (Counts{{"actor", 2}, {"critic", 2}}));
  const auto gae = make({epochs, "algorithm.adv_estimator=gae", "critic.ppo_epochs=3",
                         "critic.model.path=" + model().string()});
  ASSERT_TRUE(gae.ok()) << gae.status().to_string();
  EXPECT_EQ(gae->passes, (Counts{{"actor", 2}, {"critic", 3}}));
}

TEST_F(RlPlanTest, BatchesThatDoNotFitAreRefusedBeforeAFolderIsMade) {
  support::expect_failure(make({"trainer.n_gpus_per_node=5"}).status(),
                          runtime::ErrorCode::kInvalidArgument, {"data.train_batch_size=4"});
  EXPECT_FALSE(std::filesystem::exists(run()));
}

TEST_F(RlPlanTest, AFolderIsOneRunsAtATime) {
  {
    const auto first = make();
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    support::expect_failure(make().status(), runtime::ErrorCode::kUnavailable, {run().string()});
  }
  EXPECT_TRUE(make().ok());
}

TEST_F(RlPlanTest, ARowWithoutARewardIsFoundWithoutWorkers) {
  const std::string train = rows("train.jsonl", R"({"prompt":"ab","answer":"b","data_source":"?"})"
                                                "\n");
  support::expect_failure(
      make({"data.dataset_name=null", "data.train_files=" + train, "data.train_batch_size=1"})
          .status(),
      runtime::ErrorCode::kInvalidArgument, {"train.jsonl:1", "reward.rule"});
}

}  // namespace
}  // namespace rl
