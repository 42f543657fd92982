#include "rl/optim/compressed_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "rl/comm/thread_links.h"
#include "tests/rl/optim/counting_links.h"

namespace rl {
namespace {

constexpr std::size_t kElements = 1000;
constexpr CompressedSum::Options kSmallBuckets{.bucket_bytes = 600};  // 150 values: seven buckets
constexpr std::size_t kFlagBytes = sizeof(std::uint64_t);  // whether a rank's gradient is finite

const std::vector<GradientCompressionOptions> kSchemes{
    {.scheme = GradientCompression::kFp16},
    {.scheme = GradientCompression::kTopK, .topk_ratio = 0.1}};

struct Rank {
  Communicator& communicator;
  std::vector<std::size_t>& sent;  // bytes, by rank
};

void on_ranks(int ranks, const std::function<void(Rank)>& body) {
  auto links = make_thread_links(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<std::size_t> sent(static_cast<std::size_t>(ranks), 0);
      Communicator communicator(std::make_unique<testing::CountingLinks>(
          std::move(links[static_cast<std::size_t>(rank)]), sent));
      body({communicator, sent});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Integers, whose sums are exact.
std::vector<float> gradient_of(int rank, int step) {
  std::mt19937 random(static_cast<unsigned>(rank * 1000 + step));
  std::uniform_int_distribution<int> integer(-3000, 3000);
  std::vector<float> values(kElements);
  for (float& value : values) value = static_cast<float>(integer(random));
  return values;
}

// Three homes, of which one is empty and one small.
std::vector<ArenaRange> homes_of_three() { return {{0, 700}, {700, 700}, {700, 1000}}; }

// What every rank has got in three steps, by rank, and what is left of each rank.
struct Sums {
  std::vector<std::vector<float>> got;
  std::vector<std::vector<float>> left;
};

Sums sums_of_three_steps(int ranks, const GradientCompressionOptions& scheme,
                         const std::vector<ArenaRange>& homes) {
  Sums sums;
  sums.got.resize(static_cast<std::size_t>(ranks), std::vector<float>(kElements, 0.0F));
  sums.left.resize(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](const Rank& mine) {
    const auto at = static_cast<std::size_t>(mine.communicator.rank());
    CompressedSum sum(mine.communicator, make_gradient_codec(scheme), kElements, homes,
                      kSmallBuckets);
    for (int step = 0; step < 3; ++step) {
      std::vector<float> gradients = gradient_of(mine.communicator.rank(), step);
      ASSERT_TRUE(sum.sum(gradients).ok());
      for (std::size_t i = 0; i < kElements; ++i) sums.got[at][i] += gradients[i];
    }
    sums.left[at].assign(sum.residual().begin(), sum.residual().end());
  });
  return sums;
}

TEST(CompressedSum, GivesAllRanksTheSameBitsAndKeepsTheRest) {
  for (const GradientCompressionOptions& scheme : kSchemes) {
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(scheme.scheme)) + ", " + std::to_string(ranks));
      const Sums sums = sums_of_three_steps(ranks, scheme, {});
      for (const std::vector<float>& got : sums.got)
        EXPECT_EQ(std::memcmp(got.data(), sums.got[0].data(), got.size() * sizeof(float)), 0);
      for (std::size_t i = 0; i < kElements; ++i) {
        double given = 0.0, known = sums.got[0][i];
        for (int rank = 0; rank < ranks; ++rank) {
          known += sums.left[static_cast<std::size_t>(rank)][i];
          for (int step = 0; step < 3; ++step) given += gradient_of(rank, step)[i];
        }
        EXPECT_EQ(known, given) << "element " << i << " is neither sent nor left";
      }
    }
  }
}

TEST(CompressedSum, OfHomesEachRankHasItsOwn) {
  for (const GradientCompressionOptions& scheme : kSchemes) {
    const std::vector<ArenaRange> homes = homes_of_three();
    const Sums sums = sums_of_three_steps(3, scheme, homes);
    for (std::size_t home = 0; home < homes.size(); ++home) {
      for (auto i = static_cast<std::size_t>(homes[home].begin);
           i < static_cast<std::size_t>(homes[home].end); ++i) {
        double given = 0.0, known = sums.got[home][i];
        for (int rank = 0; rank < 3; ++rank) {
          known += sums.left[static_cast<std::size_t>(rank)][i];
          for (int step = 0; step < 3; ++step) given += gradient_of(rank, step)[i];
        }
        EXPECT_EQ(known, given) << i;
        EXPECT_EQ(sums.left[home][i], 0.0F) << "its own gradient is not encoded";
      }
    }
  }
}

// A rank sends the code of each slice to the rank that adds it up, and its own sum in halves to
// all.
TEST(CompressedSum, SendsWhatTheSchemesFormulaSays) {
  const std::size_t per_bucket = kSmallBuckets.bucket_bytes / sizeof(float);
  for (const GradientCompressionOptions& scheme : kSchemes) {
    const std::unique_ptr<GradientCodec> codec = make_gradient_codec(scheme);
    for (const int ranks : {2, 3, 5}) {
      on_ranks(ranks, [&](const Rank& mine) {
        CompressedSum sum(mine.communicator, make_gradient_codec(scheme), kElements, {},
                          kSmallBuckets);
        std::vector<float> gradients = gradient_of(mine.communicator.rank(), 0);
        ASSERT_TRUE(sum.sum(gradients).ok());
        const SumPlan plan = SumPlan::of_buckets(kElements, ranks, per_bucket);
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer == mine.communicator.rank()) continue;
          std::size_t bytes = kFlagBytes;
          for (std::size_t bucket = 0; bucket < plan.buckets(); ++bucket)
            bytes += codec->bytes_of(plan.slice(bucket, peer).size()) +
                     Fp16Codec().bytes_of(plan.slice(bucket, mine.communicator.rank()).size());
          EXPECT_EQ(mine.sent[static_cast<std::size_t>(peer)], bytes);
        }
      });
    }
  }
}

// In one bucket, of two ranks: half of the bytes of fp32, and a quarter with a few places.
TEST(CompressedSum, SendsAHalfOrAQuarterOfTheBytes) {
  constexpr std::size_t kPlain = kElements * sizeof(float);  // 2 (n - 1) / n of the values
  const auto bytes_of = [&](const GradientCompressionOptions& scheme) {
    std::size_t bytes = 0;
    on_ranks(2, [&](const Rank& mine) {
      CompressedSum sum(mine.communicator, make_gradient_codec(scheme), kElements, {});
      std::vector<float> gradients = gradient_of(mine.communicator.rank(), 0);
      ASSERT_TRUE(sum.sum(gradients).ok());
      if (mine.communicator.rank() == 0) bytes = mine.sent[1];
    });
    return bytes;
  };
  EXPECT_EQ(bytes_of({.scheme = GradientCompression::kFp16}), kPlain / 2 + 2 * 4 + kFlagBytes);
  EXPECT_EQ(bytes_of({.scheme = GradientCompression::kTopK, .topk_ratio = 0.01}),
            5 * 8 + (kPlain / 4 + 4) + kFlagBytes);
}

TEST(CompressedSum, AGradientThatIsNotFiniteShowsOnAllRanksAndIsForgotten) {
  for (const GradientCompressionOptions& scheme : kSchemes) {
    on_ranks(3, [&](const Rank& mine) {
      const int rank = mine.communicator.rank();
      CompressedSum sum(mine.communicator, make_gradient_codec(scheme), kElements, {},
                        kSmallBuckets);
      std::vector<float> gradients = gradient_of(rank, 0);
      ASSERT_TRUE(sum.sum(gradients).ok());
      const std::vector<float> left(sum.residual().begin(), sum.residual().end());
      gradients = gradient_of(rank, 1);
      if (rank == 1) gradients[3] = std::numeric_limits<float>::infinity();
      ASSERT_TRUE(sum.sum(gradients).ok());
      EXPECT_TRUE(std::isnan(gradients[3])) << rank;
      EXPECT_EQ(std::vector<float>(sum.residual().begin(), sum.residual().end()), left);
      sum.forget_residual();
      for (const float value : sum.residual()) EXPECT_EQ(value, 0.0F);
    });
  }
}

// Sums of these are too large for a float, though none of them is.
TEST(CompressedSum, ASumThatIsNotFiniteShowsAndLeavesFiniteValues) {
  for (const GradientCompressionOptions& scheme : kSchemes) {
    on_ranks(2, [&](const Rank& mine) {
      CompressedSum sum(mine.communicator, make_gradient_codec(scheme), kElements, {});
      std::vector<float> gradients(kElements, 1.0F);
      gradients[0] = gradients[999] = 3e38F;
      ASSERT_TRUE(sum.sum(gradients).ok());
      EXPECT_FALSE(std::isfinite(gradients[0]));
      EXPECT_FALSE(std::isfinite(gradients[999]));
      for (const float value : sum.residual()) EXPECT_TRUE(std::isfinite(value));
    });
  }
}

TEST(CompressedSum, EndsWhenARankLeaves) {
  on_ranks(2, [&](const Rank& mine) {
    if (mine.communicator.rank() == 1) return;
    CompressedSum sum(mine.communicator, std::make_unique<Fp16Codec>(), kElements, {},
                      kSmallBuckets);
    std::vector<float> gradients = gradient_of(0, 0);
    const runtime::Status status = sum.sum(gradients);
    EXPECT_EQ(status.code(), runtime::ErrorCode::kUnavailable) << status.to_string();
  });
}

}  // namespace
}  // namespace rl
