// The stack of sample sources that a configuration asks for.
#include "rl/run/rl/source_factory.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

// Four prompts a step with two samples each, over two workers.
class SourceFactoryTest : public ::testing::Test {
 protected:
  SourceFactoryTest() {
    options_.batch_prompts = options_.mini_batch_prompts = 4;
    options_.samples_per_prompt = 2;
  }
  std::unique_ptr<SampleSource> make() {
    return make_source(options_,
                       {.total_steps = 9, .group_size_min = 2, .weights_name = "the weights"},
                       {prompts_, generate_, partial_, ahead_, batches_, reward_, reader_,
                        balancer_, references_});
  }
  static runtime::Result<StepBatch> next(SampleSource& source) {
    StepTimer timer;
    return source.next({.step = 1}, timer);
  }
  static std::string files(const SampleSource& source) {
    std::string names;
    for (const StateFile& file : source.state_files()) names += std::string(file.name) + " ";
    return names;
  }

  TrainerOptions options_;
  FakeBatches batches_;
  FakePrompts prompts_{4, 2};
  FakeGenerate generate_{batches_, 2, 2};
  RefusesPartly partial_;
  RefusesAhead ahead_;
  FakeScore reward_{batches_};
  ScoreReader reader_;
  Balancer balancer_{batches_, /*moves=*/false};
  FakeReference reference_{batches_};
  References references_{&reference_, {}};
};

TEST_F(SourceFactoryTest, DrawsScoresAndAsksTheReference) {
  const auto source = make();
  const auto batch = next(*source);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->all<double>(&Sample::score), (std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(batch->shares[0].reference.kl_penalties.size(), 4u);
  EXPECT_EQ(batch->generated_tokens.size(), 2u);
  EXPECT_EQ(files(*source), "");
}

TEST_F(SourceFactoryTest, AFilterAsksTheReferenceAboutWhatItKeeps) {
  options_.filter_groups.enabled = true;
  options_.filter_groups.metric = "reward";
  options_.batch_prompts = 2;
  reward_.of = [](std::int64_t prompt, std::int64_t sample) {
    return prompt < 2 ? 1.0 : static_cast<double>(sample);
  };
  const auto source = make();
  const auto batch = next(*source);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->size(), 4u);
  for (const WorkerShare& share : batch->shares)
    EXPECT_EQ(share.reference.kl_penalties.size(), share.size());
  EXPECT_EQ(batch->generated_tokens, batch->tokens()) << "counted behind the filter";
}

TEST_F(SourceFactoryTest, AStoreIsSavedWhereverSamplesComeFrom) {
  options_.sample_store.enabled = true;
  EXPECT_EQ(files(*make()), "samples.bin ");
}

TEST_F(SourceFactoryTest, WorkersThatOnlyGenerateAreAskedAheadByTheRunsName) {
  options_.rollout_workers = RolloutWorkersOptions{};
  EXPECT_NE(next(*make()).status().message().find("asked ahead for the weights"),
            std::string::npos);
}

TEST_F(SourceFactoryTest, PartialRolloutsAreAskedForInParts) {
  options_.partial_rollouts = PartialRolloutOptions{};
  EXPECT_NE(next(*make()).status().message().find("asked for parts"), std::string::npos);
}

}  // namespace
}  // namespace rl
