#include "rl/run/rl/warm_start.h"

#include <gtest/gtest.h>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

TEST(WarmStart, TakesItsStepsAndLeavesAReference) {
  FakeWarmStart policy;
  RunJournal journal;
  std::vector<StepRecord> records;
  journal.on_step([&](const StepRecord& record) { records.push_back(record); });
  const auto batches = [] {
    DemonstrationBatch batch;
    batch.responses.append(std::vector<std::int32_t>{1, 2, 3});
    return DemonstrationStep{.batches = {batch, batch}};
  };
  WarmStartOptions options;
  options.steps = 2;
  for (const bool saves : {false, true})
    ASSERT_TRUE(WarmStart(options, batches, policy, saves).run(journal).ok());
  EXPECT_EQ(policy.tokens_seen, 4 * 6);
  EXPECT_EQ(policy.resets, 2);
  EXPECT_EQ(policy.saves, 1);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[1].phase, "sft");
  EXPECT_EQ(records[1].step, 2);
  EXPECT_TRUE(records[1].metrics.contains("sft/lr"));
}

}  // namespace
}  // namespace rl
