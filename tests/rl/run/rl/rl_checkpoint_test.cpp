// The contents of a checkpoint of reinforcement learning, over models, samples and credit that are
// fakes.
#include "rl/run/rl/rl_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rl/checkpoint/changed_keys.h"
#include "rl/checkpoint/checkpoint.h"
#include "rl/checkpoint/resume.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/run/rl/fake_models.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using Log = std::vector<std::string>;

/// Samples that are `value`.
class FakeSource final : public SampleSource {
 public:
  Result<StepBatch> next(const SampleRequest&, StepTimer&) override {
    return runtime::internal_error("not asked for");
  }
  nlohmann::json position() const override { return at; }
  std::vector<StateFile> state_files() const override {
    return {{"samples.bin", [text = value] { return text; }}};
  }
  Status restore(const fs::path& folder, const SavedAt& saved) override {
    restored.emplace_back(folder, saved.step, saved.epoch);
    return failure;
  }

  nlohmann::json at;
  Result<std::string> value = std::string("samples");
  Status failure;
  std::vector<std::tuple<fs::path, std::int64_t, std::int64_t>> restored;
};

/// Its state is a member of any kind; "bad" is refused.
class FakeAssigner final : public CreditAssigner {
 public:
  FakeAssigner(const char* name, ordered_json& value) : name_(name), value_(value) {}
  Status assign(StepBatch&, double, Credit&, StepTimer&) override {
    return runtime::internal_error("not asked for");
  }
  ordered_json save() const override {
    ordered_json state = ordered_json::object();
    if (!value_.is_null()) state[name_] = value_;
    return state;
  }
  Status restore(const ordered_json& state) override {
    const ordered_json value = state.contains(name_) ? state.at(name_) : ordered_json();
    if (value == ordered_json("bad")) return runtime::invalid_argument("it is bad");
    value_ = value;
    return {};
  }

 private:
  const char* name_;
  ordered_json& value_;
};

class RlCheckpointTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<support::TemporaryFolder>();
    const ToyModelOptions tiny{.layers = 1, .hidden_size = 16, .intermediate_size = 16};
    ASSERT_TRUE(make_toy_model(model_->path(), tiny).ok());
  }
  static void TearDownTestSuite() { model_.reset(); }

  RlCheckpointTest() {
    options_.seed = 5;
    options_.kl_control = {.coefficient = 0.5, .adaptive = true};
    source_.at = position_after(2);
    fs::create_directories(folder_);
    parts();
  }

  static Config config(std::vector<std::string> overrides = {}) {
    overrides.insert(overrides.begin(),
                     {"data.dataset_name=toy", "data.toy.rows=10",
                      "actor_rollout_ref.model.path=" + model_->path().string()});
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  static std::unique_ptr<PromptFeed> feed(const Config& config) {
    const auto dataset = dataset_options(config, Split::kTrain);
    auto feed =
        PromptFeed::create(config, **dataset, {.model = model_->path(), .batch_prompts = 2});
    EXPECT_TRUE(feed.ok()) << feed.status().to_string();
    return std::move(*feed);
  }
  static nlohmann::json position_after(std::int64_t steps, const Config& of = config()) {
    const auto read = feed(of);
    for (std::int64_t step = 1; step <= steps; ++step) EXPECT_TRUE(read->next(step).ok());
    return read->position();
  }

  // As of a process that has just begun, with the options of now. `scales`: rewards by those of
  // the steps before. `assigner`: the name of what the assigner saves.
  void parts(bool scales = true, const char* assigner = "focus") {
    assigned_ = nullptr;
    feed_ = feed(config_);
    const auto scaler = scales ? std::optional<RewardScaler>(options_.reward_scaling)
                               : std::optional<RewardScaler>();
    credit_ = std::make_unique<CreditPhase>(SampleUseOptions{},
                                            RewardShaper(scaler, KlInReward(options_.kl_control)),
                                            std::make_unique<FakeAssigner>(assigner, assigned_));
    checkpoint_ = std::make_unique<RlCheckpoint>(config_, options_, identity_, models_, *feed_,
                                                 source_, *credit_);
  }
  ordered_json saved() const {
    return {{"format", 1},
            {"stage", "train"},
            {"step", 7},
            {"epoch", 1},
            {"seed", 5},
            {"data_position", source_.at},
            {"kl_coefficient", 0.25},
            {"rewards", {{"steps", 3}, {"mean", 0.5}, {"square", 2.0}}},
            {EarlyStop::kStateKey, {{"since", 2}}},
            {"best", {{"step", 4}}},
            {ModelIdentity::kStateKey, identity_.to_json()},
            {"focus", {1, 9}}};
  }
  ordered_json state() const {
    return checkpoint_->state(
        {.step = 7, .total_steps = 20, .early_stop = {{"since", 2}}, .best = {{"step", 4}}},
        /*epoch=*/1);
  }
  Result<SavedAt> restore(const ordered_json& state) {
    return checkpoint_->restore(folder_, state);
  }
  RewardState rewards() const {
    RewardState state;
    credit_->shaper().save(state);
    return state;
  }
  // What restore() refuses before anything is loaded.
  void refuse(const ordered_json& state, const std::string& why) {
    const auto refused = restore(state);
    EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.status().message(), (folder_ / kRunStateFile).string() + ": " + why);
    EXPECT_TRUE(models_.log.empty() && source_.restored.empty());
    EXPECT_EQ(feed_->position(), position_after(0));
  }

  // Writes a checkpoint below the folder; returns what is to be there.
  Result<std::vector<fs::path>> write(const Result<CheckpointSaver::WriteFiles>& files) {
    EXPECT_TRUE(files.ok()) << files.status().to_string();
    auto writer = CheckpointWriter::begin(root_.path() / "run", 7);
    EXPECT_TRUE(writer.ok()) << writer.status().to_string();
    writer_.emplace(std::move(*writer));
    return (*files)(*writer_);
  }
  std::string read(const fs::path& file) const {
    std::ostringstream text;
    text << std::ifstream(writer_->folder() / file).rdbuf();
    return text.str();
  }

  static inline std::unique_ptr<support::TemporaryFolder> model_;
  support::TemporaryFolder root_;
  const fs::path folder_ = root_.path() / "global_step_7";
  const Config config_ = config();
  TrainerOptions options_;
  const ModelIdentity identity_{.name = "toy", .fingerprint = "f1"};
  FakeModels models_;
  FakeSource source_;
  ordered_json assigned_;
  std::unique_ptr<PromptFeed> feed_;
  std::unique_ptr<CreditPhase> credit_;
  std::unique_ptr<RlCheckpoint> checkpoint_;
  std::optional<CheckpointWriter> writer_;
};

TEST_F(RlCheckpointTest, TheStateIsOfAllParts) {
  credit_->shaper().restore(
      {.kl_coefficient = 0.25, .statistics = {.steps = 3, .mean = 0.5, .square = 2.0}});
  assigned_ = ordered_json::array({1, 9});
  EXPECT_EQ(state().dump(), saved().dump()) << "in this order";
}

TEST_F(RlCheckpointTest, AnAssignersStateComesAfterTheRunsWhateverItsName) {
  parts(/*scales=*/true, "averages");
  assigned_ = {{"grpo", 0.5}};
  ordered_json expected = saved();
  expected.erase("focus");
  expected["averages"] = {{"grpo", 0.5}};
  expected["focus"] = ordered_json::array();  // as older versions wrote it for any estimator
  expected["kl_coefficient"] = 0.5;
  expected["rewards"] = {{"steps", 0}, {"mean", 0.0}, {"square", 0.0}};
  EXPECT_EQ(state().dump(), expected.dump());
  assigned_ = nullptr;
  expected.erase("averages");
  EXPECT_EQ(state().dump(), expected.dump()) << "it has none";
}

TEST_F(RlCheckpointTest, AStateThatItsAssignerRefusesLoadsNothing) {
  assigned_ = "good";
  ordered_json bad = saved();
  bad["focus"] = "bad";
  refuse(bad, "it is bad");
  EXPECT_EQ(assigned_, ordered_json("good"));
}

using RlCheckpointDeathTest = RlCheckpointTest;

TEST_F(RlCheckpointDeathTest, NoMemberOfTheRunIsAnAssigners) {
  parts(/*scales=*/true, "step");
  assigned_ = 8;
  EXPECT_DEATH((void)state(), "contains");
}

TEST_F(RlCheckpointTest, ARunGoesOnWithWhatItSaved) {
  const auto at = restore(saved());
  ASSERT_TRUE(at.ok()) << at.status().to_string();
  EXPECT_EQ(at->step, 7);
  EXPECT_EQ(at->epoch, 1);
  EXPECT_EQ(models_.log, (Log{"policy from actor", "critic from critic"}));
  ASSERT_EQ(source_.restored.size(), 1u);
  EXPECT_EQ(source_.restored[0], std::tuple(folder_, 7, 1));
  EXPECT_EQ(feed_->position(), position_after(2));
  EXPECT_EQ(assigned_, ordered_json::array({1, 9}));
  EXPECT_EQ(state(), saved());
}

TEST_F(RlCheckpointTest, KeysThatHaveChangedAreTold) {
  std::ofstream(folder_ / kSavedConfigFile) << config({"data.toy.letters=5"}).to_yaml();
  ::testing::internal::CaptureStderr();  // where the log goes
  const auto at = restore(saved());
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(at.ok()) << at.status().to_string();
  EXPECT_NE(told.find("data.toy.letters: 5 -> "), std::string::npos) << told;
}

TEST_F(RlCheckpointTest, WithoutACriticNoneIsLoaded) {
  models_.critic = false;
  ASSERT_TRUE(restore(saved()).ok());
  EXPECT_EQ(models_.log, Log{"policy from actor"});
}

// A run that scales no rewards now may be gone on with by one that does.
TEST_F(RlCheckpointTest, WhatIsOfNoPartNowStaysAsItWasSaved) {
  parts(/*scales=*/false);
  ASSERT_TRUE(restore(saved()).ok());
  EXPECT_EQ(rewards().statistics, RewardStatistics{}) << "there is no such part";
  EXPECT_EQ(state(), saved());
}

TEST_F(RlCheckpointTest, OlderStatesHaveNeitherControllerNorStatistics) {
  ordered_json old = saved();
  for (const char* key : {"kl_coefficient", "rewards", "focus", "stage"}) old.erase(key);
  ASSERT_TRUE(restore(old).ok());
  EXPECT_EQ(rewards(), (RewardState{.kl_coefficient = 0.5}));
  EXPECT_EQ(assigned_, ordered_json());
}

TEST_F(RlCheckpointTest, NumbersOfAnotherKindCountAsNone) {
  ordered_json odd = saved();
  odd["kl_coefficient"] = "much";
  odd["rewards"] = {{"steps", 3}, {"mean", nullptr}};
  ASSERT_TRUE(restore(odd).ok());
  EXPECT_EQ(rewards(), (RewardState{.kl_coefficient = 0.5, .statistics = {.steps = 3}}));
}

TEST_F(RlCheckpointTest, ACoefficientThatIsFixedIsTheConfigurations) {
  options_.kl_control.adaptive = false;
  parts();
  ASSERT_TRUE(restore(saved()).ok());
  EXPECT_EQ(rewards().kl_coefficient, 0.5);
}

TEST_F(RlCheckpointTest, AStateThatIsNotWholeIsRefused) {
  const std::string why = "not a state that this version wrote";
  for (const char* key : {"format", "step", "epoch", "data_position"}) {
    ordered_json part = saved();
    part.erase(key);
    refuse(part, why);
  }
  for (const auto& [key, value] : std::vector<std::pair<std::string, ordered_json>>{
           {"format", 2}, {"step", -1}, {"step", 7.5}, {"epoch", "1"}}) {
    ordered_json odd = saved();
    odd[key] = value;
    refuse(odd, why);
  }
  refuse(ordered_json::object(), why);
}

TEST_F(RlCheckpointTest, AnotherCommandsStateIsRefused) {
  ordered_json others = saved();
  others["stage"] = "dpo";
  const auto refused = restore(others);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find(
                "trainer.json: of a run of `starling dpo`, not of `starling train`"),
            std::string::npos)
      << refused.status().message();
  EXPECT_TRUE(models_.log.empty());
}

TEST_F(RlCheckpointTest, NothingIsLoadedWithOtherData) {
  ordered_json others = saved();
  others["data_position"] = position_after(1, config({"data.toy.rows=11"}));
  const auto refused = restore(others);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message().find("resuming from " + folder_.string() + ": "), 0u)
      << refused.status().message();
  EXPECT_TRUE(models_.log.empty() && source_.restored.empty());
}

TEST_F(RlCheckpointTest, WhatDoesNotLoadIsToldWithTheFolder) {
  const Status damaged = runtime::invalid_argument("weights: damaged");
  const Status told =
      runtime::invalid_argument("resuming from " + folder_.string() + ": weights: damaged");
  assigned_ = "mine";
  models_.fails = {{"critic from critic", damaged}};
  EXPECT_NE(restore(saved()).status().message().find("the checkpoint has no critic"),
            std::string::npos);
  fs::create_directories(folder_ / "critic");
  EXPECT_EQ(restore(saved()).status(), told);
  EXPECT_TRUE(source_.restored.empty());
  models_.log.clear();
  models_.fails = {{"policy from actor", damaged}};
  EXPECT_EQ(restore(saved()).status(), told);
  EXPECT_EQ(models_.log, Log{"policy from actor"}) << "what follows is not tried";
  models_.fails.clear();
  source_.failure = damaged;
  EXPECT_EQ(restore(saved()).status(), told);
  EXPECT_EQ(rewards(), (RewardState{.kl_coefficient = 0.5})) << "as before";
  EXPECT_EQ(assigned_, ordered_json("mine")) << "as before";
  EXPECT_EQ(state()["rewards"]["steps"], 0);
}

TEST_F(RlCheckpointTest, EachPartHasItsPlaceInACheckpoint) {
  const auto files = write(checkpoint_->copy(/*async=*/true, saved()));
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_EQ(models_.log, (Log{"policy async", "critic async", "policy begun", "critic begun",
                              "critic written", "policy written"}))
      << "both models write at the same time";
  EXPECT_EQ(*files, (std::vector<fs::path>{kRunStateFile, "critic/weights", "actor/weights",
                                           kSavedConfigFile, "samples.bin"}));
  EXPECT_EQ(read("actor/weights"), "policy");
  EXPECT_EQ(read("critic/weights"), "critic");
  EXPECT_EQ(read("samples.bin"), "samples");
  EXPECT_EQ(read(kSavedConfigFile), config_.to_yaml());
  EXPECT_EQ(ordered_json::parse(read(kRunStateFile)), saved());
  EXPECT_TRUE(writer_->commit(*files).ok());
}

TEST_F(RlCheckpointTest, ACheckpointIsOfTheTimeOfItsCopy) {
  const auto copied = checkpoint_->copy(/*async=*/false, saved());
  source_.value = std::string("of the next step");
  ASSERT_TRUE(write(copied).ok());
  EXPECT_EQ(models_.log[0], "policy before");
  EXPECT_EQ(read("samples.bin"), "samples");
}

TEST_F(RlCheckpointTest, WithoutACriticThereIsNoFolderOfIt) {
  models_.critic = false;
  const auto files = write(checkpoint_->copy(/*async=*/true, saved()));
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(models_.log, (Log{"policy async", "policy begun", "policy written"}));
  EXPECT_EQ(*files, (std::vector<fs::path>{kRunStateFile, "actor/weights", kSavedConfigFile,
                                           "samples.bin"}));
}

TEST_F(RlCheckpointTest, AModelThatCannotBeCopiedEndsTheCopy) {
  const Status died = runtime::actor_died("policy 0 died");
  models_.fails = {{"policy async", died}};
  EXPECT_EQ(checkpoint_->copy(true, saved()).status(), died);
  EXPECT_EQ(models_.log, Log{"policy async"});
  models_.fails = {{"critic async", died}};
  EXPECT_EQ(checkpoint_->copy(true, saved()).status(), died);
}

// The folder goes once a part of it has failed.
TEST_F(RlCheckpointTest, ACriticThatCannotWriteWaitsForThePolicy) {
  models_.fails = {{"critic written", runtime::resource_exhausted("no space left")}};
  EXPECT_EQ(write(checkpoint_->copy(true, saved())).status().message(), "no space left");
  EXPECT_EQ(models_.log.back(), "policy written");
}

TEST_F(RlCheckpointTest, APolicyThatCannotWriteEndsTheCheckpoint) {
  models_.fails = {{"policy written", runtime::resource_exhausted("no space left")}};
  EXPECT_EQ(write(checkpoint_->copy(true, saved())).status().message(), "no space left");
  EXPECT_FALSE(fs::exists(writer_->folder() / kRunStateFile));
}

TEST_F(RlCheckpointTest, AFileThatCannotBeMadeIsNamed) {
  source_.value = runtime::unavailable("a node is gone");
  EXPECT_EQ(write(checkpoint_->copy(true, saved())).status(),
            runtime::unavailable("samples.bin: a node is gone"));
}

class CheckRlCheckpointTest : public RlCheckpointTest {
 protected:
  Status check(const ordered_json& state) {
    std::ofstream(folder_ / kRunStateFile) << state.dump();
    return check_rl_checkpoint(folder_, config_, identity_);
  }
};

TEST_F(CheckRlCheckpointTest, ARunGoesOnWithItsOwn) {
  EXPECT_TRUE(check(saved()).ok()) << check(saved()).message();
}

TEST_F(CheckRlCheckpointTest, WhatIsNoCheckpointIsNamed) {
  const std::string file = (folder_ / kRunStateFile).string();
  EXPECT_EQ(check_rl_checkpoint(folder_, config_, identity_),
            runtime::invalid_argument(file + ": No such file or directory"));
  EXPECT_EQ(check(ordered_json::array()), runtime::invalid_argument(file + ": not a JSON object"));
}

TEST_F(CheckRlCheckpointTest, AnotherCommandOrModelIsRefused) {
  ordered_json others = saved();
  others["stage"] = "sft";
  EXPECT_NE(check(others).message().find("of a run of `starling sft`"), std::string::npos)
      << check(others).message();
  others = saved();
  others[ModelIdentity::kStateKey]["fingerprint"] = "f2";
  EXPECT_NE(check(others).message().find(
                "toy as it was then, and actor_rollout_ref.model.path=toy has other weights now"),
            std::string::npos)
      << check(others).message();
  others = saved();
  others[ModelIdentity::kStateKey]["adapter"] = true;
  EXPECT_NE(check(others).message().find("trained a LoRA adapter of toy"), std::string::npos)
      << check(others).message();
}

}  // namespace
}  // namespace rl
