#include "rl/model/model_config.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "rl/model/rope.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;

json minimal() {
  return {{"model_type", "llama"},    {"hidden_size", 48},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"intermediate_size", 96},  {"vocab_size", 160},
          {"eos_token_id", 2},        {"num_key_value_heads", 2}, {"max_position_embeddings", 128}};
}

TEST(ModelConfig, DefaultsAreThoseOfHuggingFace) {
  json object = minimal();
  object.erase("num_key_value_heads");
  const auto config = ModelConfig::from_json(object, "config.json");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->head_dim, 12);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->rope.theta, 10000.0);
  EXPECT_EQ(config->norm_eps, 1e-6F);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->eos_ids, std::vector<std::int32_t>{2});
  EXPECT_FALSE(config->bos_id.has_value());
}

TEST(ModelConfig, OldAndNewFormOfRopeScalingAreEqual) {
  json old_form = minimal();
  old_form["rope_theta"] = 500000.0;
  old_form["rope_scaling"] = {{"type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 64}};
  json new_form = minimal();
  new_form["rope_parameters"] = old_form["rope_scaling"];
  new_form["rope_parameters"].erase("type");
  new_form["rope_parameters"]["rope_type"] = "llama3";
  new_form["rope_parameters"]["rope_theta"] = 500000.0;
  const auto first = ModelConfig::from_json(old_form, "config.json");
  const auto second = ModelConfig::from_json(new_form, "config.json");
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(first->rope.kind, RopeConfig::Kind::kLlama3);

  // Who adds the old form to a new file means it; so transformers reads it, too.
  json both = minimal();
  both["rope_theta"] = 500000.0;
  both["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 7.0}};
  both["rope_scaling"] = old_form["rope_scaling"];
  const auto third = ModelConfig::from_json(both, "config.json");
  ASSERT_TRUE(third.ok()) << third.status().to_string();
  EXPECT_EQ(third->rope, first->rope);
  both["rope_scaling"] = {{"rope_type", "unheard"}};
  EXPECT_NE(ModelConfig::from_json(both, "config.json").status().message().find("unheard"),
            std::string::npos);
}

TEST(ModelConfig, WhatIsWrittenReadsBackEqual) {
  for (const char* kind : {"default", "linear", "llama3"}) {
    json object = minimal();
    object["rope_scaling"] = {{"rope_type", kind}, {"factor", 4.0}};
    object["eos_token_id"] = {2, 5};
    object["bos_token_id"] = 1;
    object["rms_norm_eps"] = 1e-5;
    object["tie_word_embeddings"] = true;
    const auto config = ModelConfig::from_json(object, "config.json");
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    const auto again = ModelConfig::from_json(config->to_json(), "config.json");
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(*config, *again) << kind;
  }
}

TEST(ModelConfig, UnsupportedIsRefusedByName) {
  const auto refused = [](const char* key, const json& value) {
    json object = minimal();
    object[key] = value;
    const auto config = ModelConfig::from_json(object, "config.json");
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_EQ(config.status().code(), ErrorCode::kUnimplemented) << config.status().to_string();
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status().message();
  };
  refused("hidden_act", "tanh");
  refused("rope_interleaved", true);
  refused("quantization_config", {{"bits", 4}});
  for (const char* other : {"logits_scaling", "embedding_multiplier", "clip_qkv", "scale_emb",
                            "final_logit_softcapping", "attn_logit_softcapping"})
    refused(other, 2.5);
  for (const char* unknown : {"attn_factor", "extrapolation_factor", "mrope_section"}) {
    json object = minimal();
    object["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {unknown, 1.5}};
    const auto config = ModelConfig::from_json(object, "config.json");
    EXPECT_EQ(config.status().code(), ErrorCode::kUnimplemented) << unknown;
    EXPECT_NE(config.status().message().find(unknown), std::string::npos)
        << config.status().message();
    object["rope_scaling"][unknown] = nullptr;
    EXPECT_TRUE(ModelConfig::from_json(object, "config.json").ok()) << unknown;
  }
  json object = minimal();
  object["attention_dropout"] =
      0.1;  // only training would use it, and no pass here drops anything of the model
  EXPECT_TRUE(ModelConfig::from_json(object, "config.json").ok());
  object = minimal();
  object["model_type"] = "mamba";
  const auto family = ModelConfig::from_json(object, "config.json");
  EXPECT_EQ(family.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(family.status().message().find("mamba"), std::string::npos);
  object = minimal();
  object["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 4.0}};
  const auto rope = ModelConfig::from_json(object, "config.json");
  EXPECT_EQ(rope.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(rope.status().message().find("spiral"), std::string::npos) << rope.status().message();
}

TEST(ModelConfig, WhatItDoesNotNeedIsKeptWhenItIsSaved) {
  json object = minimal();
  object["made_up"] = {1, 2};
  object["torch_dtype"] = "bfloat16";
  object["eos_token_id"] = 7;
  auto config = ModelConfig::from_json(object, "config.json");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  config->eos_ids = {7, 8};
  const json written = config->to_json();
  EXPECT_EQ(written["made_up"], json({1, 2}));
  EXPECT_EQ(written["torch_dtype"], "float32");
  EXPECT_EQ(written["eos_token_id"], json({7, 8}));
}

TEST(ModelConfig, WindowsGoByLayer) {
  json object = minimal();
  object["model_type"] = "qwen2";
  object["num_hidden_layers"] = 3;
  object["sliding_window"] = 16;
  EXPECT_TRUE(ModelConfig::from_json(object, "c")
                  .value()
                  .windows.empty());  // Qwen's configs name one that they do not use
  object["use_sliding_window"] = true;
  object["max_window_layers"] = 2;
  EXPECT_EQ(ModelConfig::from_json(object, "c").value().windows,
            (std::vector<std::int64_t>{0, 0, 16}));
  object["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_EQ(ModelConfig::from_json(object, "c").value().windows,
            (std::vector<std::int64_t>{16, 0, 0}));
  object["layer_types"] = {"full_attention"};
  EXPECT_EQ(ModelConfig::from_json(object, "c").status().code(), ErrorCode::kUnimplemented);
  object["layer_types"] = {"full_attention", "full_attention", "linear_attention"};
  EXPECT_EQ(ModelConfig::from_json(object, "c").status().code(), ErrorCode::kUnimplemented);
}

// Each family's windows are those of its class in transformers, whatever else the file says.
TEST(ModelConfig, WindowsAreTheFamilys) {
  const auto windows = [](const char* family, json more) {
    json object = minimal();
    object["model_type"] = family;
    object["num_hidden_layers"] = 2;
    object.update(more);
    const auto config = ModelConfig::from_json(object, "c");
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return config.ok() ? config->windows : std::vector<std::int64_t>{-1};
  };
  using Windows = std::vector<std::int64_t>;
  const json unused = {{"sliding_window", 8},
                       {"use_sliding_window", false},
                       {"max_window_layers", 2},
                       {"layer_types", {"full_attention", "full_attention"}}};
  EXPECT_EQ(windows("mistral", unused), (Windows{8, 8}));
  EXPECT_EQ(windows("mistral", json::object()), (Windows{4096, 4096}));
  EXPECT_EQ(windows("mistral", {{"sliding_window", nullptr}}), Windows());
  EXPECT_EQ(windows("mixtral", json::object()), Windows());
  EXPECT_EQ(windows("phi3", unused), (Windows{8, 8}));
  EXPECT_EQ(
      windows("qwen3_moe",
              {{"sliding_window", 8}, {"use_sliding_window", true}, {"max_window_layers", 2}}),
      (Windows{8, 8}));
  EXPECT_EQ(windows("qwen3_moe", unused), Windows());
  EXPECT_EQ(windows("qwen2", {{"use_sliding_window", true}, {"max_window_layers", 1}}),
            (Windows{0, 4096}));
  EXPECT_EQ(windows("qwen2", {{"use_sliding_window", true}}),
            (Windows{0, 0}));  // the first 28 layers see everything
  EXPECT_EQ(windows("gemma2", {{"use_sliding_window", false}}), (Windows{4096, 0}));
  EXPECT_EQ(windows("gemma2", {{"sliding_window", 8},
                               {"layer_types", {"full_attention", "sliding_attention"}}}),
            (Windows{0, 8}));

  json contradicting = minimal();
  contradicting["model_type"] = "qwen3";
  contradicting["num_hidden_layers"] = 1;
  contradicting["layer_types"] = {"sliding_attention"};
  EXPECT_NE(ModelConfig::from_json(contradicting, "c").status().message().find("layer_types"),
            std::string::npos);
}

TEST(ModelConfig, MissingKeysMeanWhatTheFamilysClassSays) {
  const auto read = [](const char* family, json more = json::object()) {
    json object = minimal();
    object.erase("num_key_value_heads");
    object["model_type"] = family;
    object["num_attention_heads"] = 32;
    object["hidden_size"] = 256;
    object.update(more);
    const auto config = ModelConfig::from_json(object, "c");
    EXPECT_TRUE(config.ok()) << family << ": " << config.status().to_string();
    return config.ok() ? *config : ModelConfig();
  };
  EXPECT_EQ(read("llama").kv_heads, 32);
  EXPECT_EQ(read("mistral").kv_heads, 8);
  EXPECT_EQ(read("mistral", {{"num_key_value_heads", nullptr}}).kv_heads, 32);
  EXPECT_EQ(read("qwen3").head_dim, 128);
  EXPECT_EQ(read("mixtral").rope.theta, 1e6);
  EXPECT_EQ(read("phi3").norm_eps, 1e-5F);
  EXPECT_EQ(read("glm").norm_eps, 1.5625e-7F);
  EXPECT_EQ(read("glm", {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}})
                .rotated(),
            64);  // half of each head, where nothing is said
  EXPECT_EQ(read("gemma2").attention_softcap, 50.0);
  EXPECT_EQ(read("gemma2", {{"attn_logit_softcapping", nullptr}}).attention_softcap, 0.0);
  EXPECT_EQ(read("qwen2", {{"max_position_embeddings", nullptr}}).max_position_embeddings, 32768);

  const auto refused = [](const char* family, json more) {
    json object = minimal();
    object["model_type"] = family;
    object.update(more);
    return ModelConfig::from_json(object, "c").status().message();
  };
  EXPECT_NE(refused("llama", {{"partial_rotary_factor", 0.5}}).find("partial_rotary_factor"),
            std::string::npos);
  EXPECT_NE(refused("qwen2", {{"rope_parameters",
                               {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}})
                .find("partial_rotary_factor"),
            std::string::npos);
  EXPECT_EQ(read("qwen3_moe", {{"num_experts", 4}}).moe->experts_per_token,
            4);  // 8 by default, and there are fewer
}

TEST(ModelConfig, BadValuesNameTheKey) {
  const auto wrong = [](const std::string& key, const std::function<void(json&)>& damage) {
    json object = minimal();
    damage(object);
    const auto config = ModelConfig::from_json(object, "some/config.json");
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_EQ(config.status().code(), ErrorCode::kInvalidArgument) << config.status().to_string();
    EXPECT_NE(config.status().message().find(key), std::string::npos) << config.status().message();
    EXPECT_EQ(config.status().message().find("some/config.json"), 0U) << config.status().message();
  };
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size"}) {
    wrong(key, [&](json& object) { object.erase(key); });
    wrong(key, [&](json& object) { object[key] = "12"; });
    wrong(key, [&](json& object) { object[key] = 0; });
    wrong(key, [&](json& object) { object[key] = -3; });
    wrong(key, [&](json& object) { object[key] = std::uint64_t{1} << 63; });
    wrong(key, [&](json& object) { object[key] = 4.5; });
  }
  wrong("num_key_value_heads", [](json& object) { object["num_key_value_heads"] = 3; });
  wrong("head_dim", [](json& object) { object["head_dim"] = 7; });
  wrong("rope_theta", [](json& object) { object["rope_theta"] = "big"; });
  wrong("rope_scaling", [](json& object) { object["rope_scaling"] = 3; });
  wrong("eos_token_id", [](json& object) { object["eos_token_id"] = {1, "x"}; });
  wrong("model_type", [](json& object) { object.erase("model_type"); });
  wrong("object", [](json& object) { object = json::array(); });
}

class ModelConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("starling_config_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  std::filesystem::path folder_;
};

TEST_F(ModelConfigFile, GenerationConfigNamesTheStops) {
  write("config.json", minimal().dump());
  write("generation_config.json", R"({"eos_token_id": [7, 8]})");
  const auto config = ModelConfig::load(folder_);
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->eos_ids, (std::vector<std::int32_t>{7, 8}));
}

// transformers computes the same with and without: Llama's first conversions have -1.
TEST_F(ModelConfigFile, MinusOneIsNoToken) {
  json config_json = minimal();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) config_json[key] = -1;
  write("config.json", config_json.dump());
  write("generation_config.json", R"({"eos_token_id": -1, "pad_token_id": -1})");
  auto config = ModelConfig::load(folder_);
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_FALSE(config->bos_id || config->pad_id);
  EXPECT_TRUE(config->eos_ids.empty());
  const auto again = ModelConfig::from_json(config->to_json(), "again");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *config);
  config_json["eos_token_id"] = {-1, 5};
  write("config.json", config_json.dump());
  config = ModelConfig::load(folder_);
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->eos_ids, std::vector<std::int32_t>{5});
}

TEST_F(ModelConfigFile, MissingAndTruncatedFilesSaySo) {
  const auto missing = ModelConfig::load(folder_);
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.status().message().find("config.json"), std::string::npos);
  EXPECT_EQ(ModelConfig::load(folder_ / "nowhere").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(ModelConfig::load(folder_ / "nowhere.gguf").status().code(), ErrorCode::kNotFound);
  const std::string text = minimal().dump();
  write("config.json", text.substr(0, text.size() / 2));
  const auto truncated = ModelConfig::load(folder_);
  EXPECT_EQ(truncated.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(truncated.status().message().find("not valid JSON"), std::string::npos)
      << truncated.status().message();
  write("config.json", "{\"zz\": " + std::string(200'000, '[') + std::string(200'000, ']') + ", " +
                           text.substr(1));
  EXPECT_NE(ModelConfig::load(folder_).status().message().find("not valid JSON"), std::string::npos)
      << ModelConfig::load(folder_).status().message();
}

TEST(Rope, Llama3KeepsHighAndSlowsLowFrequencies) {
  RopeConfig scaled{.kind = RopeConfig::Kind::kLlama3, .theta = 500000.0, .factor = 8.0};
  scaled.original_max_position_embeddings = 8192;
  const Rope plain(RopeConfig{.theta = 500000.0}, 128);
  const Rope stretched(scaled, 128);
  EXPECT_EQ(stretched.inverse_frequencies().front(), plain.inverse_frequencies().front());
  EXPECT_FLOAT_EQ(stretched.inverse_frequencies().back(),
                  plain.inverse_frequencies().back() / 8.0F);
  const auto tables = stretched.tables(10);
  EXPECT_GE(tables->positions, 10);
  EXPECT_EQ(tables->cos[0], 1.0F);
  EXPECT_EQ(stretched.tables(5), tables);  // no smaller tables are made
}

TEST(Rope, YarnKeepsFastPairsDividesSlowOnesAndIsTempered) {
  json object = minimal();
  object["max_position_embeddings"] = 4096;
  object["head_dim"] = 64;
  object["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 1024}};
  const ModelConfig config = ModelConfig::from_json(object, "config.json").value();
  EXPECT_NEAR(config.rope.attention_factor, 0.1 * std::log(4.0) + 1.0, 1e-12);
  const Rope plain(RopeConfig{}, 64);
  const Rope stretched(config.rope, 64);
  const auto before = plain.inverse_frequencies();
  const auto after = stretched.inverse_frequencies();
  EXPECT_FLOAT_EQ(after.front(), before.front());
  EXPECT_FLOAT_EQ(after.back(), before.back() / 4.0F);
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_LE(after[i], before[i] * 1.0001F);
    EXPECT_GE(after[i], before[i] / 4.0001F);
  }
  EXPECT_FLOAT_EQ(stretched.tables(4)->cos[0], static_cast<float>(config.rope.attention_factor));
}

TEST(Rope, LongSequencesHaveAnglesOfTheirOwn) {
  json object = minimal();
  object["max_position_embeddings"] = 256;
  object["head_dim"] = 8;
  object["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", {1, 1, 1, 1}},
                            {"long_factor", {1, 2, 4, 8}},
                            {"original_max_position_embeddings", 64}};
  const Rope rope(ModelConfig::from_json(object, "config.json").value().rope, 8);
  EXPECT_EQ(rope.stretch_of(64), 0);
  EXPECT_EQ(rope.stretch_of(65), rope.stretch_of(256));
  const auto near = rope.inverse_frequencies(0);
  const auto far = rope.inverse_frequencies(rope.stretch_of(65));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(far[i], near[i] / static_cast<float>(1 << i));
  object["rope_scaling"]["long_factor"] = {1, 2};
  EXPECT_EQ(ModelConfig::from_json(object, "config.json").status().code(),
            ErrorCode::kInvalidArgument);

  object["max_position_embeddings"] = 64;  // what counts as the context that it was trained with
  object["rope_scaling"] = {
      {"rope_type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 16}};
  const Rope dynamic(ModelConfig::from_json(object, "config.json").value().rope, 8);
  EXPECT_EQ(dynamic.inverse_frequencies(dynamic.stretch_of(64)), dynamic.inverse_frequencies(0));
  EXPECT_LT(dynamic.inverse_frequencies(dynamic.stretch_of(200)).back(),
            dynamic.inverse_frequencies(dynamic.stretch_of(100)).back());
}

}  // namespace
}  // namespace rl
