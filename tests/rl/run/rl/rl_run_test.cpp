// Whole runs over a cluster that is a fake: its workers start nothing, and generate, score and
// learn in the test's process.
#include "rl/run/rl/rl_run.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/rl/run/fakes.h"
#include "tests/rl/run/rl/fake_models.h"
#include "tests/rl/run/rl/fake_spawner.h"
#include "tests/rl/run/rl/toy_run.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using support::expect_failure;
using Texts = std::vector<std::string>;

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

/// Notes the rows that it is asked for, and fails where the test says so.
class GenerateForRun final : public FakeGenerate {
 public:
  using FakeGenerate::FakeGenerate;
  Result<std::vector<Generated>> generate(const StepPrompts& prompts, bool validation) override {
    (validation ? validated : trained).push_back(prompts.rows);
    if (!failure.ok()) return failure;
    return FakeGenerate::generate(prompts, validation);
  }

  std::vector<std::vector<std::int64_t>> trained;  // a step each
  std::vector<std::vector<std::int64_t>> validated;
  Status failure;
};

/// Says when the run lets go of it.
class UpdateForRun final : public FakeUpdate {
 public:
  UpdateForRun(std::size_t workers, bool& held) : FakeUpdate(workers), held_(held) { held_ = true; }
  ~UpdateForRun() override { held_ = false; }

 private:
  bool& held_;
};

// Two workers take two steps of four prompts, with two samples of each.
class RlRunTest : public ToyRunTest {
 protected:
  RlRunTest() { set_memory(1e12); }

  // What the only node says that it has.
  void set_memory(double bytes) {
    runtime::NodeInfo node;
    node.hostname = "fake";
    node.resources = node.available = {{"CPU", 8}, {"memory", bytes}};
    nodes_ = std::vector{node};
  }
  Result<RlPlan> plan(const Texts& overrides = {}) const {
    Texts all = {"trainer.n_gpus_per_node=2", "trainer.total_training_steps=2",
                 "actor_rollout_ref.rollout.n=2"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return RlPlan::make(config(all));
  }
  Status start(Result<RlPlan> plan) {
    if (!plan.ok()) return plan.status();
    journal_ = std::make_unique<RunJournal>();
    journal_->on_step([this](const StepRecord& record) { records_.push_back(record); });
    Result<std::unique_ptr<RlRun>> started =
        RlRun::start({spawner_, [this] { return nodes_; },
                      [this](const Roles&, const fs::path& folder) {
                        warm_start_folder_ = folder;
                        return calls();
                      }},
                     std::move(*plan), *journal_);
    if (started.ok()) run_ = std::move(*started);
    return started.status();
  }
  void start_whole(const Texts& overrides = {}) {
    const Status started = start(plan(overrides));
    ASSERT_TRUE(started.ok()) << started.to_string();
  }
  void fit(std::int64_t steps = kAll) {
    const Status trained = run_->training().fit(steps);
    ASSERT_TRUE(trained.ok()) << trained.to_string();
  }
  // Expects that the start fails before anything is written into the run's folder.
  Status fail_to_start(const Texts& overrides = {}) {
    Result<RlPlan> made = plan(overrides);
    if (!made.ok()) return made.status();
    const std::set<fs::path> planned = files();
    const Status failure = start(std::move(made));
    EXPECT_FALSE(failure.ok());
    for (const fs::path& file : files())
      EXPECT_TRUE(planned.contains(file)) << file << " is written too early";
    EXPECT_TRUE(plan(overrides).ok()) << "its folder is free for the next";
    return failure;
  }
  std::set<fs::path> files() const {
    std::set<fs::path> all;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(run(), none))
      all.insert(entry.path());
    return all;
  }
  bool has_checkpoint(int step) const {
    return fs::exists(run() / ("global_step_" + std::to_string(step)) / "actor" / "weights");
  }
  // As an end of the program.
  void end() {
    run_.reset();
    journal_.reset();
  }

  FakeSpawner spawner_;
  Result<std::vector<runtime::NodeInfo>> nodes_ = runtime::internal_error("not set");
  std::vector<StepRecord> records_;
  fs::path warm_start_folder_;
  bool held_ = false;  // the calls, by the run
  std::unique_ptr<RunJournal> journal_;
  std::unique_ptr<RlRun> run_;
  // Those of the run, while it is there.
  GenerateForRun* generate_ = nullptr;
  FakeScore* score_ = nullptr;
  FakeReference* reference_ = nullptr;
  FakeUpdate* update_ = nullptr;
  FakeModels* models_ = nullptr;
  FakeWarmStart* warm_start_ = nullptr;

 private:
  RoleCalls calls() {
    auto batches = std::make_unique<FakeBatches>();
    auto generate = std::make_unique<GenerateForRun>(*batches, 2, 2);
    auto score = std::make_unique<FakeScore>(*batches);
    auto reference = std::make_unique<FakeReference>(*batches);
    auto update = std::make_unique<UpdateForRun>(2, held_);
    auto models = std::make_unique<FakeModels>();
    auto warm_start = std::make_unique<FakeWarmStart>();
    models->critic = false;
    generate_ = generate.get();
    score_ = score.get();
    reference_ = reference.get();
    update_ = update.get();
    models_ = models.get();
    warm_start_ = warm_start.get();
    return {.generate = std::move(generate),
            .partial = std::make_unique<RefusesPartly>(),
            .ahead = std::make_unique<RefusesAhead>(),
            .batches = std::move(batches),
            .score = std::move(score),
            .reference = std::move(reference),
            .teachers = {},
            .estimate = std::make_unique<FakeEstimate>(),
            .update = std::move(update),
            .state = std::move(models),
            .warm_start = std::move(warm_start)};
  }
};

TEST_F(RlRunTest, TakesItsStepsRecordsThemAndSavesTheLast) {
  start_whole();
  ASSERT_NE(run_, nullptr);
  EXPECT_EQ(spawner_.groups(), (Texts{"policy-11111", "reward-11111"}));
  EXPECT_EQ(run_->training().total_steps(), 2);
  EXPECT_EQ(run_->validator(), nullptr);
  fit();
  EXPECT_EQ(run_->training().steps_done(), 2);
  ASSERT_EQ(records_.size(), 2u);
  EXPECT_EQ(records_[1].step, 2);
  EXPECT_EQ(records_[1].total, 2);
  EXPECT_EQ(records_[1].metrics.at("training/global_step"), 2.0);
  EXPECT_EQ(records_[1].metrics.at("actor/loss"), 0.5);
  EXPECT_EQ(generate_->trained.size(), 2u);
  EXPECT_EQ(generate_->trained[0].size(), 4u);
  EXPECT_FALSE(generate_->scores_early);
  EXPECT_EQ(update_->calls, (Texts{"policy", "policy"}));
  ASSERT_EQ(update_->plans.size(), 2u);
  std::size_t samples = 0;
  for (const UpdatePlan& plan : update_->plans) samples += plan.advantages.size();
  EXPECT_EQ(samples, 8u);
  EXPECT_FALSE(has_checkpoint(1));
  EXPECT_TRUE(has_checkpoint(2));
  EXPECT_TRUE(fs::exists(run() / "config.yaml"));
  EXPECT_TRUE(fs::exists(run() / "metrics.jsonl"));
}

TEST_F(RlRunTest, TheReferenceIsStartedBeforeTheFirstStep) {
  start_whole({"actor_rollout_ref.actor.use_kl_loss=true"});
  ASSERT_NE(run_, nullptr);
  EXPECT_EQ(spawner_.groups(), (Texts{"policy-11111", "reward-11111"}));
  ASSERT_TRUE(run_->begin().ok());
  EXPECT_EQ(spawner_.groups(), (Texts{"policy-11111", "reference-11", "reward-11111"}));
  EXPECT_TRUE(reference_->passes.empty());
  fit();
  EXPECT_EQ(reference_->passes.size(), 2u) << "one list a worker";
  EXPECT_EQ(update_->references.size(), 2u);
  EXPECT_EQ(spawner_.spawned.size(), 3u) << "it is started once";
}

TEST_F(RlRunTest, AWarmStartComesFirstAndMakesTheReference) {
  start_whole(
      {"actor_rollout_ref.actor.use_kl_loss=true", "sft.steps=1", "sft.train_batch_size=4"});
  ASSERT_NE(run_, nullptr);
  EXPECT_EQ(warm_start_folder_, run() / kWarmStartFolder);
  fit(1);
  EXPECT_EQ(warm_start_->steps, 1);
  EXPECT_EQ(warm_start_->saves, 1);
  EXPECT_TRUE(spawner_.of("reference").spec.model.starts_with(warm_start_folder_.string()));
  ASSERT_EQ(records_.size(), 2u);
  EXPECT_EQ(records_[0].phase, "sft");
  EXPECT_EQ(records_[1].phase, "");
  fit(1);
  EXPECT_EQ(warm_start_->steps, 1);
}

TEST_F(RlRunTest, ARewardThatPreparesHearsOfResponsesEarly) {
  spawner_.can_prepare = true;
  start_whole();
  ASSERT_NE(run_, nullptr);
  EXPECT_TRUE(generate_->scores_early);
}

TEST_F(RlRunTest, ValidatesBeforeTrainingAndAfterItsSteps) {
  start_whole({"trainer.test_freq=2"});
  ASSERT_NE(run_, nullptr);
  ASSERT_NE(run_->validator(), nullptr);
  fit();
  EXPECT_EQ(generate_->trained.size(), 2u);
  EXPECT_FALSE(generate_->validated.empty());
  ASSERT_EQ(records_.size(), 3u);
  const auto is_validated = [](const StepRecord& record) {
    return std::any_of(record.metrics.begin(), record.metrics.end(), [](const auto& metric) {
      return std::string(metric.first).starts_with("val-core/");
    });
  };
  EXPECT_EQ(records_[0].step, 0);
  EXPECT_TRUE(is_validated(records_[0]));
  EXPECT_FALSE(is_validated(records_[1]));
  EXPECT_TRUE(is_validated(records_[2]));
}

TEST_F(RlRunTest, ARunContinuesFromItsCheckpointWithTheNextRows) {
  start_whole({"trainer.save_freq=1"});
  ASSERT_NE(run_, nullptr);
  fit(1);
  ASSERT_EQ(generate_->trained.size(), 1u);
  std::vector<std::int64_t> rows = generate_->trained[0];
  end();

  records_.clear();
  start_whole({"trainer.save_freq=1"});
  ASSERT_NE(run_, nullptr);
  EXPECT_EQ(run_->training().steps_done(), 1);
  EXPECT_EQ(models_->log, (Texts{"policy from actor"}));
  fit();
  EXPECT_EQ(run_->training().steps_done(), 2);
  ASSERT_EQ(records_.size(), 1u);
  EXPECT_EQ(records_[0].step, 2);
  ASSERT_EQ(generate_->trained.size(), 1u);
  rows.insert(rows.end(), generate_->trained[0].begin(), generate_->trained[0].end());
  EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), 8u) << "no row is taken twice";
  EXPECT_TRUE(has_checkpoint(1));
  EXPECT_TRUE(has_checkpoint(2));
}

TEST_F(RlRunTest, AnotherCheckpointIsLoadedWhereItIsOfTheSameRun) {
  start_whole({"trainer.save_freq=1"});
  ASSERT_NE(run_, nullptr);
  fit();
  ASSERT_TRUE(run_->load_checkpoint(run() / "global_step_1").ok());
  EXPECT_EQ(run_->training().steps_done(), 1);
  EXPECT_FALSE(run_->load_checkpoint(run() / "global_step_7").ok());
  EXPECT_EQ(run_->training().steps_done(), 1);
}

TEST_F(RlRunTest, AModelThatCannotBeLoadedIsNamedWithItsCheckpoint) {
  start_whole({"trainer.save_freq=1"});
  ASSERT_NE(run_, nullptr);
  fit(1);
  models_->fails["policy from actor"] = runtime::actor_died("policy 0 died");
  expect_failure(run_->load_checkpoint(run() / "global_step_1"), ErrorCode::kActorDied,
                 {"resuming from", "policy 0 died"});
}

TEST_F(RlRunTest, WhatAFailedStepFollowedIsSaved) {
  start_whole();
  ASSERT_NE(run_, nullptr);
  fit(1);
  EXPECT_FALSE(has_checkpoint(1));
  generate_->failure = runtime::actor_died("policy 1 died");
  expect_failure(run_->training().fit(kAll), ErrorCode::kActorDied, {"step 2", "policy 1 died"});
  EXPECT_TRUE(has_checkpoint(1));
}

TEST_F(RlRunTest, AfterAFailedUpdateTheWeightsAreNotSaved) {
  start_whole();
  ASSERT_NE(run_, nullptr);
  fit(1);
  update_->policy_failure = runtime::actor_died("policy 1 died");
  expect_failure(run_->training().fit(kAll), ErrorCode::kActorDied, {"step 2", "policy 1 died"});
  EXPECT_FALSE(has_checkpoint(1));
  EXPECT_FALSE(has_checkpoint(2));
}

TEST_F(RlRunTest, AReferenceThatCannotBeStartedEndsTheRunBeforeItsFirstStep) {
  start_whole({"actor_rollout_ref.actor.use_kl_loss=true"});
  ASSERT_NE(run_, nullptr);
  spawner_.fails["reference"] = runtime::resource_exhausted("no memory");
  expect_failure(run_->training().fit(kAll), ErrorCode::kResourceExhausted, {"no memory"});
  EXPECT_TRUE(generate_->trained.empty());
  EXPECT_TRUE(records_.empty());
}

TEST_F(RlRunTest, WhatARunHoldsIsFreeWhenItEnds) {
  const Texts overrides = {"trainer.rollout_data_dir=" + (folder_.path() / "samples").string()};
  start_whole(overrides);
  ASSERT_NE(run_, nullptr);
  fit();
  EXPECT_TRUE(held_);
  EXPECT_EQ(plan(overrides).status().code(), ErrorCode::kUnavailable) << "its folder is locked";
  EXPECT_EQ(FolderLock::acquire(folder_.path() / "samples").status().code(),
            ErrorCode::kUnavailable);
  EXPECT_TRUE(run_->flush_dumps().ok());
  end();
  EXPECT_FALSE(held_);
  EXPECT_TRUE(plan(overrides).ok());
  EXPECT_TRUE(FolderLock::acquire(folder_.path() / "samples").ok());
}

TEST_F(RlRunTest, WithoutAClusterNothingOfItIsThere) {
  nodes_ = runtime::unavailable("start() was not called");
  expect_failure(fail_to_start(), ErrorCode::kUnavailable, {"start"});
  EXPECT_TRUE(spawner_.reserved.empty());
}

// Before the nodes are asked, which would be another error here.
TEST_F(RlRunTest, AModelThatWentAfterThePlanIsNamed) {
  nodes_ = runtime::unavailable("start() was not called");
  auto made = plan();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  fs::remove(model() / "config.json");
  const Status failure = start(std::move(made));
  EXPECT_FALSE(failure.ok());
  EXPECT_NE(failure.code(), ErrorCode::kUnavailable);
  EXPECT_NE(failure.message().find(model().string()), std::string::npos) << failure.to_string();
}

TEST_F(RlRunTest, WhatWouldFillTheNodesIsRefusedBeforeAnythingIsReserved) {
  set_memory(1000);
  expect_failure(fail_to_start(), ErrorCode::kResourceExhausted, {"do not fit the nodes' memory"});
  EXPECT_TRUE(spawner_.reserved.empty());
}

TEST_F(RlRunTest, WorkersAreReservedWithTheMemoryThatTheyTake) {
  spawner_.fails["trainer.nnodes"] = runtime::resource_exhausted("others have taken it");
  expect_failure(fail_to_start(), ErrorCode::kResourceExhausted, {"others have taken it"});
  ASSERT_EQ(spawner_.reserved.size(), 1u);
  EXPECT_EQ(spawner_.reserved[0].per_node, 2);
  EXPECT_GT(spawner_.reserved[0].memory.node_bytes, 0);
  EXPECT_LT(spawner_.reserved[0].memory.node_bytes, 1'000'000'000'000);
  EXPECT_TRUE(spawner_.spawned.empty());
}

TEST_F(RlRunTest, ARoleThatCannotBeStartedIsToldAndNothingIsWritten) {
  spawner_.fails["policy"] = runtime::resource_exhausted("starting the policy workers: no memory");
  expect_failure(fail_to_start(), ErrorCode::kResourceExhausted, {"policy workers", "no memory"});
  EXPECT_EQ(generate_, nullptr) << "nothing is called";
}

}  // namespace
}  // namespace rl
