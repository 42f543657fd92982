// Training with products in bf16: near the fp32 numbers, and the same bits on any number of
// threads. What backward computes again is as it was computed before.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <thread>

#include "rl/model/transformer.h"

namespace rl {
namespace {

ModelConfig small(bool biased) {
  ModelConfig config;
  config.family = biased ? "qwen2" : "llama";
  config.hidden_size = 64;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.intermediate_size = 160;
  config.vocab_size = 97;
  config.max_position_embeddings = 200;
  config.initializer_range = 0.08F;
  return config;
}

std::unique_ptr<Transformer> bf16_model(int threads = 1, bool biased = false) {
  auto made = std::make_unique<Transformer>(small(biased), Parameters::random(small(biased), 3),
                                            TransformerOptions{.threads = threads});
  made->enable_gradients();
  return made;
}

PackedBatch three_samples() {
  PackedBatch batch;
  for (int sample = 0; sample < 3; ++sample) {
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 90; ++i) ids.push_back((i * i * 7 + i + (i < 20 ? 0 : sample)) % 97);
    batch.append(ids, 20);
  }
  return batch;
}

struct Passed {
  at::Tensor logprobs;
  at::Tensor gradient;
};

Passed pass(Transformer& transformer, bool bf16, bool recompute = false,
            std::int64_t kept_bytes = 1 << 20) {
  transformer.zero_gradients();
  Passed passed;
  at::Tensor loss;
  {
    LogprobOptions options{.with_entropy = true};
    options.kept_bytes_max = kept_bytes;
    const TokenLogprobs out =
        transformer
            .token_logprobs(three_samples(), options, {.bf16 = bf16, .recompute_layers = recompute})
            .value();
    passed.logprobs = out.logprobs_N.detach().clone();
    loss = (out.logprobs_N + out.entropy_N * 0.1).mean();
  }
  loss.backward();
  passed.gradient = transformer.gradients().arena().clone();
  return passed;
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  return ((a * b).sum() / (a.norm() * b.norm())).item<double>();
}

TEST(Bf16Products, AreNearFp32AndNotEqual) {
  for (const bool biased : {false, true}) {
    const auto transformer = bf16_model(1, biased);
    const Passed exact = pass(*transformer, false);
    const Passed rounded = pass(*transformer, true);
    const double error = (exact.logprobs - rounded.logprobs).abs().max().item<double>();
    EXPECT_GT(error, 0.0);
    EXPECT_LT(error, 0.1);
    EXPECT_GT(cosine(exact.gradient, rounded.gradient), 0.999);
    EXPECT_NEAR(rounded.gradient.norm().item<double>() / exact.gradient.norm().item<double>(), 1.0,
                0.02);
    EXPECT_TRUE(pass(*transformer, false).gradient.equal(exact.gradient)) << "fp32 again";
  }
}

TEST(Bf16Products, DoNotDependOnThreads) {
  const Passed alone = pass(*bf16_model(1), true);
  const Passed together = pass(*bf16_model(3), true);
  EXPECT_TRUE(alone.logprobs.equal(together.logprobs));
  EXPECT_TRUE(alone.gradient.equal(together.gradient));
}

// What backward computes again is computed as it was the first time: layers, and logits that were
// not kept.
TEST(Bf16Products, HoldForWhatIsComputedAgain) {
  const auto transformer = bf16_model();
  const Passed kept = pass(*transformer, true);
  EXPECT_TRUE(pass(*transformer, true, /*recompute=*/true).gradient.equal(kept.gradient));
  EXPECT_TRUE(pass(*transformer, true, false, /*kept_bytes=*/0).gradient.equal(kept.gradient));
}

TEST(Bf16Products, WeightsAndGradientsStayFp32) {
  const auto transformer = bf16_model();
  EXPECT_EQ(pass(*transformer, true).gradient.scalar_type(), at::kFloat);
}

// Backward may run on any thread: it has what it needs from its forward pass.
TEST(Bf16Products, HoldWhereverBackwardRuns) {
  const auto transformer = bf16_model();
  const Passed here = pass(*transformer, true);
  at::Tensor gradient;
  std::thread elsewhere([&] { gradient = pass(*transformer, true).gradient; });
  elsewhere.join();
  EXPECT_TRUE(gradient.equal(here.gradient));
}

}  // namespace
}  // namespace rl
