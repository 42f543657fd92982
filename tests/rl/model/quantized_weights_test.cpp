#include "rl/model/quantized_weights.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "fixtures.h"
#include "rl/model/transformer.h"

namespace rl {
namespace {

ModelConfig quantized_config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 72;  // a group and a bit
  config.layers = 2;
  config.heads = 6;
  config.kv_heads = 2;
  config.head_dim = 12;
  config.intermediate_size = 130;
  config.vocab_size = 200;
  config.max_position_embeddings = 64;
  config.initializer_range = 0.1F;
  return config;
}

std::unique_ptr<QuantizedWeights> quantize(const ModelConfig& config, const Parameters& parameters,
                                           kernel::ThreadPool& pool) {
  auto weights = QuantizedWeights::create(config, parameters);
  EXPECT_TRUE(weights.ok()) << weights.status().to_string();
  (*weights)->refresh(pool);
  return std::move(*weights);
}

PackedBatch one_sequence(std::int32_t tokens) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < tokens; ++i) ids.push_back(i * 37 % 61);
  PackedBatch batch;
  batch.append(ids, 1);
  return batch;
}

std::vector<float> logprobs(const Transformer& model, const PackedBatch& batch,
                            const QuantizedWeights* quantized = nullptr) {
  auto scored = model.token_logprobs(batch, {}, {.quantized = quantized});
  EXPECT_TRUE(scored.ok()) << scored.status().to_string();
  const float* values = scored->logprobs_N.const_data_ptr<float>();
  return {values, values + scored->logprobs_N.numel()};
}

TEST(QuantizedWeights, FindsRowsOfLinearLayersAlone) {
  const ModelConfig config = quantized_config();
  kernel::ThreadPool pool(1);
  const Parameters parameters = Parameters::random(config, 1);
  const auto weights = quantize(config, parameters, pool);
  const std::string up = "model.layers.1.mlp.up_proj.weight";
  const float* first = parameters.data(up);
  const kernel::Int8Weight all = weights->find(first, 130, 72);
  ASSERT_TRUE(all);
  const kernel::Int8Weight rest =
      weights->find(first + 10 * 72, 120, 72);  // a part, as fused layers are read
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest.values, all.from(10, 72).values);
  EXPECT_EQ(rest.scales, all.from(10, 72).scales);
  EXPECT_FALSE(weights->find(first + 1, 1, 72));  // not the beginning of a row
  EXPECT_FALSE(weights->find(first, 131, 72));    // more than there is
  EXPECT_FALSE(weights->find(first, 72, 130));    // rows of another length
  EXPECT_FALSE(weights->find(parameters.data("model.embed_tokens.weight"), 200, 72));
  EXPECT_FALSE(weights->find(parameters.data("model.norm.weight"), 1, 72));
  EXPECT_TRUE(weights->find(parameters.data("lm_head.weight"), 200, 72));
  const Parameters other = parameters.clone();
  EXPECT_FALSE(weights->find(other.data(up), 130, 72));
}

TEST(QuantizedWeights, RoundsATiedEmbeddingAsTheOutputLayer) {
  ModelConfig config = quantized_config();
  config.tie_word_embeddings = true;
  kernel::ThreadPool pool(1);
  const Parameters parameters = Parameters::random(config, 1);
  EXPECT_TRUE(quantize(config, parameters, pool)
                  ->find(parameters.data("model.embed_tokens.weight"), 200, 72));
}

TEST(QuantizedWeights, LeavesRoutersAlone) {
  int routers = 0;
  for (const auto& folder : testing::model_cases()) {
    auto config = ModelConfig::load(folder);
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    const Parameters parameters = Parameters::random(*config, 1);
    auto weights = QuantizedWeights::create(*config, parameters);
    ASSERT_TRUE(weights.ok()) << weights.status().to_string();
    for (const ParameterSpec& spec : parameters.specs()) {
      const bool router = spec.name.ends_with("mlp.gate.weight") ||
                          spec.name.ends_with("block_sparse_moe.gate.weight");
      const bool expert = spec.name.find(".experts.") != std::string::npos;
      if (router || expert) {
        EXPECT_EQ(static_cast<bool>(
                      (*weights)->find(parameters.data(spec.name), spec.shape[0], spec.shape[1])),
                  expert)
            << folder << " " << spec.name;
      }
      routers += router ? 1 : 0;
    }
  }
  EXPECT_GT(routers, 0);
}

TEST(QuantizedWeights, TakesAQuarterAndTheScales) {
  const ModelConfig config = quantized_config();
  kernel::ThreadPool pool(1);
  const Parameters parameters = Parameters::random(config, 1);
  // 72 columns: 80 bytes and two scales a row; 130: 144 and three.
  const std::int64_t rows_of_72 = 2 * (72 + 24 + 24 + 72 + 130 + 130) + 200, rows_of_130 = 2 * 72;
  EXPECT_EQ(quantize(config, parameters, pool)->bytes(),
            rows_of_72 * (80 + 8) + rows_of_130 * (144 + 12));
}

TEST(QuantizedWeights, AreReadByPassesThatAreGivenThem) {
  const ModelConfig config = quantized_config();
  const Transformer model(config, Parameters::random(config, 2));
  const auto weights = quantize(config, model.parameters(), model.pool());
  const PackedBatch batch = one_sequence(40);
  const std::vector<float> plain = logprobs(model, batch);
  const std::vector<float> rounded = logprobs(model, batch, weights.get());
  EXPECT_NE(rounded, plain);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(rounded[i], plain[i], 0.1);
  EXPECT_EQ(logprobs(model, batch), plain);
}

// To the bit: a model whose weights are what the 8 bits stand for. Of every family, so that no
// layer is passed by.
TEST(QuantizedWeights, ComputeAsTheModelThatTheyStandFor) {
  int checked = 0;
  for (const auto& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto config = ModelConfig::load(folder);
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    // A tied embedding is itself where tokens are looked up, and rounded where they are scored.
    if (config->task != ModelTask::kCausalLm || config->tie_word_embeddings) continue;
    const Transformer model(*config, Parameters::random(*config, 3));
    const auto weights = quantize(*config, model.parameters(), model.pool());
    Parameters rounded = model.parameters().clone();
    int layers = 0;
    for (const ParameterSpec& spec : rounded.specs()) {
      if (spec.shape.size() != 2) continue;
      const kernel::Int8Weight copy =
          weights->find(model.parameters().data(spec.name), spec.shape[0], spec.shape[1]);
      if (!copy) continue;
      kernel::dequantize_int8(model.pool(), copy, spec.shape[0], spec.shape[1],
                              rounded.view(spec).mutable_data_ptr<float>());
      ++layers;
    }
    EXPECT_GE(layers, 4 * config->layers);
    const Transformer stood_for(*config, std::move(rounded));
    const PackedBatch batch = one_sequence(30);
    const std::vector<float> expected = logprobs(stood_for, batch);
    EXPECT_EQ(logprobs(model, batch, weights.get()), expected);
    ++checked;
  }
  EXPECT_GE(checked, 2);
}

}  // namespace
}  // namespace rl
