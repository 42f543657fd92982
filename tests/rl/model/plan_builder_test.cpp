#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/model/model_plan.h"

namespace rl {
namespace {

using Init = FamilyParameter::Init;
using Shape = std::vector<std::int64_t>;

ModelConfig planned_config() {
  ModelConfig config;
  config.hidden_size = 8;
  config.vocab_size = 32;
  return config;
}

TEST(PlanBuilder, ALinearLayersBiasFollowsItsWeight) {
  const ModelConfig config = planned_config();
  PlanBuilder builder(config);
  const LinearPlan plain = builder.linear("plain", 3, 8);
  const LinearPlan biased = builder.linear(
      "biased", 5, 8,
      {.bias = true, .transposed = true, .gguf = "blk", .gguf_rows = GgufRows::kUnpermuteKeys});
  EXPECT_TRUE(plain);
  EXPECT_EQ(plain.bias, kNoParameter);
  EXPECT_EQ(biased.rows, 5);
  EXPECT_EQ(biased.bias, biased.weight + 1);
  ASSERT_EQ(builder.plan.parameters.size(), 3u);
  const FamilyParameter &weight = builder.plan.parameters[1], &bias = builder.plan.parameters[2];
  EXPECT_EQ(builder.plan.parameters[0].gguf_name, "") << "GGUF files lack it";
  EXPECT_EQ(weight.name, "biased.weight");
  EXPECT_EQ(weight.shape, (Shape{5, 8}));
  EXPECT_TRUE(weight.transposed);
  EXPECT_EQ(weight.gguf_name, "blk.weight");
  EXPECT_EQ(bias.name, "biased.bias");
  EXPECT_EQ(bias.shape, (Shape{5}));
  EXPECT_FALSE(bias.transposed);
  EXPECT_EQ(bias.init, Init::kZeros);
  EXPECT_EQ(bias.gguf_name, "blk.bias");
  EXPECT_EQ(bias.gguf_rows, GgufRows::kUnpermuteKeys) << "its elements move with the rows";
}

TEST(PlanBuilder, NormsAreThoseOfTheModel) {
  const auto built = [](NormKind kind, bool rms) {
    ModelConfig config = planned_config();
    config.norm = kind;
    PlanBuilder builder(config);
    (void)(rms ? builder.rms_norm("norm", 8, "n") : builder.norm("norm", 8, "n"));
    return builder.plan.parameters;
  };
  EXPECT_EQ(built(NormKind::kRms, false).size(), 1u);
  EXPECT_EQ(built(NormKind::kRms, false)[0].init, Init::kOnes);
  EXPECT_EQ(built(NormKind::kRmsPlusOne, false)[0].init, Init::kZeros) << "one is added to it";
  const std::vector<FamilyParameter> layer = built(NormKind::kLayer, false);
  ASSERT_EQ(layer.size(), 2u);
  EXPECT_EQ(layer[1].name, "norm.bias");
  EXPECT_EQ(layer[1].init, Init::kZeros);
  EXPECT_EQ(layer[1].gguf_name, "n.bias");
  EXPECT_EQ(built(NormKind::kLayer, true).size(), 1u) << "an RMS norm whatever the model's are";
}

TEST(PlanBuilder, TheOutputLayerIsItsOwnTheEmbeddingsOrNotThere) {
  const auto built = [](bool tied, ModelTask task) {
    ModelConfig config = planned_config();
    config.tie_word_embeddings = tied;
    config.task = task;
    PlanBuilder builder(config);
    builder.embedding("embed", "token_embd");
    builder.lm_head("lm_head", "output");
    return builder.plan;
  };
  const ModelPlan own = built(false, ModelTask::kCausalLm);
  EXPECT_EQ(own.parameters.size(), 2u);
  EXPECT_EQ(own.parameters[1].name, "lm_head.weight");
  EXPECT_NE(own.lm_head.weight, own.embedding);
  const ModelPlan tied = built(true, ModelTask::kCausalLm);
  EXPECT_EQ(tied.parameters.size(), 1u);
  EXPECT_EQ(tied.lm_head.weight, tied.embedding);
  EXPECT_EQ(tied.lm_head.rows, 32);
  const ModelPlan classifier = built(false, ModelTask::kSequenceClassification);
  EXPECT_EQ(classifier.parameters.size(), 1u);
  EXPECT_FALSE(classifier.lm_head);
  EXPECT_EQ(classifier.unused, (std::vector<std::string>{"lm_head.weight", "output.weight"}));
}

}  // namespace
}  // namespace rl
