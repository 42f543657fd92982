#include "rl/run/rl/partial_rollouts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rl {
namespace {

runtime::Result<std::optional<PartialRolloutOptions>> partial_options(
    std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "trainer.v1.trainer_mode=colocate_async");
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  if (!config.ok()) return config.status();
  return PartialRolloutOptions::from_config(*config);
}

TEST(PartialRollouts, VerlsColocatedTrainerAsksForThem) {
  const auto usual = partial_options({});
  ASSERT_TRUE(usual.ok() && usual->has_value()) << usual.status().message();
  EXPECT_EQ((*usual)->steps_ahead, 1);
  EXPECT_EQ((*usual)->age_max, 8);
  EXPECT_FALSE((*usual)->waits_for_old);
  const auto other = partial_options({"trainer.v1.colocate_async.num_warmup_batches=3",
                                      "trainer.v1.sampler.max_off_policy_threshold=null",
                                      "trainer.v1.sampler.max_off_policy_strategy=wait"});
  ASSERT_TRUE(other.ok() && other->has_value());
  EXPECT_EQ((*other)->steps_ahead, 3);
  EXPECT_EQ((*other)->age_max, std::nullopt);
  EXPECT_TRUE((*other)->waits_for_old);
  const auto sync = partial_options({"trainer.v1.trainer_mode=sync"});
  ASSERT_TRUE(sync.ok());
  EXPECT_FALSE(sync->has_value());
}

TEST(PartialRollouts, ErrorsNameTheKey) {
  const auto message = [](const std::string& override) {
    return partial_options({override}).status().message();
  };
  EXPECT_NE(message("trainer.v1.colocate_async.num_warmup_batches=0")
                .find("num_warmup_batches: must be at least 1"),
            std::string::npos);
  EXPECT_NE(message("trainer.v1.sampler.max_off_policy_threshold=0")
                .find("max_off_policy_threshold: must be at least 1"),
            std::string::npos);
  EXPECT_NE(
      message("trainer.v1.sampler.max_off_policy_strategy=keep").find("max_off_policy_strategy"),
      std::string::npos);
  EXPECT_NE(message("algorithm.filter_groups.enable=true")
                .find("algorithm.filter_groups.enable: must be false"),
            std::string::npos);
  EXPECT_NE(message("actor_rollout_ref.hybrid_engine=false")
                .find("actor_rollout_ref.hybrid_engine: must be true"),
            std::string::npos);
  for (const char* agent : {"actor_rollout_ref.rollout.multi_turn.enable=true",
                            "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent",
                            "actor_rollout_ref.rollout.agent.agent_loop_config_path=loops.yaml"}) {
    EXPECT_NE(message(agent).find("set actor_rollout_ref.rollout.multi_turn.enable=false"),
              std::string::npos)
        << agent << ": " << message(agent);
  }
}

TEST(PartialRollouts, WhatIsTooOldIsBegunAgainOrWaitedFor) {
  const auto task = [](std::int64_t step) { return PartialTask{.step = step, .task = {}}; };
  const std::vector<PartialTask> partial = {task(2), task(3), task(3), task(4)};
  // In step 5 those of step 3 have come to three steps.
  EXPECT_EQ(plan_partial(partial, 7, 5, {.age_max = std::nullopt}), (PartialPlan{.prompts = 7}));
  EXPECT_EQ(plan_partial(partial, 7, 5, {.age_max = 3}),
            (PartialPlan{.prompts = 7, .must_finish = 0, .restart = 1}));
  EXPECT_EQ(plan_partial(partial, 7, 5, {.age_max = 3, .waits_for_old = true}),
            (PartialPlan{.prompts = 7, .must_finish = 3, .restart = 0}));
  EXPECT_EQ(plan_partial(partial, 7, 5, {.age_max = 1}),
            (PartialPlan{.prompts = 7, .must_finish = 0, .restart = 4}));
  EXPECT_EQ(plan_partial(partial, 7, 5, {.age_max = 9, .waits_for_old = true}),
            (PartialPlan{.prompts = 7}));
}

SavedRollouts two_workers() {
  const auto task = [](std::int64_t step, const char* truth) {
    return PartialTask{
        .step = step,
        .task = {.data_source = "toy", .ground_truth = truth, .where = {}, .extra_info = {}}};
  };
  const PartialSample partial{.ids = {7}, .logprobs = {-1}, .weight_versions = {{1, 1}}};
  return {.steps_begun = 4,
          .tasks = {{task(2, "a"), task(4, "c")}, {task(3, "b"), task(4, "d")}},
          .prompts = {{{.ids = {1}, .seed = 1, .samples = {partial}}, {.ids = {3}, .seed = 3}},
                      {{.ids = {2}, .seed = 2}, {.ids = {4}, .seed = 4}}}};
}

TEST(PartialRollouts, AreReadAsTheyWereWritten) {
  const SavedRollouts rollouts = two_workers();
  const std::string bytes = encode_rollouts(rollouts);
  const auto read = decode_rollouts(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, rollouts);
  for (std::size_t length = 0; length < bytes.size(); length += 3)
    EXPECT_FALSE(decode_rollouts(bytes.substr(0, length)).ok()) << length;
  EXPECT_EQ(decode_rollouts("nothing of ours").status().code(),
            runtime::ErrorCode::kInvalidArgument);
  SavedRollouts lying = rollouts;
  lying.prompts[1].pop_back();
  EXPECT_FALSE(decode_rollouts(encode_rollouts(lying)).ok());
}

TEST(PartialRollouts, AreDealtToAnotherNumberOfWorkers) {
  const auto same = deal_rollouts(two_workers(), {1, 1});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(*same, two_workers());
  const auto one = deal_rollouts(two_workers(), {2});
  ASSERT_TRUE(one.ok());
  std::string truths;
  for (const PartialTask& task : one->tasks[0]) truths += task.task.ground_truth;
  EXPECT_EQ(truths, "abcd") << "oldest first";
  EXPECT_EQ(one->prompts[0][0], two_workers().prompts[0][0]);
  EXPECT_EQ(one->prompts[0][1], two_workers().prompts[1][0]);
  const auto uneven = deal_rollouts(two_workers(), {1, 0, 1});
  ASSERT_TRUE(uneven.ok());
  EXPECT_EQ(uneven->tasks[0].size(), 2U);
  EXPECT_EQ(uneven->tasks[1].size(), 0U);
  EXPECT_NE(
      deal_rollouts(two_workers(), {3}).status().message().find("data.train_batch_size must stay"),
      std::string::npos);
}

}  // namespace
}  // namespace rl
