#include "rl/model/stage_cuts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "rl/model/pass_parts.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/model/large_config.h"

namespace rl {
namespace {

RangeSet ranges_of(std::span<const ParameterSpec> specs, const std::string& name) {
  for (const ParameterSpec& spec : specs)
    if (spec.name == name) return {{spec.offset, spec.offset + spec.count}};
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

bool is_part(const RangeSet& part, const RangeSet& of) { return part.without(of).empty(); }

TEST(StageCuts, DealEachElementOfEveryFamilyToOneStage) {
  int tied = 0, untied = 0;
  for (const auto& folder : testing::model_cases()) {
    const auto config = ModelConfig::load(folder);
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    const std::vector<ParameterSpec> specs = parameter_layout(*config);
    for (int stages = 1; stages <= config->layers; ++stages) {
      SCOPED_TRACE(config->family + " in " + std::to_string(stages));
      const StageCuts cuts(*config, specs, stages);
      RangeSet all;
      std::int64_t sum = 0;
      for (int stage = 0; stage < stages; ++stage) {
        EXPECT_TRUE(is_part(cuts.differentiated(stage), cuts.used(stage)));
        all = all.united(cuts.differentiated(stage));
        sum += cuts.differentiated(stage).elements();
      }
      EXPECT_EQ(all, RangeSet({{0, arena_elements(specs)}}));
      EXPECT_EQ(sum, arena_elements(specs));
      ++(cuts.is_tied() ? tied : untied);
    }
  }
  EXPECT_GT(tied, 2);
  EXPECT_GT(untied, 2);
}

TEST(StageCuts, LayersThatDoNotDivideAreDealtUnevenly) {
  const ModelConfig config = testing::large_config(5);
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const StageCuts cuts(config, specs, 3);
  std::int64_t layers = 0;
  for (int stage = 0; stage < 3; ++stage) {
    EXPECT_GE(cuts.layers().size(stage), 1);
    EXPECT_LE(cuts.layers().size(stage), 2);
    layers += cuts.layers().size(stage);
  }
  EXPECT_EQ(layers, 5);
  EXPECT_EQ(cuts.begun_by(0), std::nullopt);
  EXPECT_EQ(cuts.begun_by(cuts.layers().first(2)), 2);
}

TEST(StageCuts, ChunksGoToTheStagesInTurn) {
  const ModelConfig config = testing::large_config(7);
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const StageCuts cuts(config, specs, 2, 3);
  EXPECT_EQ(cuts.stages(), 2);
  ASSERT_EQ(cuts.layers().ranks(), 6);
  EXPECT_EQ(cuts.layers_of(0) + cuts.layers_of(1), 7);
  std::int64_t layer = 0;
  for (int chunk = 0; chunk < 6; ++chunk) {
    EXPECT_EQ(cuts.stage_of(chunk), chunk % 2);
    EXPECT_EQ(cuts.begun_by(layer), chunk == 0 ? std::nullopt : std::optional(chunk));
    for (std::int64_t i = 0; i < cuts.layers().size(chunk); ++i, ++layer) {
      EXPECT_EQ(cuts.chunk_of(layer), chunk);
      const RangeSet weight =
          ranges_of(specs, "model.layers." + std::to_string(layer) + ".self_attn.q_proj.weight");
      EXPECT_TRUE(is_part(weight, cuts.used(chunk % 2)));
      EXPECT_TRUE(is_part(weight, cuts.differentiated(chunk % 2)));
      EXPECT_TRUE(cuts.used(1 - chunk % 2).intersected(weight).empty());
    }
  }
  EXPECT_EQ(layer, 7);
}

TEST(StageCuts, BothEndsReadATiedTableAndTheLastOneAddsUpItsGradient) {
  ModelConfig config = testing::large_config();
  config.tie_word_embeddings = true;
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const StageCuts cuts(config, specs, 2);
  ASSERT_TRUE(cuts.is_tied());
  const RangeSet table = ranges_of(specs, "model.embed_tokens.weight");
  EXPECT_TRUE(is_part(table, cuts.used(0)));
  EXPECT_TRUE(is_part(table, cuts.used(1)));
  EXPECT_TRUE(cuts.differentiated(0).intersected(table).empty());
  EXPECT_TRUE(is_part(table, cuts.differentiated(1)));
}

TEST(StageCuts, MoreStagesThanLayersAreRefused) {
  const PassSharing sharing{.stages = 3};
  EXPECT_EQ(check_pass_parts(testing::large_config(2), sharing).message(),
            "the model has 2 layers, which cannot be dealt to 3 stages of a pipeline");
  EXPECT_TRUE(check_pass_parts(testing::large_config(3), sharing).ok());
  const PassSharing chunks{.stages = 2, .chunks = 2};
  EXPECT_EQ(check_pass_parts(testing::large_config(3), chunks).message(),
            "the model has 3 layers, which cannot be dealt to 2 stages of a pipeline with 2 chunks "
            "each");
  EXPECT_TRUE(check_pass_parts(testing::large_config(4), chunks).ok());
}

}  // namespace
}  // namespace rl
