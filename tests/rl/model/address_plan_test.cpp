#include "rl/model/address_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "rl/model/family.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

// Of each family: pieces cover each parameter once and lie apart.
TEST(AddressPlan, HasEachElementOfEachParameterOnce) {
  int models = 0;
  for (const auto& folder : std::filesystem::directory_iterator(testing::fixtures() / "models")) {
    if (!std::filesystem::exists(folder.path() / "config.json")) continue;
    const auto config = ModelConfig::load(folder.path());
    if (!config.ok()) continue;  // families that other tests refuse
    ++models;
    const ModelPlan plan = plan_of(*config);
    const AddressSpace space = address_space(*config, plan);
    std::map<std::int64_t, std::vector<int>> seen;
    std::int64_t end = 0;
    for (const Piece& piece : space.pieces()) {
      const std::vector<std::int64_t>& shape =
          plan.parameters[static_cast<std::size_t>(piece.parameter)].shape;
      std::int64_t columns = 1, elements = shape.front();
      for (std::size_t i = 1; i < shape.size(); ++i) columns *= shape[i];
      elements *= columns;
      std::vector<int>& count = seen[piece.parameter];
      count.resize(static_cast<std::size_t>(elements));
      for (std::int64_t row = 0; row < piece.part.rows; ++row)
        for (std::int64_t column = 0; column < piece.part.columns; ++column)
          ++count[static_cast<std::size_t>((piece.part.first_row + row) * columns +
                                           piece.part.first_column + column)];
      ASSERT_GE(piece.at.begin, end) << folder.path();
      ASSERT_EQ(piece.at.size(), piece.part.elements());
      ASSERT_EQ(piece.at.begin % kArenaAlignment, 0);
      end = piece.at.end;
    }
    ASSERT_LE(end, space.elements());
    ASSERT_EQ(seen.size(), plan.parameters.size()) << folder.path();
    for (const auto& [parameter, count] : seen) {
      for (const int times : count)
        ASSERT_EQ(times, 1) << folder.path() << " "
                            << plan.parameters[static_cast<std::size_t>(parameter)].name;
    }
  }
  EXPECT_GT(models, 10);
}

// Heads are never cut: a block of queries belongs to the block of its keys.
TEST(AddressPlan, CutsQueriesAndKeysAtHeads) {
  const auto config = ModelConfig::load(testing::fixtures() / "models" / "llama");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const ModelPlan plan = plan_of(*config);
  const AddressSpace space = address_space(*config, plan);
  ASSERT_EQ(config->kv_heads % space.blocks(), 0);
  for (const Piece& piece : space.pieces()) {
    const AttentionPlan& attention = plan.layers.front().attention;
    if (piece.parameter == attention.q.weight) {
      EXPECT_EQ(piece.part.rows, config->query_size() / space.blocks());
      EXPECT_EQ(piece.part.first_row, piece.block * piece.part.rows);
    }
    if (piece.parameter == attention.k.weight) EXPECT_EQ(piece.part.rows % config->head_dim, 0);
    if (piece.parameter == attention.o.weight) {
      EXPECT_EQ(piece.part.columns, config->query_size() / space.blocks());
      EXPECT_EQ(piece.part.rows, config->hidden_size);
    }
  }
}

TEST(AddressPlan, BlocksFollowFromTheKeyHeads) {
  for (const auto& [heads, blocks] : std::map<std::int64_t, int>{
           {8, 8}, {16, 8}, {4, 4}, {2, 2}, {3, 3}, {6, 2}, {1, 1}, {11, 1}}) {
    ModelConfig config;
    config.kv_heads = heads;
    EXPECT_EQ(tensor_blocks(config), blocks) << heads;
  }
}

}  // namespace
}  // namespace rl
