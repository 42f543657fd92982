#include "rl/run/rl/generated_partially.h"

#include <algorithm>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

// Finishes the newest prompts, unless older ones must be.
class FakePartial : public PartialCalls {
 public:
  explicit FakePartial(FakeBatches& batches) : batches_(batches) {}

  std::size_t workers() const override { return 1; }
  runtime::Result<std::vector<PartlyGenerated>> generate_partially(
      const std::vector<PartialRef>& partial, const std::vector<std::vector<PromptBatch>>& fresh,
      const std::vector<PartialPlan>& plans, std::uint64_t version) override {
    std::vector<PartialPrompt> all = partial_.get(partial[0]);
    for (const PromptBatch& batch : fresh[0]) {
      for (std::int64_t row = 0; row < batch.ids.rows(); ++row)
        all.push_back({.ids = {batch.ids.row(row)[0]}});
    }
    PartlyGenerated part;
    PromptBatch finished;
    const auto first = static_cast<std::int64_t>(all.size()) - plans[0].prompts;
    for (std::int64_t row = first; row < static_cast<std::int64_t>(all.size()); ++row) {
      part.finished.push_back(row);
      finished.ids.append(all[static_cast<std::size_t>(row)].ids);
      part.oldest.push_back(static_cast<std::int64_t>(version));
      part.newest.push_back(static_cast<std::int64_t>(version));
    }
    part.generated = batches_.made(fake_samples(finished, 1));
    all.resize(static_cast<std::size_t>(first));
    part.rest = partial_.put(all);
    return std::vector<PartlyGenerated>{part};
  }
  runtime::Result<PartialRef> put(const std::vector<PartialPrompt>& partial) override {
    return partial_.put(partial);
  }
  runtime::Result<std::vector<PartialPrompt>> get(const PartialRef& partial) const override {
    return partial_.get(partial);
  }

 private:
  FakeBatches& batches_;
  FakeObjects<std::vector<PartialPrompt>> partial_;
};

TEST(GeneratedPartially, TakesWhatIsFinishedAndKeepsTheTasksOfTheRest) {
  FakeBatches batches;
  FakePrompts prompts(2, 1);
  FakePartial calls(batches);
  GeneratedPartially generator({.partial = {.steps_ahead = 1},
                                .total_steps = 2,
                                .batch_prompts = 2,
                                .mini_batch_prompts = 2},
                               prompts, calls);
  StepTimer timer;
  const auto first = generator.generate({.step = 1}, timer);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(prompts.asked.size(), 2u);  // two batches are in progress
  ASSERT_EQ(first->prompts.tasks[0].size(), 2u);
  EXPECT_EQ(first->prompts.tasks[0][1].ground_truth, "1");
  EXPECT_EQ(first->metrics.at("training/off_policy/begun_anew"), 0.0);
  const auto files = generator.state_files();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_STREQ(files[0].name, "partial.bin");
  const auto saved = decode_rollouts(*files[0].make());
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->steps_begun, 2);
  EXPECT_EQ(saved->prompts[0].size(), 2u);
  const auto second = generator.generate({.step = 2}, timer);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(prompts.asked.size(), 2u);  // no step follows the last one
}

}  // namespace
}  // namespace rl
