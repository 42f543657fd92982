#include "rl/run/rl/drawn_ahead.h"

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
    std::vector<runtime::ObjectRef<Generated>> begun;
    for (const PromptBatch& batch : prompts)
      begun.push_back(generated_.put(batches_.made(fake_samples(batch, 2))));
    return begun;
  }
  runtime::Result<std::vector<Generated>> finish(
      const std::vector<runtime::ObjectRef<Generated>>& begun) const override {
    std::vector<Generated> all;
    for (const auto& ref : begun) all.push_back(generated_.get(ref));
    return all;
  }

  std::vector<std::string> published;

 private:
  FakeBatches& batches_;
  FakeObjects<Generated> generated_;
};

class DrawnAheadTest : public ::testing::Test {
 protected:
  DrawnAhead drawer() {
    return {{.steps_ahead = 1,
             .total_steps = 3,
             .batch_prompts = 4,
             .samples_per_prompt = 2,
             .weights_name = "weights"},
            prompts_,
            calls_,
            batches_};
  }
  static runtime::Result<Drawn> draw(DrawnAhead& drawer, std::int64_t step) {
    StepTimer timer;
    return drawer.draw({.step = step}, timer);
  }
  static std::int64_t tokens(const Drawn& drawn) {
    std::int64_t sum = 0;
    for (const Generated& part : drawn.generated) {
      for (const std::int64_t count : part.summary.response_tokens) sum += count;
    }
    return sum;
  }

  FakeBatches batches_;
  FakePrompts prompts_{4, 2};
  FakeAhead calls_{batches_};
};

TEST_F(DrawnAheadTest, BeginsTheNextStepWithTheWeightsBeforeThisOne) {
  DrawnAhead drawer = this->drawer();
  const auto first = draw(drawer, 1);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(prompts_.asked, (std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 0}, {2, 0}}));
  EXPECT_EQ(calls_.published.size(), 1u);  // the weights are those of the first step still
  EXPECT_EQ(drawer.position(), 1);         // before what is not trained on
  const auto second = draw(drawer, 2);
  EXPECT_EQ(second->metrics.at("training/off_policy/trajectory_staleness/mean"), 1.0);
  EXPECT_EQ(calls_.published.size(), 2u);
  ASSERT_TRUE(draw(drawer, 3).ok());
  EXPECT_EQ(prompts_.asked.size(), 3u);  // no step follows the last one
  EXPECT_FALSE(drawer.can_repeat_step());
}

TEST_F(DrawnAheadTest, GoesOnWithTheSamplesOfACheckpoint) {
  DrawnAhead drawer = this->drawer();
  ASSERT_TRUE(draw(drawer, 1).ok());
  const auto files = drawer.state_files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_STREQ(files[0].name, "ahead.bin");
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "drawn_ahead_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / files[0].name, std::ios::binary) << *files[0].make();
  DrawnAhead restored = this->drawer();
  ASSERT_TRUE(restored.restore(folder, {.step = 1}).ok());
  const std::size_t published = calls_.published.size();
  const auto there = draw(restored, 2);
  ASSERT_TRUE(there.ok()) << there.status().message();
  EXPECT_EQ(tokens(*there), tokens(*draw(drawer, 2)));
  EXPECT_EQ(there->metrics.at("training/off_policy/trajectory_staleness/mean"), 1.0);
  EXPECT_GT(calls_.published.size(), published);
  std::filesystem::remove_all(folder);
}

TEST_F(DrawnAheadTest, ACheckpointWithoutTheFileIsNoError) {
  DrawnAhead drawer = this->drawer();
  EXPECT_TRUE(drawer.restore("/nowhere", {.step = 1}).ok());
  EXPECT_TRUE(drawer.state_files().empty());
}

}  // namespace
}  // namespace rl
