#include "rl/model/attend.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(AttentionShape, IsThatOfTheModelAndItsLayer) {
  ModelConfig config;
  config.heads = 8;
  config.kv_heads = 2;
  config.head_dim = 64;
  config.attention_softcap = 50.0;
  config.windows = {0, 128};
  const forward::AttentionShape shape = attention_shape(config, 1);
  EXPECT_EQ(shape.heads, 8);
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.softcap, 50.0F);
  EXPECT_EQ(shape.window, 128);
  EXPECT_EQ(attention_shape(config, 0).window, 0);
}

TEST(AttentionShape, ScoresAreScaledByTheHeadsUnlessTheModelSaysHow) {
  ModelConfig config;
  config.head_dim = 64;
  EXPECT_EQ(attention_shape(config, 0).scale, 0.125F);
  config.attention_scale = 0.25;
  EXPECT_EQ(attention_shape(config, 0).scale, 0.25F);
}

}  // namespace
}  // namespace rl
