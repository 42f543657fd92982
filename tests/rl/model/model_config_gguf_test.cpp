#include "rl/model/model_config_gguf.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/rl/model/fake_gguf.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::FakeGguf;

// A small Llama, but for one of its keys.
void describe_llama(FakeGguf& file, const std::string& without = "") {
  if (without != "general.architecture") file.set_text("general.architecture", "llama");
  for (const auto& [key, value] : {std::pair("llama.embedding_length", 12),
                                   {"llama.block_count", 2},
                                   {"llama.attention.head_count", 2},
                                   {"llama.attention.head_count_kv", 1},
                                   {"llama.feed_forward_length", 20},
                                   {"llama.context_length", 32}}) {
    if (key != without) file.set_integer(key, value);
  }
  file.set_number("llama.attention.layer_norm_rms_epsilon", 1e-5);
  file.set_tensor("token_embd.weight", std::vector<float>(17));
}

ModelConfig config_from(const FakeGguf& file) {
  const auto config = model_config_from_gguf(file);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? *config : ModelConfig();
}

TEST(ModelConfigGguf, SizesAreThoseOfTheKeys) {
  FakeGguf file;
  describe_llama(file);
  const ModelConfig config = config_from(file);
  EXPECT_EQ(config.family, "llama");
  EXPECT_EQ(config.hidden_size, 12);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 6) << "of the hidden size, where no key says";
  EXPECT_EQ(config.intermediate_size, 20);
  EXPECT_EQ(config.max_position_embeddings, 32);
  EXPECT_EQ(config.norm_eps, 1e-5F);
}

TEST(ModelConfigGguf, TheTablesSayWhatNoKeyDoes) {
  FakeGguf tied, own, padded;
  describe_llama(tied);
  EXPECT_EQ(config_from(tied).vocab_size, 17);
  EXPECT_TRUE(config_from(tied).tie_word_embeddings);
  describe_llama(own);
  own.set_tensor("output.weight", std::vector<float>(17));
  EXPECT_FALSE(config_from(own).tie_word_embeddings);
  describe_llama(padded);
  padded.set_integer("llama.vocab_size", 16);
  EXPECT_EQ(config_from(padded).vocab_size, 16) << "a key counts more than the table";
}

// The file has it in 32 bits, the folder that it was made of as a decimal.
TEST(ModelConfigGguf, AFrequencyIsTheDecimalThatItWasMadeOf) {
  FakeGguf file;
  describe_llama(file);
  file.set_number("llama.rope.freq_base", 1000000.1F);
  EXPECT_EQ(config_from(file).rope.theta, 1000000.1);
}

TEST(ModelConfigGguf, AMissingKeyIsNamed) {
  for (const char* key :
       {"general.architecture", "llama.embedding_length", "llama.block_count",
        "llama.attention.head_count", "llama.feed_forward_length", "llama.context_length"}) {
    FakeGguf file;
    describe_llama(file, key);
    support::expect_failure(model_config_from_gguf(file).status(), ErrorCode::kNotFound,
                            {"m.gguf", key});
  }
  FakeGguf grouped;
  describe_llama(grouped, "llama.attention.head_count_kv");
  EXPECT_EQ(config_from(grouped).kv_heads, 2) << "as many as queries have";
}

TEST(ModelConfigGguf, OtherModelsAreRefusedByName) {
  FakeGguf other;
  other.set_text("general.architecture", "rwkv6");
  support::expect_failure(model_config_from_gguf(other).status(), ErrorCode::kUnimplemented,
                          {"m.gguf", "\"rwkv6\"", "llama"});
  for (const char* key :
       {"llama.expert_count", "llama.rope.dimension_count", "llama.attention.value_length"}) {
    FakeGguf file;
    describe_llama(file);
    file.set_integer(key, 4);
    support::expect_failure(model_config_from_gguf(file).status(), ErrorCode::kUnimplemented,
                            {"m.gguf", key});
  }
  FakeGguf usual;
  describe_llama(usual);
  usual.set_integer("llama.rope.dimension_count", 6);
  usual.set_integer("llama.attention.value_length", 6);
  EXPECT_EQ(config_from(usual).head_dim, 6);
}

}  // namespace
}  // namespace rl
