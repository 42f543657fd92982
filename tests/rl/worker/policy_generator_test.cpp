// The generating half alone: an engine over a model without a learner.
#include "rl/worker/policy_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "rl/model/transformer.h"

namespace rl {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 32;
  config.layers = 1;
  config.heads = 2;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 32;
  config.vocab_size = 40;
  config.max_position_embeddings = 64;
  config.initializer_range = 0.3F;
  return config;
}

// Counts how often weights are asked for.
class CountedWeights : public WeightMover {
 public:
  runtime::Result<Brought> bring() override {
    ++brought;
    return Brought();
  }
  int brought = 0;
};

class PolicyGeneratorTest : public ::testing::Test {
 protected:
  PolicyGeneratorTest()
      : model_(small(), Parameters::random(small(), 3)),
        generator_({.training = {.samples = 2, .response_tokens_max = 5},
                    .validation = {.samples = 1, .temperature = 0.0F, .response_tokens_max = 5}},
                   std::move(*Engine::create(model_, {})), nullptr, weights_) {}

  static PromptBatch prompts() {
    PromptBatch batch;
    batch.ids.append(std::vector<std::int32_t>{4, 5, 6});
    batch.ids.append(std::vector<std::int32_t>{7, 8});
    batch.seeds = {1, 2};
    return batch;
  }

  Transformer model_;
  CountedWeights weights_;
  PolicyGenerator generator_;
};

TEST_F(PolicyGeneratorTest, AsksForTheWeightsOfEachCall) {
  const auto training = generator_.generate(prompts(), /*validation=*/false);
  ASSERT_TRUE(training.ok()) << training.status().to_string();
  EXPECT_EQ(training->samples(), 4);
  EXPECT_EQ(weights_.brought, 1);
  EXPECT_EQ(generator_.generate(prompts(), /*validation=*/true)->samples(), 2);
  EXPECT_EQ(generator_.generate_greedy(prompts())->responses,
            generator_.generate(prompts(), /*validation=*/true)->responses);
  EXPECT_EQ(weights_.brought, 4);
}

TEST_F(PolicyGeneratorTest, NothingToGenerateNeedsNoWeights) {
  const auto none = generator_.generate(PromptBatch(), /*validation=*/false);
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_EQ(none->samples(), 0);
  EXPECT_EQ(weights_.brought, 1) << "the other ranks may have something to generate";
  PromptBatch unseeded = prompts();
  unseeded.seeds.pop_back();
  EXPECT_EQ(generator_.generate(unseeded, false).status().code(),
            runtime::ErrorCode::kInvalidArgument);
}

TEST_F(PolicyGeneratorTest, TellsOfEachResponseOnce) {
  std::vector<std::int32_t> told;
  const auto batch = generator_.generate(
      prompts(), /*validation=*/false,
      [&](std::span<const std::int32_t> prompt_of, const Ragged<std::int32_t>& responses) {
        EXPECT_EQ(static_cast<std::int64_t>(prompt_of.size()), responses.rows());
        told.insert(told.end(), prompt_of.begin(), prompt_of.end());
      });
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

TEST_F(PolicyGeneratorTest, PartialSamplesAreOfTheVersionThatItIsTold) {
  const auto partial = generator_.generate_partially({.partial = {}, .fresh = {prompts()}},
                                                     {.prompts = 2}, /*version=*/7);
  ASSERT_TRUE(partial.ok()) << partial.status().to_string();
  EXPECT_EQ(weights_.brought, 1);
  ASSERT_EQ(partial->batch.samples(), 4);
  EXPECT_EQ(partial->oldest, std::vector<std::int64_t>(4, 7));
  EXPECT_EQ(partial->newest, std::vector<std::int64_t>(4, 7));
}

}  // namespace
}  // namespace rl
