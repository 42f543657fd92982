// Ranks whose models are on a device: their gradients are added up on the host, as those of ranks
// on the CPU are.
#include <ATen/ops/from_blob.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/learner.h"
#include "stand_in.h"
#include "tests/rl/model/large_config.h"

namespace rl {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 3;

ModelConfig small_config() {
  ModelConfig config = testing::large_config(1);
  config.vocab_size = 256;
  return config;
}

class LearnerDevice : public testing::DeviceTest {
 protected:
  static at::Device find(const std::string& device) { return *find_device(device); }

  /// The weights after some steps by gradients that are drawn, the same on every device.
  static std::vector<float> trained(const std::string& device, const LearnerOptions& options) {
    auto links = make_thread_links(kRanks);
    std::vector<std::vector<float>> weights(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto of = static_cast<std::size_t>(rank);
        weights[of] = train(device, options, std::move(links[of]), rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(weights.front(), weights.back());
    return weights.front();
  }

 private:
  static std::vector<float> train(const std::string& device, const LearnerOptions& options,
                                  std::unique_ptr<Links> links, int rank) {
    const ModelConfig config = small_config();
    Learner learner(
        std::make_unique<Transformer>(config, Parameters::random(config, 1).to(find(device)),
                                      TransformerOptions{.threads = 1}),
        std::make_unique<Communicator>(std::move(links)), options);
    for (int step = 0; step < kSteps; ++step) {
      at::Tensor arena = learner.model().gradients().arena();
      arena.copy_(drawn(arena.numel(), step * kRanks + rank));
      const auto report = learner.apply(0.01);
      EXPECT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_FALSE(report.ok() && report->skipped);
    }
    const at::Tensor there = learner.model().parameters().arena().to(at::kCPU);
    const auto values = elements_of(there);
    return {values.begin(), values.end()};
  }

  static at::Tensor drawn(std::int64_t elements, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (float& value : values) value = normal(random);
    return at::from_blob(values.data(), {elements}).clone();
  }
};

TEST_F(LearnerDevice, StepsOfSeveralRanksAreThoseOfTheCpu) {
  const GradientCompressionOptions none, half{.scheme = GradientCompression::kFp16},
      largest{.scheme = GradientCompression::kTopK, .topk_ratio = 0.1};
  for (const GradientCompressionOptions& compression : {none, half, largest}) {
    for (const ZeroLevel zero : {ZeroLevel::kNone, ZeroLevel::kMoments}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(compression.scheme)) + ", level " +
                   std::to_string(static_cast<int>(zero)));
      LearnerOptions options;
      options.compression = compression;
      options.zero = zero;
      EXPECT_EQ(trained(testing::tested_device(), options), trained("cpu", options));
    }
  }
}

}  // namespace
}  // namespace rl
