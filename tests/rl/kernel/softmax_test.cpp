#include "rl/kernel/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

TEST(LogSoftmaxGather, EqualsTheFormulaInDoublePrecision) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (std::int64_t vocab : {1, 5, 16, 160, 49152}) {
      for (float temperature : {1.0F, 0.7F, 2.5F}) {
        const std::int64_t rows = 3;
        const auto logits = random_values(rows * vocab, 8, 12.0F);
        const std::vector<std::int32_t> targets = {0, static_cast<std::int32_t>(vocab - 1), -1};
        std::vector<float> logprob(rows), normalizer(rows), entropy(rows);
        log_softmax_gather(pool, logits.data(), rows, vocab, 0, temperature, targets.data(),
                           {.logprob = logprob.data(),
                            .log_normalizer = normalizer.data(),
                            .entropy = entropy.data()});
        for (std::int64_t r = 0; r < rows; ++r) {
          const double t = temperature;
          double sum = 0, h = 0;
          for (std::int64_t v = 0; v < vocab; ++v)
            sum += std::exp(double{logits[r * vocab + v]} / t);
          for (std::int64_t v = 0; v < vocab; ++v) {
            const double logp = double{logits[r * vocab + v]} / t - std::log(sum);
            h -= std::exp(logp) * logp;
          }
          ASSERT_NEAR(normalizer[r], std::log(sum), 2e-5);
          ASSERT_NEAR(entropy[r], h, 2e-5);
          ASSERT_NEAR(
              logprob[r],
              targets[r] < 0 ? 0.0 : double{logits[r * vocab + targets[r]]} / t - std::log(sum),
              2e-5);
        }
      }
    }
  });
}

TEST(LogSoftmaxGather, TreatsMinusInfinityAsImpossibleAndNanAsNan) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for_each_isa([] {
    ThreadPool pool(1);
    std::vector<float> logits(40, -infinity);
    logits[3] = logits[20] = 1.0F;
    const std::int32_t target = 3;
    float logprob = 0, entropy = 0;
    log_softmax_gather(pool, logits.data(), 1, 40, 0, 1.0F, &target,
                       {.logprob = &logprob, .entropy = &entropy});
    EXPECT_NEAR(logprob, -std::log(2.0), 1e-6);
    EXPECT_NEAR(entropy, std::log(2.0), 1e-6);
    for (std::size_t at : {std::size_t{0}, std::size_t{17}, std::size_t{39}}) {
      std::vector<float> broken(40, 1.0F);
      broken[at] = std::nanf("");
      log_softmax_gather(pool, broken.data(), 1, 40, 0, 1.0F, &target, {.logprob = &logprob});
      EXPECT_TRUE(std::isnan(logprob)) << at;
    }
  });
}

TEST(LogSoftmaxGather, RowsMayBePartsOfWiderOnesAndOutputsLeftOut) {
  const std::int64_t rows = 40, vocab = 1000, stride = 1003;  // on every thread several
  const auto logits = random_values(rows * stride, 41, 6.0F);
  std::vector<std::int32_t> targets;
  for (std::int32_t r = 0; r < rows; ++r) targets.push_back(r * 37 % 1000);
  std::vector<float> logprob(rows), normalizer(rows), entropy(rows);
  ThreadPool several(3), one(1);
  log_softmax_gather(several, logits.data(), rows, vocab, stride, 0.8F, targets.data(),
                     {.logprob = logprob.data()});
  log_softmax_gather(several, logits.data(), rows, vocab, stride, 0.8F, nullptr,
                     {.log_normalizer = normalizer.data(), .entropy = entropy.data()});
  for (std::int64_t r = 0; r < rows; ++r) {
    float expected[3] = {};
    log_softmax_gather(one, logits.data() + r * stride, 1, vocab, 0, 0.8F, targets.data() + r,
                       {expected, expected + 1, expected + 2});
    ASSERT_EQ(logprob[r], expected[0]) << r;
    ASSERT_EQ(normalizer[r], expected[1]) << r;
    ASSERT_EQ(entropy[r], expected[2]) << r;
  }
}

}  // namespace
}  // namespace rl::kernel
