// Heads: equal to transformers' classifiers, trained together with the backbone, and of kinds that
// users add.
#include "rl/model/head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <gtest/gtest.h>

#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "tests/rl/fixture_counts.h"
#include "tests/rl/model/batches.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;

constexpr std::uint64_t kSeed = 3;

std::unique_ptr<Transformer> load_with_head(const ModelConfig& config,
                                            const std::filesystem::path& folder) {
  auto model = Transformer::load(config, folder, kSeed);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? std::move(*model) : nullptr;
}

ModelConfig config_of(const std::filesystem::path& folder) {
  auto config = ModelConfig::load(folder);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return *config;
}

void fill(const at::Tensor& view, const json& rows) {
  std::vector<float> flat;
  for (const json& row : rows) {
    if (row.is_array())
      flat.insert(flat.end(), row.begin(), row.end());
    else
      flat.push_back(row);
  }
  ASSERT_EQ(view.numel(), static_cast<std::int64_t>(flat.size()));
  std::copy(flat.begin(), flat.end(), view.mutable_data_ptr<float>());
}

void check_classifier(const json& reference) {
  const bool of_tokens = reference["task"] == "token";
  const auto folder = testing::model_folder(reference["model"]);
  const auto labels = static_cast<std::int64_t>(reference["weight"].size());
  const ModelConfig config = with_task(
      config_of(folder),
      of_tokens ? ModelTask::kTokenClassification : ModelTask::kSequenceClassification, labels);
  EXPECT_EQ(config.to_json()["architectures"][0], reference["architecture"]);
  auto model = load_with_head(config, folder);
  ASSERT_NE(model, nullptr);
  const std::string head = reference["head"];
  fill(model->parameters().view(head + ".weight"), reference["weight"]);
  if (!reference["bias"].is_null())
    fill(model->parameters().view(head + ".bias"), reference["bias"]);
  model->enable_gradients();

  PackedBatch batch;
  batch.append(reference["input_ids"].get<std::vector<std::int32_t>>());
  auto out = model->outputs(
      batch, {.logprobs = std::nullopt, .heads = {head}, .last_tokens_only = !of_tokens});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  const at::Tensor outputs = out->heads.front();
  std::vector<float> expected;
  for (const json& row : reference["outputs"]) {
    if (row.is_array())
      expected.insert(expected.end(), row.begin(), row.end());
    else
      expected.push_back(row);
  }
  ASSERT_EQ(outputs.numel(), static_cast<std::int64_t>(expected.size()));
  const at::Tensor flat = outputs.detach().contiguous();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(flat.const_data_ptr<float>()[i], expected[i], 1e-4) << i;

  (outputs * outputs).mean().backward();
  const auto norm_of = [&](const std::string& name) {
    return model->gradients().view(name).norm().item<double>();
  };
  const double total = reference["grad_norm_total"];
  EXPECT_NEAR(model->gradients().arena().norm().item<double>(), total, 1e-3 * total);
  EXPECT_NEAR(norm_of(head + ".weight"), reference["head_grad_norm"].get<double>(),
              1e-3 * reference["head_grad_norm"].get<double>() + 1e-6 * total);
  const double embedding = reference["embedding_grad_norm"];
  EXPECT_NEAR(model->gradients().view(model->parameters().specs().front()).norm().item<double>(),
              embedding, 1e-3 * embedding + 1e-6 * total);
}

TEST(Heads, EqualTransformersClassifiersOfEveryFamily) {
  int cases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(STARLING_SOURCE_DIR "/tests/fixtures/heads")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().stem().string());
    check_classifier(testing::read_json(entry.path()));
    ++cases;
  }
  testing::count_fixtures("classifiers", std::to_string(cases) + " equal to the reference");
  EXPECT_GE(cases, 24);
}

TEST(Heads, ShareTheBackboneAndAreTrainedWithIt) {
  const auto folder = testing::model_folder("llama");
  auto config = with_head(config_of(folder), value_head());
  ASSERT_TRUE(config.ok());
  auto model = load_with_head(*config, folder);
  ASSERT_NE(model, nullptr);
  model->enable_gradients();
  const PackedBatch batch = testing::two_sequences();
  const auto gradients_of = [&](bool policy, bool critic) {
    model->zero_gradients();
    OutputOptions wanted;
    if (policy) wanted.logprobs.emplace();
    if (critic) wanted.heads = {"v_head.summary"};
    auto out = model->outputs(batch, wanted);
    EXPECT_TRUE(out.ok()) << out.status().to_string();
    at::Tensor loss;
    if (policy) loss = -out->logprobs.logprobs_N.mean();
    if (critic) {
      EXPECT_EQ(out->heads.front().sizes(), (std::vector<std::int64_t>{9, 1}));
      const at::Tensor value_loss = (out->heads.front() - 1.0).square().mean();
      loss = loss.defined() ? loss + value_loss : value_loss;
    }
    loss.backward();
    return model->gradients().arena().clone();
  };
  const at::Tensor policy = gradients_of(true, false);
  const at::Tensor critic = gradients_of(false, true);
  const at::Tensor both = gradients_of(true, true);
  // The head's gradient reaches the backbone in the same step.
  const ParameterSpec& backbone =
      *model->parameters().find("model.layers.0.self_attn.q_proj.weight");
  const auto of = [](const at::Tensor& arena, const ParameterSpec& spec) {
    return arena.narrow(0, spec.offset, spec.count);
  };
  EXPECT_GT(of(critic, backbone).norm().item<double>(), 1e-6);
  EXPECT_GT(of(critic, *model->parameters().find("v_head.summary.weight")).norm().item<double>(),
            1e-6);
  EXPECT_EQ(of(policy, *model->parameters().find("v_head.summary.weight")).norm().item<double>(),
            0.0);
  EXPECT_LE((both - policy - critic).norm().item<double>(), 1e-5 * both.norm().item<double>());
}

// hidden -> tanh -> one number, written with ATen's operations alone.
HeadKind small_mlp() {
  return {.name = "small_mlp",
          .parameters =
              [](const ModelConfig& config, const HeadConfig& head) {
                return std::vector<FamilyParameter>{
                    {.name = head.name + ".up", .shape = {config.hidden_size, 8}},
                    {.name = head.name + ".down", .shape = {8, head.outputs}}};
              },
          .compute =
              [](const HeadInputs& inputs) {
                return inputs.hidden.matmul(inputs.parameter(".up"))
                    .tanh()
                    .matmul(inputs.parameter(".down"));
              }};
}

TEST(Heads, ACustomKindIsTrainedLikeAnyOther) {
  register_head_kind(small_mlp());
  const auto folder = testing::model_folder("qwen3");
  auto config = with_head(config_of(folder), {.name = "mine", .kind = "small_mlp", .outputs = 2});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  auto model = load_with_head(*config, folder);
  ASSERT_NE(model, nullptr);
  model->parameters().view("mine.up").mul_(20.0);
  model->parameters().view("mine.down").mul_(20.0);
  model->enable_gradients();
  const PackedBatch batch = testing::two_sequences();
  const auto loss_of = [&] {
    auto out = model->head(batch, "mine");
    EXPECT_TRUE(out.ok()) << out.status().to_string();
    EXPECT_EQ(out->sizes(), (std::vector<std::int64_t>{9, 2}));
    return out->square().sum();
  };
  loss_of().backward();
  // Against differences, for a number of the head's and one of the backbone's.
  for (const std::string name : {"mine.up", "mine.down", "model.norm.weight"}) {
    at::Tensor value = model->parameters().view(name).view({-1});
    const double gradient = model->gradients().view(name).view({-1})[3].item<double>();
    const double old = value[3].item<double>();
    constexpr double kStep = 1e-2;
    value[3].fill_(old + kStep);
    const double above = loss_of().item<double>();
    value[3].fill_(old - kStep);
    const double below = loss_of().item<double>();
    value[3].fill_(old);
    EXPECT_NE(gradient, 0.0) << name;
    EXPECT_NEAR(gradient, (above - below) / (2 * kStep), 0.02 * std::abs(gradient) + 1e-4) << name;
  }
}

TEST(Heads, AClassifierIsSavedAndLoadedAsHuggingFaceDoes) {
  const support::TemporaryFolder temporary;
  const auto folder = testing::model_folder("gpt2");
  auto model =
      load_with_head(with_task(config_of(folder), ModelTask::kTokenClassification, 3), folder);
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(
      save_model_folder(model->config(), model->parameters(), temporary.path() / "critic").ok());
  const json config = testing::read_json(temporary.path() / "critic" / "config.json");
  EXPECT_EQ(config["architectures"], json({"GPT2ForTokenClassification"}));
  EXPECT_EQ(config["id2label"].size(), 3u);

  auto again = Transformer::load(temporary.path() / "critic");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ((*again)->config(), model->config());
  EXPECT_TRUE((*again)->parameters().arena().equal(model->parameters().arena()));
  EXPECT_NE((*again)->parameters().find("classifier.weight"), nullptr);
  EXPECT_EQ((*again)->parameters().find("lm_head.weight"), nullptr);
}

TEST(Heads, AValueHeadIsAskedForAgainWhenItsModelIsLoaded) {
  const support::TemporaryFolder temporary;
  const auto folder = testing::model_folder("qwen2");
  const ModelConfig plain = config_of(folder);
  auto model = load_with_head(*with_head(plain, value_head()), folder);
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(save_model_folder(model->config(), model->parameters(), temporary.path()).ok());
  EXPECT_EQ(testing::read_json(temporary.path() / "config.json")["architectures"],
            json({"Qwen2ForCausalLM"}));

  const auto without = Transformer::load(temporary.path());  // to generate with, say
  ASSERT_TRUE(without.ok()) << without.status().to_string();
  EXPECT_EQ((*without)->parameters().find("v_head.summary.weight"), nullptr);
  EXPECT_TRUE(
      (*without)->parameters().arena().equal(load_with_head(plain, folder)->parameters().arena()));
  auto with = Transformer::load(*with_head(config_of(temporary.path()), value_head()),
                                temporary.path(), kSeed + 1);
  ASSERT_TRUE(with.ok()) << with.status().to_string();
  EXPECT_TRUE((*with)->parameters().arena().equal(model->parameters().arena()));
}

TEST(Heads, WhatACheckpointLacksBeginsAtRandomOnlyIfThatWasAsked) {
  const auto folder = testing::model_folder("llama");
  const ModelConfig critic = with_task(config_of(folder), ModelTask::kTokenClassification);
  const auto refused = Parameters::load(critic, folder);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("missing score.weight, score.bias"), std::string::npos)
      << refused.status().message();
  const auto one = Parameters::load(critic, folder, {.head_seed = 1});
  const auto same = Parameters::load(critic, folder, {.head_seed = 1});
  const auto other = Parameters::load(critic, folder, {.head_seed = 2});
  ASSERT_TRUE(one.ok() && same.ok() && other.ok());
  EXPECT_TRUE(one->arena().equal(same->arena()));
  EXPECT_FALSE(one->view("score.weight").equal(other->view("score.weight")));
  EXPECT_GT(one->view("score.weight").abs().max().item<float>(), 0.0F);
  EXPECT_EQ(one->view("score.bias").item<float>(), 0.0F);
  // Anything else that is missing is still told by name.
  ModelConfig deeper = critic;
  ++deeper.layers;
  EXPECT_NE(Parameters::load(deeper, folder, {.head_seed = 1})
                .status()
                .message()
                .find("missing model.layers.2.input_layernorm.weight"),
            std::string::npos);
}

TEST(Heads, AreReadAtAnyTokenWhateverTheyAreBatchedWith) {
  const auto folder = testing::model_folder("llama");
  auto model =
      load_with_head(with_task(config_of(folder), ModelTask::kSequenceClassification), folder);
  ASSERT_NE(model, nullptr);
  auto at_last =
      model->outputs(testing::two_sequences(),
                     {.logprobs = std::nullopt, .heads = {"score"}, .last_tokens_only = true});
  auto everywhere = model->head(testing::two_sequences(), "score");
  PackedBatch alone;
  alone.append(std::vector<std::int32_t>{35, 8, 97});
  auto second = model->head(alone, "score");
  ASSERT_TRUE(at_last.ok() && everywhere.ok() && second.ok());
  EXPECT_EQ(at_last->heads.front().sizes(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(at_last->heads.front()[0].item<float>(), (*everywhere)[5].item<float>());
  EXPECT_EQ(at_last->heads.front()[1].item<float>(), (*everywhere)[8].item<float>());
  EXPECT_EQ((*second)[2].item<float>(), (*everywhere)[8].item<float>());
}

TEST(Heads, MistakesAreToldByName) {
  const auto folder = testing::model_folder("llama");
  const ModelConfig plain = config_of(folder);
  const auto unknown = with_head(plain, {.name = "x", .kind = "linaer"});
  EXPECT_EQ(unknown.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.status().message().find("no kind called \"linaer\" is known (linear"),
            std::string::npos)
      << unknown.status().message();
  EXPECT_FALSE(with_head(plain, {.name = "x", .outputs = 0}).ok());
  EXPECT_EQ(with_head(*with_head(plain, value_head()), value_head()).status().message(),
            "there is a head called v_head.summary already");

  auto critic = load_with_head(with_task(plain, ModelTask::kTokenClassification), folder);
  ASSERT_NE(critic, nullptr);
  EXPECT_EQ(critic->head(testing::two_sequences(), "scroe").status().message(),
            "this model has no head called scroe (it has score)");
  EXPECT_NE(critic->token_logprobs(testing::two_sequences())
                .status()
                .message()
                .find("log-probabilities of a classifier"),
            std::string::npos);
  EXPECT_NE(
      critic->logits(testing::two_sequences()).status().message().find("logits of a classifier"),
      std::string::npos);

  // What a config says of its labels is not believed blindly.
  json object = with_task(plain, ModelTask::kTokenClassification).to_json();
  object["num_labels"] = -3;
  EXPECT_EQ(ModelConfig::from_json(object, "config.json").status().code(),
            ErrorCode::kInvalidArgument);
  object["num_labels"] = 1e18;
  EXPECT_EQ(ModelConfig::from_json(object, "config.json").status().code(),
            ErrorCode::kInvalidArgument);
  object.erase("num_labels");
  object["id2label"] = 4;
  EXPECT_EQ(ModelConfig::from_json(object, "config.json").status().code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
