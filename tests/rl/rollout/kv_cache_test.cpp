// KV cache blocks: reference counts, layout, copies.
#include "rl/rollout/kv_cache.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using support::expect_failure;

// Blocks of 16 tokens of two layers, whose keys have three numbers.
class KvCacheTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kTokens = 16, kBlockBytes = 2 * 2 * kTokens * 3 * 4;

  KvCacheTest() {
    // Three whole blocks, and a part of a fourth.
    auto made = create({.bytes_max = 4 * kBlockBytes - 1, .block_tokens = kTokens});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    cache_ = std::move(*made);
  }
  static runtime::Result<std::unique_ptr<KvCache>> create(const KvCacheOptions& options) {
    return KvCache::create({.layers = 2, .width = 3}, options);
  }

  // Fills a block with numbers that no other place has.
  void fill(std::int32_t block) {
    const std::int64_t rows = cache_->rows_per_block();
    cache_->rows()
        .narrow(0, block * rows, rows)
        .copy_((at::arange(rows * 3, at::kFloat) + 1000.0 * (block + 1)).view({rows, 3}));
  }
  at::Tensor numbers_of(std::int32_t block) {
    return cache_->rows().narrow(0, block * cache_->rows_per_block(), cache_->rows_per_block());
  }

  std::unique_ptr<KvCache> cache_;
};

TEST_F(KvCacheTest, HasTheWholeBlocksThatFit) {
  EXPECT_EQ(cache_->block_bytes(), kBlockBytes);
  EXPECT_EQ(cache_->blocks(), 3);
  EXPECT_EQ(cache_->free_blocks(), 3);
}

TEST_F(KvCacheTest, SizesThatCannotBeAreNamed) {
  for (const std::int64_t tokens : {0, -16, 17})
    expect_failure(create({.block_tokens = tokens}).status(), runtime::ErrorCode::kInvalidArgument,
                   {"block_tokens is " + std::to_string(tokens)});
  expect_failure(
      create({.bytes_max = kBlockBytes - 1, .block_tokens = kTokens}).status(),
      runtime::ErrorCode::kResourceExhausted,
      {std::to_string(kBlockBytes) + " bytes", "the limit is " + std::to_string(kBlockBytes - 1)});
}

TEST_F(KvCacheTest, LowBlocksAreUsedFirstAndEachOnce) {
  std::vector<std::int32_t> taken;
  while (const std::optional<std::int32_t> block = cache_->allocate()) taken.push_back(*block);
  EXPECT_EQ(taken, (std::vector<std::int32_t>{0, 1, 2}));
  cache_->release(1);
  EXPECT_EQ(cache_->allocate(), 1);
  EXPECT_EQ(cache_->allocate(), std::nullopt);
}

TEST_F(KvCacheTest, ABlockIsFreeWithItsLastReference) {
  const std::int32_t block = *cache_->allocate();
  EXPECT_FALSE(cache_->shared(block));
  cache_->retain(block);
  EXPECT_TRUE(cache_->shared(block));
  cache_->release(block);
  EXPECT_FALSE(cache_->shared(block));
  EXPECT_EQ(cache_->free_blocks(), 2);
  cache_->release(block);
  EXPECT_EQ(cache_->free_blocks(), 3);
}

TEST_F(KvCacheTest, ACachedBlockIsIdleWithoutAnotherReference) {
  const std::int32_t block = *cache_->allocate();
  cache_->retain(block);
  cache_->set_cached(block, true);
  EXPECT_EQ(cache_->idle_cached_blocks(), 0) << "a sequence has it too";
  cache_->release(block);
  EXPECT_EQ(cache_->idle_cached_blocks(), 1);
  cache_->set_cached(block, true);
  EXPECT_EQ(cache_->idle_cached_blocks(), 1) << "it was marked before";
  cache_->retain(block);
  EXPECT_EQ(cache_->idle_cached_blocks(), 0);
  cache_->retain(block);
  cache_->release(block);
  EXPECT_EQ(cache_->idle_cached_blocks(), 0) << "of three references one remains to a sequence";
  cache_->release(block);
  cache_->set_cached(block, false);
  EXPECT_EQ(cache_->idle_cached_blocks(), 0);
  cache_->release(block);
  EXPECT_EQ(cache_->free_blocks(), 3);
}

// Pointers, for kernels, and rows, for ATen, are two ways to one memory.
TEST_F(KvCacheTest, PointersAndRowsAgreeOnWhereATokenIs) {
  std::set<const float*> places;
  for (std::int64_t block = 0; block < cache_->blocks(); ++block) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (const bool values : {false, true}) {
        const float* first = (values ? cache_->values(layer) : cache_->keys(layer)) +
                             block * cache_->block_stride() + 5 * cache_->token_stride();
        const std::int64_t row =
            block * cache_->rows_per_block() + 5 +
            (values ? cache_->first_row_of_values(layer) : cache_->first_row_of_keys(layer));
        EXPECT_EQ(cache_->rows().select(0, row).const_data_ptr<float>(), first)
            << "block " << block << ", layer " << layer << (values ? ", values" : ", keys");
        places.insert(first);
      }
    }
  }
  EXPECT_EQ(places.size(), 12u);
}

TEST_F(KvCacheTest, ACopyHasTheFirstTokensOfAllLayersAndLeavesTheOthers) {
  fill(0);
  fill(2);
  const at::Tensor before = numbers_of(2).clone();
  cache_->copy(0, 2, 5);
  const auto by_part = [](const at::Tensor& rows) { return rows.view({4, kTokens, 3}); };
  const at::Tensor now = by_part(numbers_of(2));
  EXPECT_TRUE(now.narrow(1, 0, 5).equal(by_part(numbers_of(0)).narrow(1, 0, 5)));
  EXPECT_TRUE(now.narrow(1, 5, kTokens - 5).equal(by_part(before).narrow(1, 5, kTokens - 5)));
}

TEST_F(KvCacheTest, ASavedBlockMayComeBackElsewhere) {
  fill(0);
  fill(1);
  fill(2);
  const at::Tensor saved = numbers_of(1).clone(), below = numbers_of(0).clone();
  std::vector<float> kept(static_cast<std::size_t>(cache_->block_stride()));
  cache_->save(1, kept.data());
  numbers_of(1).fill_(-1.0);
  cache_->load(2, kept.data());
  EXPECT_TRUE(numbers_of(2).equal(saved));
  EXPECT_TRUE(numbers_of(0).equal(below));
  EXPECT_TRUE(numbers_of(1).eq(-1.0).all().item<bool>());
}

// The system fills pages that it gives again with zeros.
TEST_F(KvCacheTest, MemoryThatIsGivenBackComesAgain) {
  auto pages = KvCache::create({.layers = 1, .width = 1024}, {.bytes_max = 1 << 20});
  ASSERT_TRUE(pages.ok()) << pages.status().to_string();
  KvCache& cache = **pages;
  cache.rows().fill_(3.0);
  cache.release_memory();
  EXPECT_TRUE(cache.rows().eq(0.0).all().item<bool>());
  cache.rows().fill_(4.0);
  EXPECT_TRUE(cache.rows().eq(4.0).all().item<bool>());
}

TEST(KvCacheDeath, AReferenceThatIsNotThereIsABug) {
  auto made = KvCache::create({.layers = 1, .width = 1}, {.bytes_max = 1 << 20});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  KvCache& cache = **made;
  const std::int32_t block = *cache.allocate();
  EXPECT_DEATH(cache.release_memory(), "free_blocks");
  cache.set_cached(block, true);
  EXPECT_DEATH(cache.release(block), "cached");
  cache.set_cached(block, false);
  cache.release(block);
  EXPECT_DEATH(cache.release(block), "references");
  EXPECT_DEATH(cache.retain(block), "references");
}

}  // namespace
}  // namespace rl
