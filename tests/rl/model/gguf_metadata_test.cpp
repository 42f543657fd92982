// Metadata of GGUF files that changes what a model computes or where it stops. A model computes as
// in the folder of Hugging Face's form that says the same, or is refused by name.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/model/transformer.h"
#include "rl/weights/gguf.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::json;

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string text_bytes(const std::string& text) {
  return bytes_of(std::uint64_t{text.size()}) + text;
}

std::string gguf_entry(const std::string& key, GgufType type, const std::string& value) {
  return text_bytes(key) + bytes_of(static_cast<std::uint32_t>(type)) + value;
}
std::string f32(const std::string& key, float value) {
  return gguf_entry("llama." + key, GgufType::kF32, bytes_of(value));
}
std::string u32(const std::string& key, std::uint32_t value) {
  return gguf_entry(key, GgufType::kU32, bytes_of(value));
}
std::string i32(const std::string& key, std::int32_t value) {
  return gguf_entry(key, GgufType::kI32, bytes_of(value));
}
std::string list_of_words(const std::string& key, const std::vector<std::string>& values) {
  std::string bytes = bytes_of(static_cast<std::uint32_t>(GgufType::kString)) +
                      bytes_of(std::uint64_t{values.size()});
  for (const std::string& value : values) bytes += text_bytes(value);
  return gguf_entry(key, GgufType::kArray, bytes);
}
std::string words(const std::string& key, const std::string& value) {
  return gguf_entry(key, GgufType::kString, text_bytes(value));
}
const std::string kYarn = words("llama.rope.scaling.type", "yarn");
const std::string kLinear = words("llama.rope.scaling.type", "linear");

class GgufMetadata : public ::testing::Test {
 protected:
  /// The fixture's file with further entries. A last one fills up, so that the tensors stay
  /// aligned.
  std::filesystem::path with(const std::vector<std::string>& entries) {
    std::ifstream file(STARLING_SOURCE_DIR "/tests/fixtures/gguf/llama.gguf", std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    std::string added;
    for (const std::string& entry : entries) added += entry;
    const std::size_t with_filler = (added + words("general.filler", "")).size();
    added += words("general.filler", std::string((32 - with_filler % 32) % 32, 'x'));
    std::uint64_t count = 0;
    std::memcpy(&count, bytes.data() + 16, sizeof count);
    bytes.replace(16, 8, bytes_of(count + entries.size() + 1));
    bytes.insert(24, added);
    const std::filesystem::path path = folder_.path() / (std::to_string(++files_) + ".gguf");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  /// The same model as a folder whose config.json has that `rope_scaling`.
  std::filesystem::path folder_with(const json& scaling) {
    const std::filesystem::path made = folder_.path() / std::to_string(++files_);
    std::filesystem::copy(STARLING_SOURCE_DIR "/tests/fixtures/models/llama", made);
    json config = testing::read_json(made / "config.json");
    config.erase("rope_parameters");
    config["rope_theta"] = 10000.0;
    config["rope_scaling"] = scaling;
    std::ofstream(made / "config.json") << config;
    return made;
  }

  static at::Tensor logits(const std::filesystem::path& model) {
    auto loaded = Transformer::load(model);
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
    PackedBatch batch;
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 90; ++i) ids.push_back(1 + i * 7 % 150);
    batch.append(ids);
    return *(*loaded)->logits(batch);
  }

  std::string refusal(const std::vector<std::string>& entries) {
    const auto config = ModelConfig::load(with(entries));
    return config.ok() ? "no error" : config.status().message();
  }

  support::TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(GgufMetadata, RopeScalingIsThatOfTheFolder) {
  struct Case {
    std::vector<std::string> entries;
    json scaling;
  };
  const json yarn = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}};
  const auto changed = [](json object, const json& more) {
    object.update(more);
    return object;
  };
  const std::string four = f32("rope.scaling.factor", 4);
  const std::string context = u32("llama.rope.scaling.original_context_length", 32);
  const double usual = 0.1 * std::log(4.0) + 1.0;
  const std::vector<Case> cases = {
      {{kYarn, four, context}, yarn},
      {{kYarn, four}, changed(yarn, {{"original_max_position_embeddings", 128}})},
      {{kYarn, four, context, f32("rope.scaling.yarn_beta_fast", 16),
        f32("rope.scaling.yarn_beta_slow", 2)},
       changed(yarn, {{"beta_fast", 16.0}, {"beta_slow", 2.0}})},
      {{kYarn, four, context, f32("rope.scaling.attn_factor", 1.25F)},
       changed(yarn, {{"attention_factor", usual * 1.25}})},
      {{kYarn, four, context, f32("rope.scaling.yarn_attn_factor", static_cast<float>(usual)),
        f32("rope.scaling.yarn_ext_factor", 1), f32("rope.scaling.yarn_log_multiplier", 0)},
       yarn},
      {{kLinear, f32("rope.scaling.factor", 2)}, {{"rope_type", "linear"}, {"factor", 2.0}}},
      {{f32("rope.scaling.factor", 2)}, {{"rope_type", "linear"}, {"factor", 2.0}}},
      {{f32("rope.scale_linear", 2)}, {{"rope_type", "linear"}, {"factor", 2.0}}},
      {{f32("rope.scaling.factor", 2), f32("rope.scale_linear", 3)},
       {{"rope_type", "linear"}, {"factor", 2.0}}},
      {{words("llama.rope.scaling.type", "none"), four}, nullptr},
      {{kLinear, f32("rope.scaling.factor", 0), f32("rope.scale_linear", 3)}, nullptr},
      {{f32("rope.scaling.attn_factor", 1.5F)},
       {{"rope_type", "yarn"},
        {"factor", 1.0},
        {"original_max_position_embeddings", 128},
        {"attention_factor", 1.5}}}};
  const at::Tensor plain = logits(with({}));
  for (const Case& one : cases) {
    SCOPED_TRACE(one.scaling.dump());
    const at::Tensor found = logits(with(one.entries));
    EXPECT_TRUE(found.equal(logits(folder_with(one.scaling))));
    EXPECT_EQ(found.equal(plain), one.scaling.is_null());
  }
}

TEST_F(GgufMetadata, WhatIsNotComputedIsRefusedByName) {
  const std::string four = f32("rope.scaling.factor", 4);
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{words("llama.rope.scaling.type", "longrope")}, "llama.rope.scaling.type = \"longrope\""},
      {{u32("llama.rope.scaling.type", 1)}, "llama.rope.scaling.type is of type u32"},
      {{kYarn, four, f32("rope.scaling.yarn_ext_factor", 0.5F)},
       "llama.rope.scaling.yarn_ext_factor = 0.5"},
      {{kYarn, four, f32("rope.scaling.yarn_attn_factor", 1.3F)},
       "llama.rope.scaling.yarn_attn_factor = 1.3"},
      {{kYarn, four, f32("rope.scaling.yarn_log_multiplier", 0.1F)},
       "llama.rope.scaling.yarn_log_multiplier = 0.1"},
      {{kYarn, four, f32("rope.scaling.yarn_beta_fast", 0)},
       "llama.rope.scaling.yarn_beta_fast = 0"},
      {{kLinear, f32("rope.scaling.factor", 0.5F)}, "llama.rope.scaling.factor = 0.5"},
      {{f32("rope.scale_linear", -2)}, "llama.rope.scale_linear = -2"},
      {{kLinear, four, f32("rope.scaling.attn_factor", 1.5F)},
       "llama.rope.scaling.attn_factor = 1.5"},
      {{f32("rope.scaling.attn_factor", std::nanf(""))},
       "llama.rope.scaling.attn_factor is not a finite number"},
      {{f32("logit_scale", 0.5F)}, "llama.logit_scale = 0.5"},
      {{f32("attention.scale", 0.5F)}, "llama.attention.scale = 0.5"},
      {{f32("attn_logit_softcapping", 50)}, "llama.attn_logit_softcapping = 50"},
      {{f32("final_logit_softcapping", 30)}, "llama.final_logit_softcapping = 30"},
      {{u32("llama.attention.sliding_window", 64)}, "llama.attention.sliding_window = 64"},
      {{gguf_entry("llama.attention.causal", GgufType::kBool, std::string(1, '\0'))},
       "llama.attention.causal = false"},
      {{f32("rope.freq_base_swa", 10000)}, "llama.rope.freq_base_swa = 10000"},
      {{words("llama.some.new_option", "x")}, "llama.some.new_option = \"x\""},
      {{words("general.type", "adapter")}, "general.type = \"adapter\""}};
  for (const auto& [entries, named] : cases) {
    const std::string why = refusal(entries);
    EXPECT_NE(why.find(named), std::string::npos) << named << "\n" << why;
  }
}

TEST_F(GgufMetadata, WhatDoesNothingIsTaken) {
  const std::vector<std::string> idle = {
      f32("logit_scale", 1),
      f32("embedding_scale", 0),
      f32("attention.clamp_kqv", 0),
      f32("attention.scale", static_cast<float>(1 / std::sqrt(12.0))),
      u32("llama.attention.sliding_window", 128),
      u32("llama.expert_count", 0),
      u32("llama.expert_used_count", 0),
      u32("llama.pooling_type", 1),
      words("llama.tensor_data_layout", "Meta AI original pth"),
      words("general.type", "model"),
      words("qwen2.some.option", "of another architecture"),
      gguf_entry("llama.attention.causal", GgufType::kBool, std::string(1, '\1'))};
  EXPECT_TRUE(logits(with(idle)).equal(logits(with({}))));
}

TEST_F(GgufMetadata, AModelStopsAtTheEndOfATurn) {
  const auto ids = [&](const std::vector<std::string>& entries) {
    const auto config = ModelConfig::load(with(entries));
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return config->eos_ids;
  };
  const std::string eos = u32("tokenizer.ggml.eos_token_id", 0);
  const std::string eot = u32("tokenizer.ggml.eot_token_id", 2);
  const std::string eom = i32("tokenizer.ggml.eom_token_id", 5);
  EXPECT_EQ(ids({eos, eot, eom}), (std::vector<std::int32_t>{0, 2, 5}));
  EXPECT_EQ(ids({eot}), (std::vector<std::int32_t>{2}));
  EXPECT_EQ(ids({eos, u32("tokenizer.ggml.eot_token_id", 0)}), (std::vector<std::int32_t>{0}));
  EXPECT_EQ(ids({i32("tokenizer.ggml.eos_token_id", -1), eot}), (std::vector<std::int32_t>{2}));
}

// As llama.cpp does; a file that names its token is believed.
TEST_F(GgufMetadata, ATurnEndsAtTheTokenWithSuchATextWhereNoneIsNamed) {
  const auto ids = [&](const std::vector<std::string>& entries) {
    const auto config = ModelConfig::load(with(entries));
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return config->eos_ids;
  };
  const std::string eos = u32("tokenizer.ggml.eos_token_id", 0);
  const std::string tokens =
      list_of_words("tokenizer.ggml.tokens", {"</s>", "a", "<|im_end|>", "b", "<|eot_id|>"});
  EXPECT_EQ(ids({eos, tokens}), (std::vector<std::int32_t>{0, 4}));
  EXPECT_EQ(ids({eos, i32("tokenizer.ggml.eot_token_id", -1), tokens}),
            (std::vector<std::int32_t>{0, 4}));
  EXPECT_EQ(ids({eos, u32("tokenizer.ggml.eot_token_id", 2), tokens}),
            (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(ids({eos, list_of_words("tokenizer.ggml.tokens", {"</s>", "a"})}),
            (std::vector<std::int32_t>{0}));
}

TEST_F(GgufMetadata, MinusOneIsNoToken) {
  for (const char* role : {"bos", "eos", "padding", "eot", "eom"}) {
    const std::string key = std::string("tokenizer.ggml.") + role + "_token_id";
    for (const std::string& none : {u32(key, 0xFFFFFFFF), i32(key, -1)}) {
      const auto config = ModelConfig::load(with({none}));
      ASSERT_TRUE(config.ok()) << config.status().to_string();
      EXPECT_FALSE(config->bos_id || config->pad_id || !config->eos_ids.empty()) << role;
    }
    EXPECT_NE(refusal({i32(key, -2)}).find("token id"), std::string::npos) << role;
    EXPECT_NE(refusal({u32(key, 1 << 30)}).find(key + " is 1073741824, outside the vocabulary of "),
              std::string::npos)
        << refusal({u32(key, 1 << 30)});
  }
}

}  // namespace
}  // namespace rl
