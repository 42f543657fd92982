// Learners whose ranks send each other compressed gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/learner.h"
#include "tests/rl/model/large_config.h"

namespace rl {
namespace {

constexpr int kRanks = 2;
constexpr int kCompressedSteps = 4;

// Of several chunks of kNormChunk.
ModelConfig small_vocabulary() {
  ModelConfig config = testing::large_config(1);
  config.vocab_size = 256;
  return config;
}

LearnerOptions options_of(const GradientCompressionOptions& compression, ZeroLevel zero) {
  LearnerOptions options;
  options.optimizer = OptimizerKind::kSgd;
  options.sgd.momentum = 0.0F;
  options.grad_norm_max = 0.0;
  options.compression = compression;
  options.zero = zero;
  return options;
}

void draw_gradients_of(Learner& learner, int rank, int step) {
  std::mt19937 random(static_cast<unsigned>(step * kRanks + rank));
  std::normal_distribution<float> normal;
  for (float& value : elements_of(learner.model().gradients().arena())) value = normal(random);
}

void on_learners(const LearnerOptions& options, const std::function<void(Learner&, int)>& body) {
  auto links = make_thread_links(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto model = std::make_unique<Transformer>(small_vocabulary(),
                                                 Parameters::random(small_vocabulary(), 1),
                                                 TransformerOptions{.threads = 1});
      Learner learner(
          std::move(model),
          std::make_unique<Communicator>(std::move(links[static_cast<std::size_t>(rank)])),
          options);
      body(learner, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> trained(const GradientCompressionOptions& compression, ZeroLevel zero) {
  std::vector<float> weights;
  on_learners(options_of(compression, zero), [&](Learner& learner, int rank) {
    for (int step = 0; step < kCompressedSteps; ++step) {
      draw_gradients_of(learner, rank, step);
      const auto report = learner.apply(0.01);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_FALSE(report->skipped);
    }
    const runtime::Status equal = learner.check_equal_weights();
    EXPECT_TRUE(equal.ok()) << equal.to_string();
    if (rank != 0) return;
    const auto values = elements_of(learner.model().parameters().arena());
    weights.assign(values.begin(), values.end());
  });
  return weights;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - b[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

TEST(LearnerCompression, RanksKeepEqualWeightsNearThoseOfWholeGradients) {
  const std::vector<float> begin = [] {
    const Parameters parameters = Parameters::random(small_vocabulary(), 1);
    const auto values = elements_of(parameters.arena());
    return std::vector<float>(values.begin(), values.end());
  }();
  for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
    SCOPED_TRACE(static_cast<int>(zero));
    const std::vector<float> whole = trained({}, zero);
    const double moved = distance(whole, begin);
    ASSERT_GT(moved, 0.0);
    const std::vector<float> half = trained({.scheme = GradientCompression::kFp16}, zero);
    EXPECT_LT(distance(half, whole), 1e-3 * moved);
    EXPECT_NE(half, whole);
    const auto top = [&](double ratio) {
      return trained({.scheme = GradientCompression::kTopK, .topk_ratio = ratio}, zero);
    };
    EXPECT_LT(distance(top(1.0), whole), 1e-3 * moved) << "everything is sent, and sums in halves";
    EXPECT_LT(distance(top(0.5), whole), 0.5 * moved);
    EXPECT_LT(distance(top(0.5), whole), distance(top(0.05), whole));
    EXPECT_EQ(top(0.05), top(0.05));
  }
}

TEST(LearnerCompression, AGradientThatIsNotFiniteIsDroppedOnAllRanks) {
  const GradientCompressionOptions scheme{.scheme = GradientCompression::kTopK, .topk_ratio = 0.05};
  for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
    std::vector<float> weights;
    on_learners(options_of(scheme, zero), [&](Learner& learner, int rank) {
      for (int step = 0; step < kCompressedSteps; ++step) {
        for (const bool fails : {true, false}) {  // as if there had been no such step
          draw_gradients_of(learner, rank, fails ? step + 100 : step);
          if (fails && rank == 1)
            elements_of(learner.model().gradients().arena()).back() =
                std::numeric_limits<float>::quiet_NaN();
          const auto report = learner.apply(0.01);
          ASSERT_TRUE(report.ok()) << report.status().to_string();
          EXPECT_EQ(report->skipped, fails);
        }
      }
      if (rank != 0) return;
      const auto values = elements_of(learner.model().parameters().arena());
      weights.assign(values.begin(), values.end());
    });
    EXPECT_EQ(weights, trained(scheme, zero));
  }
}

TEST(LearnerCompression, ANewObjectiveBeginsWithoutWhatWasNotSent) {
  const LearnerOptions options =
      options_of({.scheme = GradientCompression::kTopK, .topk_ratio = 0.05}, ZeroLevel::kNone);
  on_learners(options, [&](Learner& learner, int rank) {
    draw_gradients_of(learner, rank, 0);
    ASSERT_TRUE(learner.apply(0.01).ok());
    learner.reset_optimizer();
    for (float& value : elements_of(learner.model().gradients().arena())) value = 0.0F;
    const auto report = learner.apply(0.01);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->grad_norm, 0.0);
  });
}

}  // namespace
}  // namespace rl
