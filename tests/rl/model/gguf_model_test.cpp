// Models from GGUF files that llama.cpp's own package wrote compute what they compute from
// safetensors.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "rl/model/transformer.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

TEST(GgufModel, EqualsItsSafetensorsToTheBit) {
  for (const std::string name : {"llama", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    auto gguf = Transformer::load(
        std::filesystem::path(STARLING_SOURCE_DIR "/tests/fixtures/gguf") / (name + ".gguf"));
    auto folder = Transformer::load(
        std::filesystem::path(STARLING_SOURCE_DIR "/tests/fixtures/models") / name);
    ASSERT_TRUE(gguf.ok()) << gguf.status().to_string();
    ASSERT_TRUE(folder.ok()) << folder.status().to_string();
    EXPECT_EQ((*gguf)->config().family, name);
    EXPECT_TRUE((*gguf)->parameters().arena().equal((*folder)->parameters().arena()));
    PackedBatch batch;
    batch.append(std::vector<std::int32_t>{3, 14, 15, 9, 26, 5, 35, 8, 97});
    const auto one = (*gguf)->logits(batch);
    const auto other = (*folder)->logits(batch);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_TRUE(one->equal(*other));
  }
}

}  // namespace
}  // namespace rl
