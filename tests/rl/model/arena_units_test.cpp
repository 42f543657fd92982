#include "rl/model/arena_units.h"

#include <gtest/gtest.h>

#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

TEST(ArenaUnits, AreTheArenaOnceInEveryFamily) {
  for (const std::filesystem::path& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    const auto config = ModelConfig::load(folder);
    if (!config.ok()) continue;
    const std::vector<ParameterSpec> specs = parameter_layout(*config);
    const std::vector<ArenaUnit> units = arena_units(*config, specs);
    EXPECT_EQ(std::ssize(units), config->layers + 2);
    RangeSet all;
    std::int64_t sum = 0;
    for (const ArenaUnit& unit : units) {
      sum += unit.own.elements();
      all = all.united(unit.own);
    }
    EXPECT_EQ(sum, arena_elements(specs));
    EXPECT_EQ(all, (RangeSet{{0, arena_elements(specs)}}));
    for (const ParameterSpec& spec : specs) {
      const bool of_layer = spec.name.find("layers.1.") != std::string::npos ||
                            spec.name.find("h.1.") != std::string::npos;
      EXPECT_EQ(units[2].own.contains({spec.offset, spec.offset + spec.count}), of_layer)
          << spec.name;
    }
  }
}

TEST(ArenaUnits, TiedEmbeddingsAreReadByTheOutputLayer) {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 16;
  config.layers = 1;
  config.heads = config.kv_heads = 2;
  config.head_dim = 8;
  config.intermediate_size = 32;
  config.vocab_size = 40;
  for (const bool tied : {false, true}) {
    config.tie_word_embeddings = tied;
    const std::vector<ArenaUnit> units = arena_units(config, parameter_layout(config));
    EXPECT_EQ(units.back().read == units.back().own, !tied);
    EXPECT_EQ(units.back().read.contains(units.front().own.ranges().front()), tied);
    EXPECT_EQ(units[1].name, "layer 0");
  }
}

}  // namespace
}  // namespace rl
