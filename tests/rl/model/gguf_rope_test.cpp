#include "rl/model/gguf_rope.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "rl/model/rope.h"
#include "tests/rl/model/fake_gguf.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using testing::FakeGguf;

json scaling_of(const FakeGguf& file) {
  json out = json::object();
  const runtime::Status status = read_gguf_rope_scaling(file, "llama.", 8192, out);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return out.contains("rope_scaling") ? out["rope_scaling"] : json();
}

TEST(GgufRope, AFactorWithoutATypeIsLinear) {
  FakeGguf nothing, old, both, none;
  EXPECT_TRUE(scaling_of(nothing).is_null());
  old.set_number("llama.rope.scale_linear", 4.0);
  EXPECT_EQ(scaling_of(old), (json{{"rope_type", "linear"}, {"factor", 4.0}}));
  both.set_number("llama.rope.scale_linear", 4.0);
  both.set_number("llama.rope.scaling.factor", 2.0);
  EXPECT_EQ(scaling_of(both)["factor"], 2.0);
  none.set_number("llama.rope.scaling.factor", 4.0);
  none.set_text("llama.rope.scaling.type", "none");
  EXPECT_TRUE(scaling_of(none).is_null());
}

TEST(GgufRope, YarnsTemperatureIsTheUsualOneTimesTheFiles) {
  FakeGguf file;
  file.set_text("llama.rope.scaling.type", "yarn");
  file.set_number("llama.rope.scaling.factor", 4.0);
  json expected = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 8192}};
  EXPECT_EQ(scaling_of(file), expected) << "of the context that the model has";
  file.set_integer("llama.rope.scaling.original_context_length", 2048);
  file.set_number("llama.rope.scaling.yarn_beta_fast", 16.0);
  file.set_number("llama.rope.scaling.attn_factor", 1.5);
  const json found = scaling_of(file);
  EXPECT_EQ(found["original_max_position_embeddings"], 2048);
  EXPECT_EQ(found["beta_fast"], 16.0);
  EXPECT_FALSE(found.contains("beta_slow"));
  EXPECT_DOUBLE_EQ(found["attention_factor"].get<double>(),
                   1.5 * RopeConfig::yarn_mscale(4.0, 1.0));
}

TEST(GgufRope, ATemperatureAloneStretchesNothing) {
  FakeGguf file;
  file.set_number("llama.rope.scaling.attn_factor", 1.5);
  EXPECT_EQ(scaling_of(file), (json{{"rope_type", "yarn"},
                                    {"factor", 1.0},
                                    {"original_max_position_embeddings", 8192},
                                    {"attention_factor", 1.5}}));
}

TEST(GgufRope, DivisorsAreLlama3sOrRefused) {
  constexpr std::int64_t head_dim = 64;
  RopeConfig scaled{.theta = 500000.0};
  const std::vector<float> before = Rope(scaled, head_dim).inverse_frequencies();
  scaled.kind = RopeConfig::Kind::kLlama3;
  scaled.factor = 32.0;
  scaled.original_max_position_embeddings = 8192;
  const std::vector<float> after = Rope(scaled, head_dim).inverse_frequencies();
  std::vector<float> divisors;
  for (std::size_t i = 0; i < before.size(); ++i) divisors.push_back(before[i] / after[i]);

  json out = json::object();
  FakeGguf without, with, other;
  EXPECT_TRUE(read_gguf_rope_divisors(without, head_dim, 500000.0, out).ok());
  EXPECT_TRUE(out.empty());
  with.set_tensor("rope_freqs.weight", divisors);
  const runtime::Status read = read_gguf_rope_divisors(with, head_dim, 500000.0, out);
  ASSERT_TRUE(read.ok()) << read.to_string();
  EXPECT_EQ(out["rope_scaling"]["rope_type"], "llama3");
  EXPECT_NEAR(out["rope_scaling"]["factor"].get<double>(), 32.0, 1e-3);
  support::expect_failure(read_gguf_rope_divisors(with, head_dim, 500000.0, out),
                          ErrorCode::kUnimplemented, {"rope_freqs.weight", "llama3"});

  divisors[divisors.size() / 2] *= 1.01F;
  other.set_tensor("rope_freqs.weight", divisors);
  json refused = json::object();
  support::expect_failure(read_gguf_rope_divisors(other, head_dim, 500000.0, refused),
                          ErrorCode::kUnimplemented, {"m.gguf", "no Llama 3 scaling"});
  EXPECT_TRUE(refused.empty());
}

}  // namespace
}  // namespace rl
