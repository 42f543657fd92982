#include "rl/model/tensor_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "rl/model/family.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

std::vector<ModelConfig> all_families() {
  std::vector<ModelConfig> configs;
  for (const auto& folder : testing::model_cases()) {
    auto config = ModelConfig::load(folder);
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    configs.push_back(std::move(*config));
  }
  return configs;
}

// Of every parameter each element is differentiated by one rank, which reads it.
void expect_dealt_once(const ModelConfig& config, int ranks, PassCut cut) {
  SCOPED_TRACE(config.family + " on " + std::to_string(ranks) + ", cut " +
               std::to_string(static_cast<int>(cut)));
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  RangeSet parameters;
  for (const ParameterSpec& spec : specs)
    parameters = parameters.united({{spec.offset, spec.offset + spec.count}});
  const TensorCuts cuts(config, plan_of(config), ranks, cut);
  RangeSet all;
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const RangeSet part = cuts.differentiated(specs, rank), used = cuts.used(specs, rank);
    EXPECT_EQ(part.without(used), RangeSet());
    if (cut == PassCut::kRows) {
      EXPECT_EQ(used, parameters);
    }
    sum += part.elements();
    all = all.united(part);
  }
  EXPECT_EQ(all, parameters);
  EXPECT_EQ(sum, parameters.elements());
}

TEST(TensorCuts, DealEachElementOfEveryFamilyToOneRank) {
  const auto configs = all_families();
  ASSERT_GT(configs.size(), 20u);
  int mixtures = 0;
  for (const ModelConfig& config : configs) {
    for (int ranks = 1; ranks <= config.kv_heads; ++ranks) {
      for (const PassCut cut : {PassCut::kOutputs, PassCut::kRows, PassCut::kRowsAndExperts}) {
        if (check_sharing_ranks(config, ranks, cut).ok()) expect_dealt_once(config, ranks, cut);
      }
    }
    if (config.moe) ++mixtures;
  }
  EXPECT_GT(mixtures, 2);
}

// An expert's weights are read and differentiated by one rank, and nearly as many experts by each.
TEST(TensorCuts, AnExpertIsOnOneRank) {
  for (const ModelConfig& config : all_families()) {
    if (!config.moe) continue;
    SCOPED_TRACE(config.family);
    const ModelPlan plan = plan_of(config);
    const std::vector<ParameterSpec> specs = parameter_layout(config);
    const TensorCuts cuts(config, plan, 2, PassCut::kRowsAndExperts);
    std::array<std::int64_t, 2> experts = {0, 0};
    for (const LayerPlan& layer : plan.layers) {
      if (!layer.experts) continue;
      for (const MlpPlan& expert : layer.experts->experts) {
        const auto cut = cuts.of(expert.down);
        ASSERT_TRUE(cut.has_value());
        EXPECT_EQ(cut->size(0) + cut->size(1), expert.down.rows);
        EXPECT_TRUE(cut->size(0) == 0 || cut->size(1) == 0);
        ++experts[cut->size(0) == 0 ? 1 : 0];
        const ParameterSpec& spec = specs[static_cast<std::size_t>(expert.down.weight)];
        const std::int64_t width = spec.count / spec.shape.front();
        const std::int64_t begin = spec.offset + expert.down.first * width;
        const RangeSet own({{begin, begin + expert.down.rows * width}});
        const int other = cut->size(0) == 0 ? 0 : 1;
        EXPECT_EQ(cuts.used(specs, other).intersected(own), RangeSet());
        EXPECT_EQ(cuts.differentiated(specs, 1 - other).intersected(own), own);
      }
    }
    EXPECT_GT(experts[0], 0);
    EXPECT_LE(experts[0] - experts[1], config.layers);
    EXPECT_GE(experts[0], experts[1]);
  }
}

// Of what is multiplied no rank has more than its part: a row of each layer more, or a head.
TEST(TensorCuts, DealProductsEvenly) {
  for (const ModelConfig& config : all_families()) {
    const ModelPlan plan = plan_of(config);
    const std::vector<ParameterSpec> specs = parameter_layout(config);
    for (int ranks = 2; ranks <= config.kv_heads; ++ranks) {
      SCOPED_TRACE(config.family + " on " + std::to_string(ranks));
      const TensorCuts cuts(config, plan, ranks);
      const auto expect_even = [&](const LinearPlan& layer, std::int64_t things) {
        if (!layer) return;
        const auto cut = cuts.of(layer);
        ASSERT_TRUE(cut.has_value());
        EXPECT_EQ(cut->total(), layer.rows);
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_LE(cut->size(rank), (things + ranks - 1) / ranks * (layer.rows / things));
          EXPECT_GE(cut->size(rank), things / ranks * (layer.rows / things));
        }
      };
      for (const LayerPlan& layer : plan.layers) {
        if (!config.latent)
          for (const LinearPlan* heads :
               {&layer.attention.q, &layer.attention.k, &layer.attention.v})
            expect_even(*heads, config.kv_heads);
        expect_even(layer.attention.o, layer.attention.o.rows);
        for (const LinearPlan* part : {&layer.mlp.gate, &layer.mlp.up, &layer.mlp.down})
          expect_even(*part, part->rows);
        if (layer.experts) {
          EXPECT_FALSE(cuts.of(layer.experts->router).has_value());
        }
      }
      EXPECT_EQ(cuts.vocabulary().total(), config.vocab_size);
    }
  }
}

TEST(TensorCuts, HeadsAreNotCut) {
  ModelConfig config;
  config.kv_heads = 3;
  EXPECT_TRUE(check_sharing_ranks(config, 3).ok());
  const runtime::Status status = check_sharing_ranks(config, 4);
  EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the model has 3 key heads, which cannot be dealt to 4 ranks that share each pass");
  EXPECT_EQ(check_sharing_ranks(config, 2, PassCut::kRowsAndExperts).message(),
            "the model has no experts to be dealt to 2 ranks");
}

}  // namespace
}  // namespace rl
