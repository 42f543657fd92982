#include "rl/rollout/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace rl {
namespace {

// Blocks of 16 tokens, and sequences that were computed.
class PrefixCacheTest : public ::testing::Test {
 protected:
  PrefixCacheTest() {
    cache_ = std::move(*KvCache::create({.layers = 1, .width = 1},
                                        {.bytes_max = 8 * 16 * 2 * 4, .block_tokens = 16}));
    prefixes_ = std::make_unique<PrefixCache>(*cache_);
  }

  static std::vector<std::int32_t> ids(std::int32_t first, std::size_t count) {
    std::vector<std::int32_t> ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }

  // Computes and publishes a sequence, then lets go of its blocks; false when there are none left.
  bool compute(const std::vector<std::int32_t>& tokens, std::int64_t stretch = 0) {
    PrefixCache::Match match = prefixes_->match(stretch, std::span(tokens).first(0));
    while (match.blocks.size() * 16 < tokens.size()) {
      if (cache_->free_blocks() == 0) prefixes_->evict(1);
      match.blocks.push_back(cache_->allocate().value());
    }
    prefixes_->publish(stretch, tokens, static_cast<std::int64_t>(tokens.size()), match.blocks,
                       match.place);
    release(match.blocks);
    return true;
  }

  std::int64_t cached(const std::vector<std::int32_t>& tokens, std::int64_t stretch = 0) {
    const PrefixCache::Match match = prefixes_->match(stretch, tokens);
    release(match.blocks);
    return match.tokens;
  }

  void release(const std::vector<std::int32_t>& blocks) {
    for (const std::int32_t block : blocks) cache_->release(block);
  }

  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<PrefixCache> prefixes_;
};

TEST_F(PrefixCacheTest, FindsTheLongestBeginning) {
  compute(ids(0, 40));  // two full blocks
  EXPECT_EQ(prefixes_->blocks(), 2);
  EXPECT_EQ(prefixes_->idle(), 2);
  EXPECT_EQ(cached(ids(0, 40)), 32);
  EXPECT_EQ(cached(ids(0, 20)), 20);  // part of the second block
  EXPECT_EQ(cached(ids(1, 20)), 0);
  EXPECT_EQ(cached(ids(0, 40), /*stretch=*/1), 0);
  std::vector<std::int32_t> differs = ids(0, 40);
  differs[21] = 99;
  EXPECT_EQ(cached(differs), 21);
  compute(differs);
  EXPECT_EQ(prefixes_->blocks(), 3);
  EXPECT_EQ(cached(differs), 32);
}

TEST_F(PrefixCacheTest, GivesASecondComputationTheFirstOnesBlock) {
  compute(ids(0, 16));
  std::vector<std::int32_t> blocks = {*cache_->allocate()};
  const std::int32_t own = blocks[0];
  PrefixCache::Place place = prefixes_->match(0, {}).place;
  prefixes_->publish(0, ids(0, 16), 16, blocks, place);
  EXPECT_NE(blocks[0], own);
  EXPECT_EQ(cache_->free_blocks(), 7);
  EXPECT_EQ(prefixes_->idle(), 0);
  release(blocks);
  EXPECT_EQ(prefixes_->idle(), 1);
}

TEST_F(PrefixCacheTest, GivesUpTheLeavesUnusedForLongest) {
  compute(ids(0, 48));
  compute(ids(100, 32));
  cached(ids(0, 48));  // used again
  prefixes_->evict(1);
  EXPECT_EQ(cached(ids(100, 32)), 16);  // its second block went
  EXPECT_EQ(cached(ids(0, 48)), 48);
  prefixes_->evict(3);
  EXPECT_EQ(cached(ids(100, 32)), 0);
  EXPECT_EQ(cached(ids(0, 48)), 16);
  EXPECT_EQ(prefixes_->evicted(), 4);
  prefixes_->evict(100);
  EXPECT_EQ(cache_->free_blocks(), cache_->blocks());
}

TEST_F(PrefixCacheTest, KeepsWhatASequenceStandsOn) {
  compute(ids(0, 32));
  const PrefixCache::Match match = prefixes_->match(0, ids(0, 16));
  EXPECT_EQ(prefixes_->idle(), 1);
  prefixes_->evict(100);
  EXPECT_EQ(prefixes_->blocks(), 1);
  EXPECT_EQ(cached(ids(0, 32)), 16);
  release(match.blocks);
}

TEST_F(PrefixCacheTest, TakesNothingFromBeforeItWasCleared) {
  std::vector<std::int32_t> blocks = {*cache_->allocate(), *cache_->allocate()};
  PrefixCache::Place place = prefixes_->match(0, {}).place;
  prefixes_->publish(0, ids(0, 32), 16, blocks, place);
  EXPECT_EQ(prefixes_->blocks(), 1);
  prefixes_->clear();
  prefixes_->publish(0, ids(0, 32), 32, blocks, place);
  EXPECT_EQ(prefixes_->blocks(), 0);
  EXPECT_EQ(cached(ids(0, 32)), 0);
  release(blocks);
  EXPECT_EQ(cache_->free_blocks(), cache_->blocks());
}

TEST_F(PrefixCacheTest, LosesNoBlockWhateverComes) {
  std::mt19937 generator(1);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<std::int32_t> tokens =
        ids(static_cast<std::int32_t>(generator() % 3) * 1000, 16 * (1 + generator() % 6));
    if (generator() % 50 == 0) prefixes_->clear();
    compute(tokens);
    ASSERT_EQ(cache_->free_blocks() + prefixes_->blocks(), cache_->blocks());
    ASSERT_EQ(prefixes_->idle(), prefixes_->blocks());
    ASSERT_EQ(cached(tokens), static_cast<std::int64_t>(tokens.size()));
  }
  EXPECT_GT(prefixes_->evicted(), 0);
}

}  // namespace
}  // namespace rl
