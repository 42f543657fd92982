// Norms, rotary embedding, element-wise functions and the log-softmax.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "for_each_isa.h"
#include "random_values.h"
#include "rl/kernel/kernel.h"

namespace rl::kernel {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RmsNorm, EqualsTheFormulaAndReturnsTheInverse) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (std::int64_t size : {1, 12, 16, 48, 576, 577}) {
      const std::int64_t rows = 7;
      const auto x = random_values(rows * size, 1, 5.0F), weight = random_values(size, 2);
      std::vector<float> y(x.size()), inverse(rows);
      rms_norm(pool, x.data(), rows, size, weight.data(), 1e-5F, y.data(), inverse.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::int64_t i = 0; i < size; ++i)
          squares += double{x[r * size + i]} * double{x[r * size + i]};
        const double expected = 1.0 / std::sqrt(squares / static_cast<double>(size) + 1e-5);
        ASSERT_NEAR(inverse[r] / expected, 1.0, 1e-6);
        for (std::int64_t i = 0; i < size; ++i)
          ASSERT_NEAR(y[r * size + i], x[r * size + i] * expected * weight[i], 1e-5);
      }
      std::vector<float> in_place = x;
      rms_norm(pool, in_place.data(), rows, size, weight.data(), 1e-5F, in_place.data());
      ASSERT_EQ(in_place, y);
    }
  });
}

TEST(Rope, RotatesPairsAndUndoesItself) {
  for_each_isa([] {
    ThreadPool pool(2);
    const RopeShape shape{.heads = 3, .head_dim = 20, .half = 8};  // four elements pass unchanged
    const std::vector<float> frequencies = random_values(8, 3);
    std::vector<float> cos(64 * 8), sin(64 * 8), negative_sin;
    rope_tables(frequencies, 64, 1.0F, cos.data(), sin.data());
    for (float s : sin) negative_sin.push_back(-s);
    const std::vector<std::int32_t> positions = {0, 5, 63};
    const auto x = random_values(3 * 60, 4);
    std::vector<float> y(x.size());
    rope(pool, shape, x.data(), 3, 0, positions.data(), cos.data(), sin.data(), y.data());
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t h = 0; h < 3; ++h) {
        const std::int64_t at = r * 60 + h * 20;
        for (std::int64_t i = 0; i < 8; ++i) {
          const double angle = static_cast<float>(positions[r]) * frequencies[i];
          ASSERT_NEAR(y[at + i], x[at + i] * std::cos(angle) - x[at + 8 + i] * std::sin(angle),
                      1e-6);
          ASSERT_NEAR(y[at + 8 + i], x[at + 8 + i] * std::cos(angle) + x[at + i] * std::sin(angle),
                      1e-6);
        }
        for (std::int64_t i = 16; i < 20; ++i) ASSERT_EQ(y[at + i], x[at + i]);
      }
    }
    rope(pool, shape, y.data(), 3, 0, positions.data(), cos.data(), negative_sin.data(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 1e-6);
  });
}

TEST(Exp, IsAccurateOverTheWholeRange) {
  for_each_isa([] {
    ThreadPool pool(1);
    std::vector<float> x(200001), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = -87.0F + 175.7F * static_cast<float>(i) / 200000.0F;
    exp(pool, x.data(), static_cast<std::int64_t>(x.size()), y.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i] / std::exp(double{x[i]}), 1.0, 2e-7) << x[i];
  });
}

TEST(Exp, KeepsTheEdges) {
  for_each_isa([] {
    ThreadPool pool(1);
    std::vector<float> x = {0.0F,    -0.0F,  -kInfinity, kInfinity, std::nanf(""),
                            -200.0F, 200.0F, -100.0F,    88.7F};
    exp(pool, x.data(), static_cast<std::int64_t>(x.size()), x.data());
    EXPECT_EQ(x[0], 1.0F);
    EXPECT_EQ(x[1], 1.0F);
    EXPECT_EQ(x[2], 0.0F);
    EXPECT_EQ(x[3], kInfinity);
    EXPECT_TRUE(std::isnan(x[4]));
    EXPECT_EQ(x[5], 0.0F);
    EXPECT_EQ(x[6], kInfinity);
    EXPECT_NEAR(x[7], std::exp(-100.0), 2e-45);  // subnormal
    EXPECT_NEAR(x[8] / std::exp(88.7F), 1.0, 3e-7);
  });
}

double exact_activation(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu: return x / (1.0 + std::exp(-x));
    case Activation::kGelu: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSigmoid: return 1.0 / (1.0 + std::exp(-x));
    case Activation::kRelu: break;
  }
  return std::max(x, 0.0);
}

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                       Activation::kRelu, Activation::kSigmoid};

TEST(Activate, EqualsTheFormulasAtEveryLength) {
  for_each_isa([&] {
    ThreadPool pool(2);
    for (const Activation activation : kActivations) {
      for (std::int64_t count : {1, 15, 16, 17, 40000}) {
        const auto gate = random_values(count, 5, 20.0F), up = random_values(count, 6);
        std::vector<float> y(gate.size()), alone(gate.size());
        activate(pool, activation, gate.data(), up.data(), count, y.data());
        activate(pool, activation, gate.data(), nullptr, count, alone.data());
        for (std::size_t i = 0; i < y.size(); ++i) {
          const double expected = exact_activation(activation, double{gate[i]});
          ASSERT_NEAR(alone[i], expected, 1e-6 * (1.0 + std::abs(expected)))
              << gate[i] << " " << static_cast<int>(activation);
          ASSERT_NEAR(y[i], expected * double{up[i]}, 2e-6 * (1.0 + std::abs(expected)));
        }
      }
      float broken = std::nanf("");
      activate(pool, activation, &broken, nullptr, 1, &broken);
      EXPECT_TRUE(std::isnan(broken)) << static_cast<int>(activation);
    }
  });
}

TEST(Activate, GoesBackByTheSlope) {
  for_each_isa([] {
    ThreadPool pool(1);
    for (const Activation activation : kActivations) {
      const std::int64_t count = 4003;
      const auto gate = random_values(count, 5, 12.0F), up = random_values(count, 6),
                 dp = random_values(count, 7);
      std::vector<float> d_gate(gate.size()), d_up(gate.size()), p(gate.size()), again(gate.size());
      activate_backward(activation, {gate.data(), up.data(), dp.data(), count, d_gate.data(),
                                     d_up.data(), p.data()});
      activate(pool, activation, gate.data(), up.data(), count, again.data());
      EXPECT_EQ(p, again) << static_cast<int>(activation);
      for (std::size_t i = 0; i < gate.size(); ++i) {
        const double x = gate[i], step = 1e-4;
        const double slope =
            (exact_activation(activation, x + step) - exact_activation(activation, x - step)) /
            (2 * step);
        ASSERT_NEAR(d_gate[i], slope * double{up[i]} * double{dp[i]}, 3e-6)
            << x << " " << static_cast<int>(activation);
        ASSERT_NEAR(d_up[i], exact_activation(activation, x) * double{dp[i]}, 2e-5);
      }
      activate_backward(activation,
                        {gate.data(), nullptr, dp.data(), count, d_gate.data(), nullptr, p.data()});
      activate(pool, activation, gate.data(), nullptr, count, again.data());
      EXPECT_EQ(p, again);
    }
  });
}

// Of neighbours that are computed elsewhere nothing is seen.
TEST(Activate, GoesBackOverAPartWithTheBitsOfTheWhole) {
  std::vector<std::vector<float>> found;
  for_each_isa([&] {
    for (const Activation activation : kActivations) {
      const std::int64_t count = 75;
      const auto gate = random_values(count, 8, 12.0F), up = random_values(count, 9),
                 dp = random_values(count, 10);
      const auto of = [&](std::int64_t first, std::int64_t part) {
        std::vector<float> all(static_cast<std::size_t>(3 * part));
        activate_backward(activation, {gate.data() + first, up.data() + first, dp.data() + first,
                                       part, all.data(), all.data() + part, all.data() + 2 * part});
        return all;
      };
      const std::vector<float> whole = of(0, count);
      for (std::int64_t first = 0; first < count; ++first) {
        const std::vector<float> one = of(first, 1);
        for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(one[k], whole[k * count + first]);
      }
      found.push_back(whole);
    }
  });
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], found[i % std::size(kActivations)]);
}

TEST(Softcap, BoundsWithoutChangingWhatIsSmall) {
  for_each_isa([] {
    ThreadPool pool(2);
    const auto x = random_values(1003, 11, 300.0F);
    std::vector<float> y(x.size());
    softcap(pool, x.data(), 1003, 30.0F, y.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], 30.0 * std::tanh(double{x[i]} / 30.0), 1e-5);
    EXPECT_TRUE(std::all_of(y.begin(), y.end(), [](float v) { return std::abs(v) <= 30.0F; }));
  });
}

TEST(LayerNorm, EqualsTheFormulaAtEveryWidth) {
  for_each_isa([] {
    ThreadPool pool(2);
    for (std::int64_t size : {1, 15, 16, 17, 48, 1000}) {
      const std::int64_t rows = 5;
      auto x = random_values(rows * size, 12, 3.0F);
      for (float& value : x) value += 50.0F;  // a mean that would swallow the variance
      const auto weight = random_values(size, 13), bias = random_values(size, 14);
      std::vector<float> y(x.size()), moments(static_cast<std::size_t>(2 * rows));
      layer_norm(pool, x.data(), rows, size, weight.data(), bias.data(), 1e-5F, y.data(),
                 moments.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double mean = 0, variance = 0;
        for (std::int64_t i = 0; i < size; ++i)
          mean += double{x[r * size + i]} / static_cast<double>(size);
        for (std::int64_t i = 0; i < size; ++i)
          variance += std::pow(double{x[r * size + i]} - mean, 2) / static_cast<double>(size);
        const double inverse = 1.0 / std::sqrt(variance + 1e-5);
        ASSERT_NEAR(moments[2 * r], mean, 1e-4);
        for (std::int64_t i = 0; i < size; ++i) {
          ASSERT_NEAR(
              y[r * size + i],
              (double{x[r * size + i]} - mean) * inverse * double{weight[i]} + double{bias[i]},
              size == 1 ? 2e-2 : 2e-4);
        }
      }
    }
  });
}

TEST(GatherRows, CopiesTheRowsAsked) {
  ThreadPool pool(2);
  const auto table = random_values(10 * 7, 7);
  const std::vector<std::int32_t> ids = {9, 0, 3, 3};
  std::vector<float> y(4 * 7);
  gather_rows(pool, table.data(), 7, ids.data(), 4, y.data());
  for (std::size_t r = 0; r < ids.size(); ++r) {
    for (std::size_t i = 0; i < 7; ++i)
      ASSERT_EQ(y[r * 7 + i], table[static_cast<std::size_t>(ids[r]) * 7 + i]);
  }
}

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
  for_each_isa([] {
    ThreadPool pool(1);
    std::vector<float> logits(40, -kInfinity);
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

// One pass over all row-wise kernels: same inputs, same bits, whatever runs them.
TEST(RowKernels, GiveTheSameBitsOnEveryInstructionSet) {
  std::vector<std::vector<float>> results;
  for_each_isa([&] {
    ThreadPool pool(2);
    const std::int64_t rows = 5, size = 203;
    const auto x = random_values(rows * size, 9, 30.0F), weight = random_values(size, 10);
    std::vector<float> normed(x.size()), gated(x.size()), powers(x.size()), logprob(rows),
        entropy(rows);
    rms_norm(pool, x.data(), rows, size, weight.data(), 1e-6F, normed.data());
    activate(pool, Activation::kSilu, x.data(), normed.data(), rows * size, gated.data());
    std::vector<float> others;
    for (const Activation activation :
         {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu, Activation::kSigmoid}) {
      std::vector<float> y(x.size());
      activate(pool, activation, x.data(), nullptr, rows * size, y.data());
      others.insert(others.end(), y.begin(), y.end());
    }
    std::vector<float> centred(x.size()), capped(x.size());
    layer_norm(pool, x.data(), rows, size, weight.data(), weight.data(), 1e-6F, centred.data());
    softcap(pool, x.data(), rows * size, 20.0F, capped.data());
    exp(pool, x.data(), rows * size, powers.data());
    const std::vector<std::int32_t> targets = {1, 2, 3, 4, 5};
    log_softmax_gather(pool, x.data(), rows, size, 0, 0.9F, targets.data(),
                       {.logprob = logprob.data(), .entropy = entropy.data()});
    std::vector<float> cos(10 * 6), sin(10 * 6), turned(static_cast<std::size_t>(rows * 24));
    rope_tables(std::span(weight).first(6), 10, 1.0F, cos.data(), sin.data());
    rope(pool, {.heads = 2, .head_dim = 12, .half = 6}, x.data(), rows, 0, targets.data(),
         cos.data(), sin.data(), turned.data());
    std::vector<float> all;
    for (const auto* part :
         {&normed, &gated, &powers, &logprob, &entropy, &turned, &others, &centred, &capped})
      all.insert(all.end(), part->begin(), part->end());
    results.push_back(std::move(all));
  });
  for (const std::vector<float>& result : results) ASSERT_EQ(result, results.front());
}

}  // namespace
}  // namespace rl::kernel
