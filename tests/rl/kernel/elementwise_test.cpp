#include "rl/kernel/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "for_each_isa.h"
#include "random_values.h"

namespace rl::kernel {
namespace {

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
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
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

// More than one range of each thread, in the memory of what goes in.
TEST(Elementwise, RangesOnSeveralThreadsAreTheWholeOnce) {
  const std::int64_t count = 100'003;
  const auto a = random_values(count, 51, 40.0F), b = random_values(count, 52);
  ThreadPool several(3);
  std::vector<float> sum = a, capped = a, powers = b;
  add(several, sum.data(), b.data(), count, sum.data());
  softcap(several, capped.data(), count, 30.0F, capped.data());
  exp(several, powers.data(), count, powers.data());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(sum[i], a[i] + b[i]) << i;
    ASSERT_NEAR(capped[i], 30.0 * std::tanh(double{a[i]} / 30.0), 1e-5) << i;
    ASSERT_NEAR(powers[i], std::exp(double{b[i]}), 1e-6) << i;
  }
}

TEST(Elementwise, TheSecondSummandMayBeOverwritten) {
  ThreadPool pool(1);
  const std::vector<float> a = {1.0F, 2.0F, 3.0F};
  std::vector<float> b = {10.0F, 20.0F, 30.0F};
  add(pool, a.data(), b.data(), 3, b.data());
  EXPECT_EQ(b, (std::vector<float>{11.0F, 22.0F, 33.0F}));
}

}  // namespace
}  // namespace rl::kernel
