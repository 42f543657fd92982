// Layers computed again in backward: nothing but memory tells.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "rl/model/lora.h"
#include "rl/model/transformer.h"

namespace rl {
namespace {

ModelConfig model_of_layers(std::int64_t layers) {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 24;
  config.layers = layers;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.intermediate_size = 40;
  config.vocab_size = 50;
  config.max_position_embeddings = 100;
  config.initializer_range = 0.3F;
  return config;
}

std::unique_ptr<Transformer> three_layers() {
  auto made =
      std::make_unique<Transformer>(model_of_layers(3), Parameters::random(model_of_layers(3), 3));
  made->enable_gradients();
  return made;
}

PackedBatch short_samples() {
  PackedBatch batch;
  for (int sample = 0; sample < 3; ++sample) {
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 40; ++i) ids.push_back((i * i * 7 + i + (i < 20 ? 0 : sample)) % 50);
    batch.append(ids, 20);
  }
  return batch;
}

at::Tensor gradient_with(Transformer& transformer, bool recompute) {
  transformer.zero_gradients();
  at::Tensor loss;
  {
    const TokenLogprobs out = transformer
                                  .token_logprobs(short_samples(), {.with_entropy = true},
                                                  {.recompute_layers = recompute})
                                  .value();
    loss = (out.logprobs_N * out.entropy_N).sum();
  }
  loss.backward();
  return transformer.gradients().arena().clone();
}

TEST(RecomputeLayers, GiveTheSameBits) {
  const auto transformer = three_layers();
  const at::Tensor kept = gradient_with(*transformer, false);
  EXPECT_GT(kept.norm().item<double>(), 0.0);
  EXPECT_TRUE(gradient_with(*transformer, true).equal(kept));
  EXPECT_TRUE(gradient_with(*transformer, false).equal(kept));
}

TEST(RecomputeLayers, DropWhatWasDropped) {
  const auto with_adapter = [] {
    auto transformer = std::make_unique<Transformer>(model_of_layers(3),
                                                     Parameters::random(model_of_layers(3), 3));
    LoraConfig config;
    config.rank = 4;
    config.dropout = 0.5;
    EXPECT_TRUE(
        transformer->add_adapter("a", LoraAdapter::create(transformer->config(), config, 1).value())
            .ok());
    EXPECT_TRUE(transformer->use_adapter("a").ok());
    transformer->enable_gradients();
    at::Tensor(transformer->trained_parameters().arena())
        .add_(0.05);  // an adapter begins with no say
    return transformer;
  };
  const auto kept = with_adapter();
  const auto recomputed = with_adapter();
  const at::Tensor first = gradient_with(*kept, false);
  EXPECT_TRUE(gradient_with(*recomputed, true).equal(first));
  const at::Tensor second = gradient_with(*kept, false);
  EXPECT_FALSE(second.equal(first));  // drawn again
  EXPECT_TRUE(gradient_with(*recomputed, true).equal(second));
}

}  // namespace
}  // namespace rl
