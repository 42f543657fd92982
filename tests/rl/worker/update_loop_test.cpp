// Optimizer steps over mini-batches: checks of a plan, the order of calls, means of metrics.
#include "rl/worker/update_loop.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/worker/team_ranks.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using support::expect_failure;

class UpdateLoopTest : public ::testing::Test {
 protected:
  using Calls = std::vector<std::string>;

  UpdateLoopTest() {
    using Tokens = std::vector<std::int32_t>;
    batch_.prompts.append(Tokens{4, 9, 6});
    batch_.prompts.append(Tokens{12, 5});
    batch_.prompt_of = {0, 0, 1, 1};
    for (const Tokens& response : {Tokens{7, 8}, Tokens{10, 4, 5}, Tokens{6}, Tokens{13, 3}})
      batch_.responses.append(response);
    batch_.logprobs.assign(8, -1.0F);
    batch_.stopped = {1, 1, 1, 1};

    LearnerOptions options;
    options.optimizer = OptimizerKind::kSgd;
    options.grad_norm_max = 0.0;
    learner_ = std::make_unique<Learner>(testing::team_model(testing::team_config()),
                                         TrainingRanks(make_single_communicator()), options);
    // The second of two mini-batches has two passes.
    plan_.mini_batches = {{.first_sample = 0, .last_sample = 1},
                          {.first_sample = 1, .last_sample = 4, .micro_batches = {{1, 3}, {3, 4}}}};
    learn_ = {.wanted = {.logprobs = LogprobOptions()},
              .loss =
                  [this](const MiniBatch& mini_batch, const Outputs& outputs,
                         const MicroBatch& samples, const PackedBatch& packed, Metrics& metrics) {
                    calls_.push_back(std::to_string(mini_batch.first_sample) + ": " +
                                     std::to_string(samples.first) + "-" +
                                     std::to_string(samples.last));
                    EXPECT_EQ(packed.sequences(), samples.last - samples.first);
                    metrics["losses"] += 1.0;
                    return loss_of(outputs);
                  },
              .begin =
                  [this](const MiniBatch& mini_batch, bool first) {
                    calls_.push_back(std::to_string(mini_batch.first_sample) +
                                     (first ? ": first" : ": begins"));
                    return begins_;
                  }};
  }

  Result<Metrics> run(const UpdateLoop& loop) {
    return run_updates(*learner_, batch_, plan_.mini_batches, loop, learn_);
  }
  at::Tensor weights() const { return learner_->model().parameters().arena().clone(); }
  Result<at::Tensor> loss_of(const Outputs& outputs) const {
    if (!fails_.ok()) return fails_;
    return at::Tensor(outputs.logprobs.logprobs_N.sum() * factor_);
  }

  RolloutBatch batch_;
  UpdatePlan plan_;
  std::unique_ptr<Learner> learner_;
  MiniBatchLoss learn_;
  Status begins_, fails_;
  double factor_ = -1.0;
  Calls calls_;
};

TEST_F(UpdateLoopTest, APlanIsOfItsBatch) {
  EXPECT_TRUE(check_plan(batch_, plan_).ok());
  plan_.use = {.repeats = {1, 0, 2, 1}, .positive = {1, 0, 0, 1}};
  plan_.scoring_batches = {{0, 2}, {2, 4}, {4, 4}};
  plan_.mini_batches[1].scoring_batches = {{1, 4}};
  EXPECT_TRUE(check_plan(batch_, plan_).ok());

  const auto refused = [this](const std::string& part, const auto& change) {
    UpdatePlan plan = plan_;
    change(plan);
    expect_failure(check_plan(batch_, plan), ErrorCode::kInvalidArgument, {part});
  };
  refused("uses of another number", [](UpdatePlan& plan) { plan.use.repeats.pop_back(); });
  refused("uses of another number", [](UpdatePlan& plan) { plan.use.positive.push_back(1); });
  const std::string outside = "a mini-batch outside the samples";
  refused(outside, [](UpdatePlan& plan) { plan.mini_batches[0].first_sample = -1; });
  refused(outside, [](UpdatePlan& plan) { plan.mini_batches[1].last_sample = 5; });
  refused(outside,
          [](UpdatePlan& plan) { plan.mini_batches[0] = {.first_sample = 3, .last_sample = 2}; });
  const std::string others = "micro-batches of other rows";
  refused(others, [](UpdatePlan& plan) { plan.mini_batches[1].micro_batches.pop_back(); });
  refused(others, [](UpdatePlan& plan) { plan.mini_batches[1].scoring_batches = {{0, 4}}; });
  refused(others, [](UpdatePlan& plan) { plan.scoring_batches = {{0, 3}}; });
}

TEST_F(UpdateLoopTest, SamplesCountOnceAndAsWrongUnlessTheirUseSaysElse) {
  const MicroBatch last_three{1, 4};
  const auto numbers = [](const at::Tensor& tensor) {
    const auto elements = elements_of(tensor);
    return std::vector<float>(elements.begin(), elements.end());
  };
  EXPECT_EQ(numbers(repeats_of({}, last_three)), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(numbers(positive_of({}, last_three)), (std::vector<float>{0, 0, 0}));
  const SampleUse use{.repeats = {5, 0, 2, 3}, .positive = {0, 1, 0, 1}};
  EXPECT_EQ(numbers(repeats_of(use, last_three)), (std::vector<float>{0, 2, 3}));
  EXPECT_EQ(numbers(positive_of(use, last_three)), (std::vector<float>{1, 0, 1}));
}

TEST_F(UpdateLoopTest, EachEpochTakesAStepForEachMiniBatch) {
  const at::Tensor before = weights();
  const auto metrics = run({.epochs = 2, .passes = {}, .learning_rate = 0.1, .role = "critic"});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_EQ(calls_, (Calls{"0: first", "0: 0-1", "1: begins", "1: 1-3", "1: 3-4", "0: begins",
                           "0: 0-1", "1: begins", "1: 1-3", "1: 3-4"}));
  EXPECT_DOUBLE_EQ(metrics->at("losses"), 6.0 / 4.0) << "the mean over four steps";
  EXPECT_GT(metrics->at("critic/grad_norm"), 0.0);
  EXPECT_DOUBLE_EQ(metrics->at("critic/skipped_updates"), 0.0);
  EXPECT_FALSE(metrics->contains("perf/mfu/critic")) << "the peak is not known";
  EXPECT_FALSE(weights().equal(before));
}

TEST_F(UpdateLoopTest, SkippedUpdatesAreCountedAndChangeNothing) {
  const at::Tensor before = weights();
  factor_ = std::numeric_limits<double>::quiet_NaN();
  const auto metrics =
      run({.epochs = 3, .passes = {}, .learning_rate = 0.1, .role = "actor", .peak_flops = 1e9});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_DOUBLE_EQ(metrics->at("actor/skipped_updates"), 6.0) << "a number, not a mean";
  EXPECT_TRUE(weights().equal(before));
  EXPECT_GT(metrics->at("perf/mfu/actor"), 0.0);
}

TEST_F(UpdateLoopTest, WithoutMiniBatchesThereIsNoStep) {
  plan_.mini_batches.clear();
  const auto metrics = run({.passes = {}, .learning_rate = 0.1, .role = "actor"});
  ASSERT_TRUE(metrics.ok()) << metrics.status().to_string();
  EXPECT_TRUE(metrics->empty());
  EXPECT_TRUE(calls_.empty());
}

TEST_F(UpdateLoopTest, AFailureEndsItBeforeTheStep) {
  const at::Tensor before = weights();
  const UpdateLoop loop{.passes = {}, .learning_rate = 0.1, .role = "actor"};
  begins_ = runtime::unavailable("a worker is gone");
  EXPECT_EQ(run(loop).status(), begins_);
  EXPECT_EQ(calls_, (Calls{"0: first"}));
  begins_ = {};
  fails_ = runtime::invalid_argument("no such loss");
  EXPECT_EQ(run(loop).status(), fails_);
  fails_ = {};
  plan_.mini_batches.front().micro_batches = {{0, 2}};
  EXPECT_EQ(run(loop).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(weights().equal(before));
}

}  // namespace
}  // namespace rl
