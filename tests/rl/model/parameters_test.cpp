#include "rl/model/parameters.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <string>

#include "rl/weights/weight_source.h"
#include "tests/rl/model/memory_source.h"

namespace rl {
namespace {

using testing::MemorySource;

ModelConfig tied_model() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 12;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 6;
  config.intermediate_size = 20;
  config.vocab_size = 17;
  config.max_position_embeddings = 32;
  return config;
}

void add_parameters(MemorySource& source, const ModelConfig& config) {
  for (const ParameterSpec& spec : parameter_layout(config)) source.add(spec.name, spec.shape);
}

TEST(Parameters, LayoutIsAlignedAndWithoutOverlap) {
  const ModelConfig config = tied_model();
  std::int64_t end = 0;
  for (const ParameterSpec& spec : parameter_layout(config)) {
    EXPECT_EQ(spec.offset % 16, 0) << spec.name;
    EXPECT_GE(spec.offset, end) << spec.name;
    end = spec.offset + spec.count;
  }
  const Parameters parameters = Parameters::random(config, 1);
  EXPECT_GE(parameters.arena_size(), end);
  EXPECT_LT(parameters.count(), parameters.arena_size());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parameters.data("model.norm.weight")) % 64, 0U);
}

TEST(Parameters, GapsAreZeroAndViewsShareTheArena) {
  const Parameters parameters = Parameters::random(tied_model(), 1);
  double inside = 0;
  for (const ParameterSpec& spec : parameters.specs())
    inside += parameters.view(spec).abs().sum().item<double>();
  EXPECT_NEAR(parameters.arena().abs().sum().item<double>(), inside, 1e-3);
  parameters.view("model.norm.weight").fill_(7.0);
  EXPECT_EQ(*parameters.data("model.norm.weight"), 7.0F);
}

TEST(Parameters, EqualSeedsGiveEqualBits) {
  const Parameters a = Parameters::random(tied_model(), 5);
  const Parameters b = Parameters::random(tied_model(), 5);
  const Parameters c = Parameters::random(tied_model(), 6);
  EXPECT_TRUE(a.arena().equal(b.arena()));
  EXPECT_FALSE(a.arena().equal(c.arena()));
  EXPECT_TRUE(a.clone().arena().equal(a.arena()));
  EXPECT_EQ(a.view("model.norm.weight").min().item<float>(), 1.0F);
  EXPECT_NEAR(a.view("model.layers.0.mlp.up_proj.weight").std().item<double>(), 0.02, 0.005);
}

TEST(Parameters, LoadsEveryTensorToItsPlace) {
  const ModelConfig config = tied_model();
  MemorySource source;
  add_parameters(source, config);
  const auto parameters = Parameters::load(config, source, /*gguf_names=*/false);
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  float base = 0;
  for (const ParameterSpec& spec : parameters->specs()) {
    EXPECT_EQ(parameters->data(spec.name)[0], base) << spec.name;
    EXPECT_EQ(parameters->data(spec.name)[spec.count - 1],
              base + static_cast<float>(spec.count - 1))
        << spec.name;
    base += 1000.0F;
  }
}

TEST(Parameters, MissingSurplusAndMisshapenAreNamedTogether) {
  const ModelConfig config = tied_model();
  MemorySource source;
  add_parameters(source, config);
  source.remove("model.norm.weight");
  source.remove("lm_head.weight");
  source.add("lm_head.weight", {17, 13});
  source.add("model.layers.0.self_attn.q_proj.bias", {12});
  const auto parameters = Parameters::load(config, source, /*gguf_names=*/false);
  ASSERT_FALSE(parameters.ok());
  EXPECT_EQ(parameters.status().code(), runtime::ErrorCode::kInvalidArgument);
  const std::string& message = parameters.status().message();
  EXPECT_NE(message.find("missing model.norm.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("lm_head.weight [17, 13] instead of [17, 12]"), std::string::npos)
      << message;
  EXPECT_NE(message.find("unexpected model.layers.0.self_attn.q_proj.bias"), std::string::npos)
      << message;
}

TEST(Parameters, NamesMayLackTheirFirstPart) {
  const ModelConfig config = tied_model();
  MemorySource whole, base;
  for (const ParameterSpec& spec : parameter_layout(config)) {
    whole.add(spec.name, spec.shape);
    base.add(spec.name.starts_with("model.") ? spec.name.substr(6) : spec.name, spec.shape);
  }
  base.add("layers.0.self_attn.rotary_emb.inv_freq",
           {3});  // a buffer that may be there under either name
  const auto expected = Parameters::load(config, whole, /*gguf_names=*/false);
  const auto parameters = Parameters::load(config, base, /*gguf_names=*/false);
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  EXPECT_TRUE(parameters->arena().equal(expected->arena()));
  base.remove("norm.weight");
  EXPECT_NE(Parameters::load(config, base, false).status().message().find("missing norm.weight"),
            std::string::npos);
}

// tests/rl/weights/pytorch/make_files.py made the file of the fixture's numbers with torch.save.
TEST(Parameters, OptFromPytorchIsEqualToSafetensors) {
  const std::filesystem::path fixture = STARLING_SOURCE_DIR "/tests/fixtures/models/opt";
  const auto config = ModelConfig::load(fixture);
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto expected = Parameters::load(*config, fixture);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  const auto parameters =
      Parameters::load(*config, STARLING_SOURCE_DIR "/tests/rl/model/opt_pytorch");
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  EXPECT_TRUE(parameters->arena().equal(
      expected->arena()));  // so that all that is computed from it is equal
}

TEST(Parameters, TiedWeightsMayBeThereTwice) {
  ModelConfig config = tied_model();
  MemorySource source;
  add_parameters(source, config);
  config.tie_word_embeddings = true;
  const auto contradicting = Parameters::load(config, source, /*gguf_names=*/false);
  EXPECT_EQ(contradicting.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(contradicting.status().message().find("lm_head.weight differs from the embedding"),
            std::string::npos)
      << contradicting.status().message();
  source.alias("lm_head.weight", "model.embed_tokens.weight");
  const auto parameters = Parameters::load(config, source, /*gguf_names=*/false);
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  EXPECT_EQ(parameters->find("lm_head.weight"), nullptr);
}

TEST(Parameters, ATiedOutputLayerMayStandForTheEmbedding) {
  ModelConfig config = tied_model();
  config.tie_word_embeddings = true;
  MemorySource source;
  add_parameters(source, config);
  const auto expected = Parameters::load(config, source, /*gguf_names=*/false);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  source.rename("model.embed_tokens.weight", "lm_head.weight");
  const auto parameters = Parameters::load(config, source, /*gguf_names=*/false);
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  EXPECT_TRUE(parameters->arena().equal(expected->arena()));
  source.remove("lm_head.weight");
  const auto neither = Parameters::load(config, source, /*gguf_names=*/false);
  EXPECT_NE(neither.status().message().find("model.embed_tokens.weight"), std::string::npos)
      << neither.status().message();
}

TEST(Parameters, GgufRowsOfQueriesAndKeysAreUnpermuted) {
  const ModelConfig config = tied_model();
  MemorySource source;
  source.add("token_embd.weight", {17, 12});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    source.add(block + "attn_norm.weight", {12});
    source.add(block + "attn_q.weight", {12, 12});
    source.add(block + "attn_k.weight", {6, 12});
    source.add(block + "attn_v.weight", {6, 12});
    source.add(block + "attn_output.weight", {12, 12});
    source.add(block + "ffn_norm.weight", {12});
    source.add(block + "ffn_gate.weight", {20, 12});
    source.add(block + "ffn_up.weight", {20, 12});
    source.add(block + "ffn_down.weight", {12, 20});
  }
  source.add("output_norm.weight", {12});
  source.add("output.weight", {17, 12});
  const auto parameters = Parameters::load(config, source, /*gguf_names=*/true);
  ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
  // The file holds the rows of a head of six as 0 3 1 4 2 5. Its row 2i is our row i, and its row
  // 2i + 1 is our row 3 + i.
  const float* q = parameters->data("model.layers.0.self_attn.q_proj.weight");
  const std::vector<int> order = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (std::size_t row = 0; row < order.size(); ++row) {
    EXPECT_EQ(q[row * 12], 2000.0F + 12.0F * static_cast<float>(order[row])) << row;
    EXPECT_EQ(q[row * 12 + 11], 2000.0F + 12.0F * static_cast<float>(order[row]) + 11.0F) << row;
  }
  const float* v = parameters->data("model.layers.0.self_attn.v_proj.weight");
  for (int row = 0; row < 6; ++row)
    EXPECT_EQ(v[row * 12], 4000.0F + 12.0F * static_cast<float>(row));
}

}  // namespace
}  // namespace rl
