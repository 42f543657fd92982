#include "rl/run/rl/generated_ahead.h"

#include <filesystem>
#include <fstream>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

class FakeAhead : public AheadCalls {
 public:
  explicit FakeAhead(FakeBatches& batches) : batches_(batches) {}

  std::size_t workers() const override { return 2; }
  runtime::Status publish(const std::string& name, std::uint64_t version) override {
    published.push_back(name);
    return {};
  }
  std::vector<runtime::ObjectRef<Generated>> begin(const std::vector<PromptBatch>& prompts,
                                                   const std::string& name,
                                                   std::uint64_t version) override {
    std::vector<runtime::ObjectRef<Generated>> started;
    for (const PromptBatch& batch : prompts)
      started.push_back(generated_.put(batches_.made(fake_samples(batch, 2))));
    return started;
  }
  runtime::Result<std::vector<Generated>> finish(
      const std::vector<runtime::ObjectRef<Generated>>& started) const override {
    std::vector<Generated> all;
    for (const auto& ref : started) all.push_back(generated_.get(ref));
    return all;
  }

  std::vector<std::string> published;

 private:
  FakeBatches& batches_;
  FakeObjects<Generated> generated_;
};

class GeneratedAheadTest : public ::testing::Test {
 protected:
  GeneratedAhead generator() {
    return {{.steps_ahead = 1,
             .total_steps = 3,
             .batch_prompts = 4,
             .samples_per_prompt = 2,
             .weights_name = "weights"},
            prompts_,
            calls_,
            batches_};
  }
  static runtime::Result<GeneratedSamples> generate(GeneratedAhead& generator, std::int64_t step) {
    StepTimer timer;
    return generator.generate({.step = step}, timer);
  }
  static std::int64_t tokens(const GeneratedSamples& samples) {
    std::int64_t sum = 0;
    for (const Generated& part : samples.generated) {
      for (const std::int64_t count : part.summary.response_tokens) sum += count;
    }
    return sum;
  }

  FakeBatches batches_;
  FakePrompts prompts_{4, 2};
  FakeAhead calls_{batches_};
};

TEST_F(GeneratedAheadTest, BeginsTheNextStepWithTheWeightsBeforeThisOne) {
  GeneratedAhead generator = this->generator();
  const auto first = generate(generator, 1);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(prompts_.asked, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 0}, {2, 0}}));
  EXPECT_EQ(calls_.published.size(), 1u);  // the weights are those of the first step still
  EXPECT_EQ(generator.position(), 1);      // before what is not trained on
  const auto second = generate(generator, 2);
  EXPECT_EQ(second->metrics.at("training/off_policy/trajectory_staleness/mean"), 1.0);
  EXPECT_EQ(calls_.published.size(), 2u);
  ASSERT_TRUE(generate(generator, 3).ok());
  EXPECT_EQ(prompts_.asked.size(), 3u);  // no step follows the last one
  EXPECT_FALSE(generator.can_repeat_step());
}

TEST_F(GeneratedAheadTest, GoesOnWithTheSamplesOfACheckpoint) {
  GeneratedAhead generator = this->generator();
  ASSERT_TRUE(generate(generator, 1).ok());
  const auto files = generator.state_files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_STREQ(files[0].name, "ahead.bin");
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "generated_ahead_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / files[0].name, std::ios::binary) << *files[0].make();
  GeneratedAhead restored = this->generator();
  ASSERT_TRUE(restored.restore(folder, {.step = 1}).ok());
  const std::size_t published = calls_.published.size();
  const auto there = generate(restored, 2);
  ASSERT_TRUE(there.ok()) << there.status().message();
  EXPECT_EQ(tokens(*there), tokens(*generate(generator, 2)));
  EXPECT_EQ(there->metrics.at("training/off_policy/trajectory_staleness/mean"), 1.0);
  EXPECT_GT(calls_.published.size(), published);
  std::filesystem::remove_all(folder);
}

TEST_F(GeneratedAheadTest, ACheckpointWithoutTheFileIsNoError) {
  GeneratedAhead generator = this->generator();
  EXPECT_TRUE(generator.restore("/nowhere", {.step = 1}).ok());
  EXPECT_TRUE(generator.state_files().empty());
}

}  // namespace
}  // namespace rl
