// The sum of squared probabilities that comes with log-probs.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "rl/model/transformer.h"

namespace rl {
namespace {

ModelConfig small_vocabulary() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 24;
  config.layers = 1;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.intermediate_size = 40;
  config.vocab_size = 50;
  config.max_position_embeddings = 64;
  config.initializer_range = 0.6F;
  return config;
}

TEST(SquaredProbabilities, AreThoseOfTheLogitsAndChangeNothingElse) {
  const ModelConfig config = small_vocabulary();
  const Transformer model(config, Parameters::random(config, 3));
  PackedBatch batch;
  batch.append(std::vector<std::int32_t>{3, 41, 7, 7, 12, 30, 2, 19, 44}, 1);
  for (const float temperature : {1.0F, 0.6F}) {
    const TokenLogprobs plain = model.token_logprobs(batch, {.temperature = temperature}).value();
    const TokenLogprobs out =
        model
            .token_logprobs(batch,
                            {.temperature = temperature, .with_squares = true, .logit_rows_max = 3})
            .value();
    EXPECT_TRUE(out.logprobs_N.equal(plain.logprobs_N));
    EXPECT_FALSE(plain.squares_N.defined());
    const at::Tensor p =
        (model.logits(batch).value().narrow(0, 0, 8).to(at::kDouble) / temperature).softmax(1);
    const at::Tensor expected = p.square().sum(1);
    ASSERT_EQ(out.squares_N.numel(), 8);
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_NEAR(out.squares_N[i].item<double>(), expected[i].item<double>(), 1e-6) << i;
  }
}

TEST(SquaredProbabilities, CarryNoGraph) {
  const ModelConfig config = small_vocabulary();
  Transformer model(config, Parameters::random(config, 3));
  model.enable_gradients();
  PackedBatch batch;
  batch.append(std::vector<std::int32_t>{3, 41, 7}, 1);
  const TokenLogprobs out = model.token_logprobs(batch, {.with_squares = true}).value();
  EXPECT_TRUE(out.logprobs_N.requires_grad());
  EXPECT_FALSE(out.squares_N.requires_grad());
}

}  // namespace
}  // namespace rl
