#include "rl/run/rl/balancer.h"

#include <gtest/gtest.h>

#include "tests/rl/run/fakes.h"

namespace rl {
namespace {

using Tokens = std::vector<std::int64_t>;

class CountedBatches : public FakeBatches {
 public:
  runtime::Result<std::vector<Generated>> collect(const BatchRefs& batches,
                                                  const PromptPlaces& places) override {
    ++collected;
    if (fails) return runtime::unavailable("a worker is gone");
    return FakeBatches::collect(batches, places);
  }

  int collected = 0;
  bool fails = false;
};

// Four prompts, those of the first worker with the shorter responses.
TEST(Balancer, CountsTokensAndMovesNothingUnlessItMay) {
  CountedBatches batches;
  StepBatch batch = fake_batch(batches, 4, 2, 2);
  ASSERT_TRUE(Balancer(batches, /*moves=*/false).balance(batch).ok());
  EXPECT_EQ(batch.generated_tokens, batch.tokens());
  EXPECT_EQ(batches.collected, 0);
}

TEST(Balancer, AWorkerAloneHasNothingToMove) {
  CountedBatches batches;
  StepBatch batch = fake_batch(batches, 4, 1, 2);
  ASSERT_TRUE(Balancer(batches, /*moves=*/true).balance(batch).ok());
  EXPECT_EQ(batch.generated_tokens.size(), 1u);
  EXPECT_EQ(batches.collected, 0);
}

TEST(Balancer, GroupsKnowWhoDrewThemWhenTheyHaveMoved) {
  CountedBatches batches;
  StepBatch batch = fake_batch(batches, 4, 2, 2);
  const Tokens before = batch.tokens();
  ASSERT_TRUE(Balancer(batches, /*moves=*/true).balance(batch).ok());
  EXPECT_EQ(batches.collected, 1);
  EXPECT_EQ(batch.generated_tokens, before);
  EXPECT_NE(batch.tokens(), before);
  for (const WorkerShare& share : batch.shares) {
    for (const SampleGroup& group : share.groups)
      EXPECT_EQ(group.origin.worker, group.prompt / 2)
          << "the second worker generated the last two";
  }
}

TEST(Balancer, WorkersThatCannotMoveThemLeaveTheBatchAsItWas) {
  CountedBatches batches;
  batches.fails = true;
  StepBatch batch = fake_batch(batches, 4, 2, 2);
  const Tokens before = batch.tokens();
  EXPECT_EQ(Balancer(batches, /*moves=*/true).balance(batch).code(),
            runtime::ErrorCode::kUnavailable);
  EXPECT_EQ(batch.tokens(), before);
}

}  // namespace
}  // namespace rl
