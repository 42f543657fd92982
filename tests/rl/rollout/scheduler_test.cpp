#include "rl/rollout/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace rl {
namespace {

// A cache of `blocks` blocks of 16 tokens, and sequences to schedule.
class SchedulerTest : public ::testing::Test {
 protected:
  void make(std::int64_t blocks, const SchedulerOptions& options = {}) {
    auto cache = KvCache::create({.layers = 1, .width = 1},
                                 {.bytes_max = blocks * 16 * 2 * 4, .block_tokens = 16});
    ASSERT_TRUE(cache.ok()) << cache.status().to_string();
    cache_ = std::move(*cache);
    ASSERT_EQ(cache_->blocks(), blocks);
    scheduler_ = std::make_unique<Scheduler>(*cache_, options);
  }

  Sequence* sequence(std::int64_t tokens) {
    sequences_.push_back(std::make_unique<Sequence>());
    sequences_.back()->order = sequences_.size();
    sequences_.back()->tokens.assign(static_cast<std::size_t>(tokens), 1);
    scheduler_->add(sequences_.back().get());
    return sequences_.back().get();
  }

  // As the engine does: computes the step and appends a token where the last one was reached.
  std::vector<ScheduledTokens> step() {
    std::vector<ScheduledTokens> parts = scheduler_->schedule();
    for (const ScheduledTokens& part : parts) {
      EXPECT_GE(static_cast<std::int64_t>(part.sequence->blocks.size()) * 16,
                part.sequence->computed + part.count);
      part.sequence->computed += part.count;
      if (part.sequence->pending() == 0) part.sequence->tokens.push_back(1);
    }
    return parts;
  }

  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

TEST_F(SchedulerTest, ReadsPromptsInPiecesBehindDecodingSequences) {
  make(100, {.sequences_max = 8, .step_tokens_max = 10});
  Sequence* first = sequence(8);
  Sequence* second = sequence(30);
  auto parts = step();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].count, 8);
  EXPECT_EQ(parts[1].count, 2);
  parts = step();
  EXPECT_EQ(parts[0].sequence, first);
  EXPECT_EQ(parts[0].count, 1);
  EXPECT_EQ(parts[1].sequence, second);
  EXPECT_EQ(parts[1].count, 9);
}

TEST_F(SchedulerTest, AdmitsNoMoreThanSequencesMax) {
  make(100, {.sequences_max = 2, .step_tokens_max = 100});
  for (int i = 0; i < 3; ++i) sequence(3);
  EXPECT_EQ(step().size(), 2U);
  scheduler_->remove(sequences_[0].get());
  EXPECT_EQ(step().size(), 2U);
}

TEST_F(SchedulerTest, TakesBlocksFromTheYoungest) {
  make(4);
  Sequence* oldest = sequence(16);
  Sequence* youngest = sequence(40);
  EXPECT_EQ(step().size(), 2U);  // one block and three
  const auto parts = step();     // the oldest needs a second one
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].sequence, oldest);
  EXPECT_TRUE(youngest->blocks.empty());
  EXPECT_EQ(youngest->pending(), 41);
  EXPECT_EQ(scheduler_->preemptions(), 1);
  scheduler_->remove(oldest);
  EXPECT_EQ(step().front().count, 41);
}

TEST_F(SchedulerTest, CopiesASharedBlockBeforeItIsWritten) {
  make(10);
  Sequence* original = sequence(20);
  step();
  const std::vector<std::int32_t> prompt_blocks = original->blocks;
  Sequence* copy = sequence(21);
  copy->blocks = prompt_blocks;
  copy->computed = 20;
  for (std::int32_t block : prompt_blocks) cache_->retain(block);
  step();
  EXPECT_EQ(original->blocks[0], copy->blocks[0]);
  EXPECT_NE(original->blocks[1], copy->blocks[1]);
  scheduler_->remove(original);
  scheduler_->remove(copy);
  EXPECT_EQ(cache_->free_blocks(), 10);
}

// Whatever comes and goes, the oldest sequence advances and no block is lost.
TEST_F(SchedulerTest, SurvivesRandomArrivalsAndDepartures) {
  make(12, {.sequences_max = 5, .step_tokens_max = 33});
  std::mt19937 generator(3);
  for (int round = 0; round < 5000; ++round) {
    if (generator() % 4 == 0) sequence(1 + generator() % 100);
    const auto parts = step();
    std::int64_t tokens = 0;
    for (const ScheduledTokens& part : parts) tokens += part.count;
    ASSERT_LE(tokens, 33);
    for (const ScheduledTokens& part : parts) {
      if (part.sequence->length() >= 180 || generator() % 20 == 0)
        scheduler_->remove(part.sequence);
    }
  }
  for (const auto& sequence : sequences_) scheduler_->remove(sequence.get());
  EXPECT_TRUE(scheduler_->idle());
  EXPECT_EQ(cache_->free_blocks(), 12);
  EXPECT_GT(scheduler_->preemptions(), 0);
}

}  // namespace
}  // namespace rl
