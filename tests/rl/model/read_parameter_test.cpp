#include "rl/model/read_parameter.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/rl/model/memory_source.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using testing::MemorySource;

ModelConfig llama_of_two_heads() {
  ModelConfig config;
  config.family = "llama";
  config.heads = 2;
  config.kv_heads = 1;
  return config;
}

// Larger than what is turned at a time, both ways, and no multiple of it.
TEST(ReadParameter, AWeightThatIsStoredTheOtherWayRoundIsTurned) {
  constexpr std::int64_t rows = 70, columns = 133;
  const ModelConfig config = llama_of_two_heads();
  ModelPlan plan;
  plan.parameters = {{.name = "a.weight", .shape = {rows, columns}, .transposed = true},
                     {.name = "a.bias", .shape = {rows}}};
  MemorySource source;
  source.add("a.weight", {columns, rows});
  source.add("a.bias", {rows});
  const ParameterReader reader(config, plan, source, /*gguf_names=*/false);
  EXPECT_TRUE(reader.check().ok()) << reader.check().to_string();
  EXPECT_FALSE(reader.lies_alike(plan.parameters[0])) << "no stretch of it can be read alone";
  EXPECT_TRUE(reader.lies_alike(plan.parameters[1]));
  std::vector<float> out(rows * columns);
  ASSERT_TRUE(reader.read_whole(plan.parameters[0], out).ok());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      ASSERT_EQ(out[static_cast<std::size_t>(row * columns + column)],
                static_cast<float>(column * rows + row))
          << row << ", " << column;
    }
  }
}

// Halves of a head's rows are mixed in GGUF files alone, and with one row a head there are none.
TEST(ReadParameter, OnlyMixedRowsAreReadAsAWhole) {
  const ModelConfig config = llama_of_two_heads();
  ModelPlan plan;
  plan.parameters = {
      {.name = "m.q", .shape = {4, 3}, .gguf_name = "q", .gguf_rows = GgufRows::kUnpermuteQueries},
      {.name = "m.k", .shape = {1, 3}, .gguf_name = "k", .gguf_rows = GgufRows::kUnpermuteKeys},
      {.name = "m.v", .shape = {4, 3}, .gguf_name = "v"}};
  MemorySource source;
  const ParameterReader of_gguf(config, plan, source, /*gguf_names=*/true);
  EXPECT_FALSE(of_gguf.lies_alike(plan.parameters[0]));
  EXPECT_TRUE(of_gguf.lies_alike(plan.parameters[1]));
  EXPECT_TRUE(of_gguf.lies_alike(plan.parameters[2]));
  const ParameterReader of_folder(config, plan, source, /*gguf_names=*/false);
  EXPECT_TRUE(of_folder.lies_alike(plan.parameters[0]));
}

TEST(ReadParameter, AHeadMayLackAndAnOutputLayerOfTheBaseMayBeThere) {
  const ModelConfig config = llama_of_two_heads();
  ModelPlan plan;
  plan.parameters = {{.name = "m.weight", .shape = {2, 3}},
                     {.name = "score.weight", .shape = {1, 3}, .of_head = true}};
  plan.unused = {"lm_head.weight"};
  MemorySource source;
  source.add("m.weight", {2, 3});
  source.add("lm_head.weight", {5, 3});
  const ParameterReader reader(config, plan, source, /*gguf_names=*/false);
  EXPECT_TRUE(reader.check(/*heads_may_lack=*/true).ok());
  EXPECT_TRUE(reader.is_there(plan.parameters[0]));
  EXPECT_FALSE(reader.is_there(plan.parameters[1]));
  support::expect_failure(reader.check(), runtime::ErrorCode::kInvalidArgument,
                          {"missing score.weight"});
  source.add("other.weight", {1});
  support::expect_failure(reader.check(/*heads_may_lack=*/true),
                          runtime::ErrorCode::kInvalidArgument, {"unexpected other.weight"});
}

}  // namespace
}  // namespace rl
