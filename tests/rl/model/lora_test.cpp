// LoRA: equal to PEFT's numbers, in PEFT's files, on any family.
#include "rl/model/lora.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

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

std::unique_ptr<Transformer> load(const std::string& name) {
  auto model = Transformer::load(testing::model_folder(name));
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? std::move(*model) : nullptr;
}

at::Tensor logits(const Transformer& model, const PackedBatch& batch) {
  auto out = model.logits(batch);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return *out;
}

double loss(Transformer& model, const PackedBatch& batch, bool backward) {
  auto out = model.token_logprobs(batch);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  at::Tensor loss = -out->logprobs_N.mean();
  if (backward) loss.backward();
  return loss.item<double>();
}

/// B not zero, so that it changes something.
LoraAdapter stirred(const ModelConfig& config, const LoraConfig& lora, std::uint64_t seed = 1) {
  auto adapter = LoraAdapter::create(config, lora, seed);
  EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
  for (const LoraModule& module : adapter->modules()) {
    at::Tensor b = adapter->parameters().view(module.b);
    b.copy_(at::arange(b.numel(), at::kFloat).view(b.sizes()).mul_(0.37).sin_().mul_(0.05));
  }
  return std::move(*adapter);
}

TEST(Lora, EqualsPeft) {
  const auto folder = testing::model_folder("llama_lora");
  const json reference = testing::read_json(folder / "reference.json");
  auto model = load(reference["base"]);
  ASSERT_NE(model, nullptr);
  auto adapter = LoraAdapter::load(model->config(), folder);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  ASSERT_TRUE(model->add_adapter("default", std::move(*adapter)).ok());
  ASSERT_TRUE(model->use_adapter("default").ok());
  PackedBatch batch;
  batch.append(reference["input_ids"][0].get<std::vector<std::int32_t>>());
  const auto check_logits = [&](const char* how) {
    const at::Tensor last = logits(*model, batch)[-1].contiguous();
    const auto expected = reference["logits_last"].get<std::vector<float>>();
    ASSERT_EQ(last.numel(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(last.const_data_ptr<float>()[i], expected[i], 1e-4) << how << i;
  };
  check_logits("not merged ");
  model->enable_gradients();
  EXPECT_NEAR(loss(*model, batch, /*backward=*/true), reference["loss"].get<double>(), 1e-5);
  std::size_t compared = 0;
  for (const auto& [name, expected] : reference["lora_grad_norm"].items()) {
    // PEFT names the adapter within the parameter while it is loaded: lora_A.default.weight.
    std::string saved = name;
    if (const std::size_t at = saved.find(".default"); at != std::string::npos) saved.erase(at, 8);
    ASSERT_NE(model->gradients().find(saved), nullptr) << saved;
    EXPECT_NEAR(model->gradients().view(saved).norm().item<double>(), expected.get<double>(),
                1e-3 * expected.get<double>() + 1e-7)
        << saved;
    ++compared;
  }
  EXPECT_EQ(compared, model->gradients().specs().size());
  testing::count_fixtures("lora", "1 adapter equal to the reference");
  // Merged, it says the same.
  ASSERT_TRUE(model->merge_adapter("default").ok());
  check_logits("merged ");
}

TEST(Lora, ANewAdapterChangesNothingAndTrainsNothingButItself) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  const at::Tensor before = logits(*model, testing::two_sequences()).clone();
  auto adapter = LoraAdapter::create(model->config(), {.rank = 4, .alpha = 8}, 5);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  const std::size_t layers = static_cast<std::size_t>(model->config().layers);
  EXPECT_EQ(adapter->modules().size(), 7 * layers)
      << "all linear layers of the blocks, not the output layer";
  EXPECT_EQ(adapter->modules().front().scale, 2.0F);
  ASSERT_TRUE(model->add_adapter("new", std::move(*adapter)).ok());
  ASSERT_TRUE(model->use_adapter("new").ok());
  EXPECT_TRUE(logits(*model, testing::two_sequences()).equal(before));
  model->enable_gradients();
  EXPECT_EQ(model->gradients().arena_size(), model->trained_parameters().arena_size());
  EXPECT_LT(model->gradients().arena_size(), model->parameters().arena_size());
  loss(*model, testing::two_sequences(), true);
  for (const LoraModule& module : model->adapter("new")->modules()) {
    EXPECT_GT(model->gradients().view(module.b).norm().item<double>(), 0.0) << module.b;
    EXPECT_EQ(model->gradients().view(module.a).norm().item<double>(), 0.0)
        << module.a << ": B is zero";
  }
}

TEST(Lora, WorksWithEveryFamily) {
  for (const auto& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto model = load(folder.filename().string());
    ASSERT_NE(model, nullptr);
    ASSERT_TRUE(model
                    ->add_adapter("it", stirred(model->config(),
                                                {.rank = 3, .alpha = 6, .rank_stabilized = true}))
                    .ok());
    const at::Tensor base = logits(*model, testing::two_sequences()).clone();
    ASSERT_TRUE(model->use_adapter("it").ok());
    model->enable_gradients();
    loss(*model, testing::two_sequences(), true);
    // Against differences, in the module whose gradient is largest.
    const LoraModule* largest = nullptr;
    double most = 0;
    for (const LoraModule& module : model->adapter("it")->modules()) {
      const double norm = model->gradients().view(module.b).norm().item<double>();
      if (norm > most) most = norm, largest = &module;
    }
    ASSERT_NE(largest, nullptr);
    const at::Tensor gradient = model->gradients().view(largest->b).view({-1});
    const std::int64_t at = gradient.abs().argmax().item<std::int64_t>();
    at::Tensor value = model->adapter("it")->parameters().view(largest->b).view({-1});
    const double old = value[at].item<double>();
    constexpr double kStep = 1e-2;
    value[at].fill_(old + kStep);
    const double above = loss(*model, testing::two_sequences(), false);
    value[at].fill_(old - kStep);
    const double below = loss(*model, testing::two_sequences(), false);
    value[at].fill_(old);
    const double expected = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient[at].item<double>(), expected, 0.03 * std::abs(expected) + 2e-4)
        << largest->b;

    const at::Tensor adapted = logits(*model, testing::two_sequences()).clone();
    EXPECT_GT((adapted - base).abs().max().item<float>(), 1e-3F) << "it changes something";
    ASSERT_TRUE(model->merge_adapter("it").ok());
    EXPECT_LE((logits(*model, testing::two_sequences()) - adapted).abs().max().item<float>(),
              2e-4F);
    ASSERT_TRUE(model->unmerge_adapter().ok());
    EXPECT_TRUE(logits(*model, testing::two_sequences()).equal(adapted)) << "to the bit";
    ASSERT_TRUE(model->use_adapter("").ok());
    EXPECT_TRUE(logits(*model, testing::two_sequences()).equal(base));
  }
}

TEST(Lora, SeveralShareOneBase) {
  auto model = load("qwen2");
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model
                  ->add_adapter(
                      "one", stirred(model->config(), {.rank = 2, .target_modules = {"q_proj"}}, 1))
                  .ok());
  ASSERT_TRUE(
      model
          ->add_adapter("two", stirred(model->config(),
                                       {.rank = 5, .target_modules = {"down_proj", "v_proj"}}, 2))
          .ok());
  std::map<std::string, at::Tensor> outputs;
  for (const std::string name : {"", "one", "two"}) {
    ASSERT_TRUE(model->use_adapter(name).ok());
    outputs[name] = logits(*model, testing::two_sequences()).clone();
  }
  EXPECT_FALSE(outputs[""].equal(outputs["one"]));
  EXPECT_FALSE(outputs["one"].equal(outputs["two"]));
  ASSERT_TRUE(model->use_adapter("one").ok());
  EXPECT_TRUE(logits(*model, testing::two_sequences()).equal(outputs["one"]));

  EXPECT_EQ(model->use_adapter("three").message(), "there is no adapter called three (one, two)");
  EXPECT_EQ(model->add_adapter("one", stirred(model->config(), {})).message(),
            "there is an adapter called one already");
  EXPECT_EQ(model->unmerge_adapter().message(), "no adapter is merged into the weights");
  ASSERT_TRUE(model->merge_adapter("two").ok());
  EXPECT_EQ(model->use_adapter("one").message(),
            "adapter two is merged into the weights: unmerge it first");
}

TEST(Lora, IsSavedAsPeftReadsItAndReadBackToTheBit) {
  const support::TemporaryFolder temporary;
  auto model = load("gpt2");
  ASSERT_NE(model, nullptr);
  const LoraConfig config{.rank = 4,
                          .alpha = 12.5,
                          .dropout = 0.1,
                          .target_modules = {"c_attn", "c_fc"},
                          .layers = {1},
                          .rank_pattern = {{"mlp.c_fc", 2}},
                          .base_model = "gpt2"};
  const LoraAdapter adapter = stirred(model->config(), config);
  ASSERT_EQ(adapter.modules().size(), 2u);
  EXPECT_EQ(adapter.modules()[0].a, "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight");
  EXPECT_EQ(adapter.parameters().view(adapter.modules()[1].a).size(0), 2) << "of another rank";
  EXPECT_FLOAT_EQ(adapter.modules()[1].scale, 6.25F);
  ASSERT_TRUE(adapter.save(temporary.path()).ok());
  const auto again = LoraAdapter::load(model->config(), temporary.path());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->config(), config);
  EXPECT_TRUE(again->parameters().arena().equal(adapter.parameters().arena()));
}

// As PEFT does it: a file may well name the exception after the rule, and then it is none.
TEST(Lora, OfSeveralPatternsTheFilesFirstCounts) {
  auto model = load("qwen2");
  ASSERT_NE(model, nullptr);
  const auto ranks = [&](const std::string& patterns) {
    const auto written = nlohmann::ordered_json::parse(
        R"({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"], "rank_pattern": )" +
        patterns + "}");
    const auto config = LoraConfig::from_json(written, "adapter_config.json");
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    const auto again = LoraConfig::from_json(config->to_json(), "again");
    EXPECT_TRUE(again.ok() && *again == *config);
    const LoraAdapter adapter = stirred(model->config(), *config);
    return std::vector<std::int64_t>{adapter.parameters().view(adapter.modules()[0].a).size(0),
                                     adapter.parameters().view(adapter.modules()[1].a).size(0)};
  };
  EXPECT_EQ(ranks(R"({"q_proj": 2, "layers\\.1\\.self_attn\\.q_proj": 4})"),
            (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(ranks(R"({"layers\\.1\\.self_attn\\.q_proj": 4, "q_proj": 2})"),
            (std::vector<std::int64_t>{2, 4}));
}

TEST(Lora, PeftReadsWhatWasSaved) {
  for (const std::string name : {"qwen2", "gpt2", "phi3"}) {
    const support::TemporaryFolder temporary;
    auto model = load(name);
    ASSERT_NE(model, nullptr);
    ASSERT_TRUE(
        model
            ->add_adapter("it", stirred(model->config(), {.rank = 4,
                                                          .alpha = 8,
                                                          .rank_stabilized = true,
                                                          .exclude_modules = {"down_proj"}}))
            .ok());
    ASSERT_TRUE(model->adapter("it")->save(temporary.path()).ok());
    ASSERT_TRUE(model->use_adapter("it").ok());
    PackedBatch batch;
    const std::vector<std::int32_t> ids{3, 14, 15, 9, 26, 5};
    batch.append(ids);
    const at::Tensor last = logits(*model, batch)[-1].contiguous();
    const json expected = {
        {"input_ids", ids},
        {"logits_last", std::vector<float>(last.const_data_ptr<float>(),
                                           last.const_data_ptr<float>() + last.numel())}};
    std::ofstream(temporary.file("expected.json")) << expected;
    const char* python = std::getenv("STARLING_PYTHON");  // one with torch, transformers and peft
    const std::string command =
        (python != nullptr ? python : "python3") +
        std::string(" " STARLING_SOURCE_DIR "/tests/rl/model/check_with_peft.py ") +
        testing::model_folder(name).string() + " " + temporary.path().string() + " " +
        temporary.file("expected.json");
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
      GTEST_SKIP() << "needs peft: set STARLING_PYTHON to a python that has it";
    EXPECT_EQ(WEXITSTATUS(status), 0) << name;
  }
}

TEST(Lora, TargetsAreNamesEndingsOrAnExpression) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  const auto count = [&](LoraConfig config) {
    auto adapter = LoraAdapter::create(model->config(), config, 1);
    EXPECT_TRUE(adapter.ok()) << adapter.status().to_string();
    return adapter.ok() ? adapter->modules().size() : 0;
  };
  const auto layers = static_cast<std::size_t>(model->config().layers);
  EXPECT_EQ(count({.target_modules = {"model.layers.0.mlp.up_proj"}}), 1u);
  EXPECT_EQ(count({.target_modules = {"self_attn.q_proj", "up_proj"}}), 2 * layers);
  EXPECT_EQ(count({.target_modules = {},
                   .target_pattern = R"(model\.layers\.\d+\.self_attn\.[qk]_proj)"}),
            2 * layers);
  EXPECT_EQ(count({.exclude_modules = {"down_proj", "gate_proj"}}), 5 * layers);
  EXPECT_EQ(count({.layers = {0}}), 7u);
}

TEST(Lora, DropoutIsForTrainingAlone) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(
      model->add_adapter("it", stirred(model->config(), {.rank = 4, .alpha = 64, .dropout = 0.5}))
          .ok());
  ASSERT_TRUE(model->use_adapter("it").ok());
  const double fixed = loss(*model, testing::two_sequences(), false);
  EXPECT_EQ(loss(*model, testing::two_sequences(), false), fixed);
  model->enable_gradients();
  const double first = loss(*model, testing::two_sequences(), false);
  const double second = loss(*model, testing::two_sequences(), false);
  EXPECT_NE(first, second);
  EXPECT_NEAR(first, fixed, 2.0);
}

// As DPO looks through its base, and its reference's adapter, in the midst of an update.
TEST(Lora, GradientsStayWithTheAdapterThatTheyAreOf) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model->add_adapter("it", stirred(model->config(), {.rank = 4})).ok());
  ASSERT_TRUE(model->add_adapter("other", stirred(model->config(), {.rank = 2}, 2)).ok());
  ASSERT_TRUE(model->use_adapter("it").ok());
  model->enable_gradients();
  loss(*model, testing::two_sequences(), true);
  const at::Tensor gathered = model->gradients().arena().clone();
  EXPECT_GT(gathered.abs().sum().item<float>(), 0.0F);
  const void* memory = model->gradients().arena().const_data_ptr();
  for (const char* name : {"", "other"}) {
    ASSERT_TRUE(model->use_adapter(name).ok());
    EXPECT_FALSE(model->gradients_enabled()) << name << ": nothing of it is trained";
    loss(*model, testing::two_sequences(), false);
    ASSERT_TRUE(model->use_adapter("it").ok());
    ASSERT_TRUE(model->gradients_enabled());
    EXPECT_TRUE(model->gradients().arena().equal(gathered)) << name;
    EXPECT_EQ(model->gradients().arena().const_data_ptr(), memory) << "allocated once";
  }
  loss(*model, testing::two_sequences(), true);
  EXPECT_TRUE(at::allclose(model->gradients().arena(), gathered * 2));
}

TEST(Lora, MistakesAreToldByName) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  const auto message = [&](const LoraConfig& config) {
    return LoraAdapter::create(model->config(), config, 1).status().message();
  };
  EXPECT_EQ(message({.target_modules = {"q_porj"}}),
            "LoRA: target_modules: the model has no linear layer q_porj that an adapter can be "
            "applied to (down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj it has)");
  EXPECT_NE(message({.target_modules = {"lm_head"}}).find("no linear layer lm_head"),
            std::string::npos);
  EXPECT_NE(message({.target_modules = {}, .target_pattern = "(q_proj"})
                .find("target_modules \"(q_proj\""),
            std::string::npos)
      << message({.target_modules = {}, .target_pattern = "(q_proj"});
  EXPECT_NE(message({.layers = {99}}).find("leaves no linear layer"), std::string::npos);
  EXPECT_NE(message({.rank = 0}).find("LoRA: r must be"), std::string::npos);
  EXPECT_NE(message({.dropout = 1.0}).find("lora_dropout"), std::string::npos);
}

TEST(Lora, WhatAnAdaptersFileMayNotSayIsRefusedByName) {
  const auto folder = testing::model_folder("llama_lora");
  const json good = testing::read_json(folder / "adapter_config.json");
  const auto refused = [&](const char* key, const json& value) {
    json object = good;
    object[key] = value;
    return LoraConfig::from_json(object, "adapter_config.json").status();
  };
  EXPECT_EQ(refused("use_dora", true).code(), ErrorCode::kUnimplemented);
  EXPECT_NE(refused("use_dora", true).message().find("use_dora"), std::string::npos);
  EXPECT_EQ(refused("bias", "all").code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(refused("peft_type", "IA3").code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(refused("modules_to_save", {"lm_head"}).code(), ErrorCode::kUnimplemented);
  EXPECT_NE(refused("init_lora_weights", "pissa_niter_4").message().find("init_lora_weights"),
            std::string::npos);  // it changes the base
  EXPECT_TRUE(refused("init_lora_weights", "gaussian").ok());
  EXPECT_EQ(refused("target_parameters", {"experts.gate_up_proj"}).code(),
            ErrorCode::kUnimplemented);
  EXPECT_TRUE(refused("target_parameters", json::array()).ok());
  EXPECT_NE(refused("exclude_modules", ".*down_proj").message().find("exclude_modules"),
            std::string::npos);
  EXPECT_EQ(refused("r", -4).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("r", 1e30).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("target_modules", 3).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("rank_pattern", {{"q_proj", "many"}}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused("layers_to_transform", {1, -2}).code(), ErrorCode::kUnimplemented);
}

// Of another model, of another rank, or damaged.
TEST(Lora, AdaptersThatDoNotFitAreRefusedByName) {
  auto model = load("llama");
  ASSERT_NE(model, nullptr);
  const auto folder = testing::model_folder("llama_lora");
  const json good = testing::read_json(folder / "adapter_config.json");
  auto other = load("gpt2");
  ASSERT_NE(other, nullptr);
  EXPECT_NE(LoraAdapter::load(other->config(), folder).status().message().find("no linear layer"),
            std::string::npos);
  const support::TemporaryFolder temporary;
  std::filesystem::copy(
      folder, temporary.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  json changed = good;
  changed["r"] = 5;
  std::ofstream(temporary.path() / "adapter_config.json") << changed;
  EXPECT_NE(
      LoraAdapter::load(model->config(), temporary.path())
          .status()
          .message()
          .find(
              "of the wrong shape base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"),
      std::string::npos)
      << LoraAdapter::load(model->config(), temporary.path()).status().message();
  changed = good;
  changed["target_modules"] = {"q_proj"};
  std::ofstream(temporary.path() / "adapter_config.json") << changed;
  EXPECT_NE(LoraAdapter::load(model->config(), temporary.path())
                .status()
                .message()
                .find("unexpected base_model.model.model.layers.0."),
            std::string::npos);
  std::ofstream(temporary.path() / "adapter_config.json") << "{";
  EXPECT_EQ(LoraAdapter::load(model->config(), temporary.path()).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(LoraAdapter::load(model->config(), temporary.path() / "nowhere").status().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
