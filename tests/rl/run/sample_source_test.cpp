// Sample sources over fake groups: scored, filtered, replayed, placed.
#include "rl/run/rl/sample_source.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "rl/run/rl/filtered_source.h"
#include "rl/run/rl/generated_now.h"
#include "rl/run/rl/placed_source.h"
#include "rl/run/rl/replayed_source.h"
#include "rl/run/rl/scored_source.h"
#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();
using Rows = std::vector<std::vector<std::int64_t>>;

class SampleSourceTest : public ::testing::Test {
 protected:
  // Of four prompts with two samples each, on two workers.
  std::unique_ptr<SampleSource> scored(Balancer* balancer = nullptr,
                                       References* references = nullptr,
                                       bool keeps_unscored = false) {
    return std::make_unique<ScoredSource>(
        ScoredSourceOptions{
            .samples_per_prompt = 2, .group_size_min = 2, .keeps_unscored = keeps_unscored},
        std::make_unique<GeneratedNow>(prompts_, generate_), reward_, batches_, reader_, balancer,
        references);
  }
  runtime::Result<StepBatch> next(SampleSource& source, std::int64_t step = 1) {
    StepTimer timer;
    return source.next({.step = step}, timer);
  }

  FakeBatches batches_;
  FakePrompts prompts_{4, 2};
  FakeGenerate generate_{batches_, 2, 2};
  FakeScore reward_{batches_};
  FakeReference reference_{batches_};
  ScoreReader reader_;
};

TEST_F(SampleSourceTest, ScoresWhatWasDrawn) {
  const auto batch = next(*scored());
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->all<double>(&Sample::score), (std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(prompts_.asked.size(), 1u);
}

// A sample alone has nothing to be compared with, and goes along with the one that has no score.
TEST_F(SampleSourceTest, LeavesOutSamplesWithoutAScoreAndWhatIsLeftOfTheirGroup) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt == 1 && sample == 0 ? kNoScore : static_cast<double>(sample);
  };
  Balancer balancer(batches_, /*moves=*/false);
  References references(&reference_, {});
  const auto batch = next(*scored(&balancer, &references));
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->group_sizes(), (Rows{{2, 0}, {2, 2}}));
  EXPECT_EQ(batches_.prompts_of(batch->shares[0].batch), (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(batch->shares[0].reference.kl_penalties, (std::vector<double>{1, 2}));
  const std::vector<MicroBatch> by_threes{{0, 3}, {3, 4}};  // all, before any is left out
  EXPECT_EQ(reference_.passes, (ScoringPasses{by_threes, by_threes}));
}

TEST_F(SampleSourceTest, AStepWithoutAnyScoreIsAnError) {
  reward_.of = [](std::int64_t, std::int64_t) { return kNoScore; };
  EXPECT_EQ(next(*scored()).status().code(), runtime::ErrorCode::kTaskFailed);
}

TEST_F(SampleSourceTest, GroupsAreInformativeWhoseSamplesDifferInTheOrderOfPrompts) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt == 1 ? 1.0 : static_cast<double>(sample);
  };
  const auto batch = next(*scored());
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(informative_groups(*batch, "reward", 4), (Rows{{0}, {0, 1}}));
  EXPECT_EQ(informative_groups(*batch, "reward", 2), (Rows{{0}, {0}}));
}

TEST_F(SampleSourceTest, AGroupInWhichASampleHasNoScoreIsNotInformative) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt == 0 && sample == 0 ? kNoScore : static_cast<double>(sample);
  };
  const auto batch = next(*scored(nullptr, nullptr, /*keeps_unscored=*/true));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(informative_groups(*batch, "reward", 4), (Rows{{1}, {0, 1}}));
}

TEST_F(SampleSourceTest, FiltersRoundAfterRoundUntilThereAreEnough) {
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt < 2 ? 1.0 : static_cast<double>(sample);
  };
  FilteredSource source({.batch_prompts = 4, .mini_batch_prompts = 2}, scored(), batches_);
  const auto batch = next(source);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(prompts_.asked, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 0}, {1, 1}}));
  EXPECT_EQ(batch->prompts(), 4);
  EXPECT_EQ(batches_.prompts_of(batch->shares[1].batch),
            (std::vector<std::int32_t>{2, 2, 3, 3, 2, 2, 3, 3}));
  EXPECT_EQ(batch->metrics.at("train/num_gen_batches"), 2.0);
  EXPECT_EQ(batch->metrics.at("train/prompts_kept_ratio"), 0.5);
  EXPECT_EQ(batch->reports.size(), 4u);
}

TEST_F(SampleSourceTest, FiltersAtMostNRounds) {
  reward_.of = [](std::int64_t, std::int64_t) { return 1.0; };
  FilteredSource source({.batch_prompts = 4, .mini_batch_prompts = 4, .rounds_max = 3}, scored(),
                        batches_);
  EXPECT_EQ(next(source).status().code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(prompts_.asked.size(), 3u);
}

ReplayedSourceOptions replay_half() {
  return {.store = {.enabled = true, .replay_ratio = 0.5}, .mini_batch_prompts = 4, .seed = 7};
}

TEST_F(SampleSourceTest, ReplaysGroupsOfEarlierSteps) {
  ReplayedSource source(replay_half(), scored(), batches_);
  ASSERT_EQ(next(source, 1)->prompts(), 4);
  const auto batch = next(source, 2);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->prompts(), 6);
  EXPECT_EQ(batch->metrics.at("sample_store/replayed"), 2.0);
  EXPECT_EQ(batch->metrics.at("sample_store/replayed_age_mean"), 1.0);
  // One a worker, numbered in turns, in their own mini-batch.
  EXPECT_EQ(batch->shares[0].groups[2].prompt, 4);
  EXPECT_EQ(batch->shares[1].groups[2].prompt, 5);
  EXPECT_EQ(batch->shares[0].mini_batch_offsets, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(batch->shares[0].groups[2].row, -1);
  EXPECT_EQ(batch->shares[0].groups[2].samples[1].score, 1.0);
}

TEST_F(SampleSourceTest, GoesOnWithoutStoredSamplesThatAreLost) {
  ReplayedSource source(replay_half(), scored(), batches_);
  const auto first = next(source, 1);
  for (const WorkerShare& share : first->shares) batches_.lost.insert(share.batch.state().get());
  const auto batch = next(source, 2);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->prompts(), 4);
}

TEST_F(SampleSourceTest, ReplaysTheSameFromACheckpoint) {
  ReplayedSource source(replay_half(), scored(), batches_);
  ASSERT_TRUE(next(source, 1).ok());
  const auto files = source.state_files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_STREQ(files[0].name, "samples.bin");
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "replayed_source_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / files[0].name, std::ios::binary) << *files[0].make();
  ReplayedSource restored(replay_half(), scored(), batches_);
  ASSERT_TRUE(restored.restore(folder, {.step = 1}).ok());
  EXPECT_EQ(next(source, 2)->all<std::int64_t>(&Sample::response_tokens),
            next(restored, 2)->all<std::int64_t>(&Sample::response_tokens));
  std::filesystem::remove_all(folder);
}

// The first worker's samples are short, the second one's long.
TEST_F(SampleSourceTest, PlacesSamplesSoThatWorkersHaveAboutAsManyTokens) {
  Balancer balancer(batches_, /*moves=*/true);
  References references(&reference_, {});
  PlacedSource source(scored(), balancer, references);
  const auto batch = next(source);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->generated_tokens, (std::vector<std::int64_t>{12, 20}));
  const std::vector<std::int64_t> tokens = batch->tokens();
  EXPECT_EQ(tokens[0] + tokens[1], 32);
  EXPECT_LT(std::abs(tokens[0] - tokens[1]), 8);
  for (const WorkerShare& share : batch->shares) {
    std::vector<std::int32_t> prompts;
    for (const SampleGroup& group : share.groups)
      prompts.insert(prompts.end(), group.samples.size(), static_cast<std::int32_t>(group.prompt));
    EXPECT_EQ(batches_.prompts_of(share.batch), prompts);
    EXPECT_EQ(share.reference.kl_penalties.size(), share.size());
  }
}

TEST_F(SampleSourceTest, TeachersAreAskedAboutTheirOwnRows) {
  FakeReference other(batches_);
  References references(nullptr, {{{.name = "a", .model_key = "", .rows = "x"}, &reference_},
                                  {{.name = "b", .model_key = "", .rows = "y"}, &other}});
  StepBatch batch = fake_batch(batches_, 2, 1, 1);
  batch.shares[0].groups[0].task.teacher = "x";
  batch.shares[0].groups[1].task.teacher = "y";
  StepTimer timer;
  reference_.workers = other.workers = 1;
  ASSERT_TRUE(references.ask(batch, timer).ok());
  EXPECT_EQ(batch.shares[0].taught.kl_penalties, (std::vector<double>{1, 2}));
  EXPECT_EQ(other.passes, (ScoringPasses{{{0, 1}}})) << "over its own row alone";
  batch.shares[0].groups[1].task.teacher = "z";
  EXPECT_EQ(references.ask(batch, timer).code(), runtime::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
