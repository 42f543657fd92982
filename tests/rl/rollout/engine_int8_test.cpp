// The engine with its linear layers in 8 bits.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rl/model/quantized_weights.h"
#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"
#include "tests/rl/fixture_counts.h"
#include "tests/rl/model/fixtures.h"
#include "tiny_model.h"

namespace rl {
namespace {

using testing::engine_logprobs;
using testing::sampled_request;
using testing::sampled_requests;
using testing::tiny_model;
using testing::trainer_logprobs;

std::unique_ptr<Engine> make_int8_engine(const Transformer& model, EngineOptions options = {}) {
  options.weights = EngineWeights::kInt8;
  auto engine = Engine::create(model, options);
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  return std::move(*engine);
}

std::vector<Completion> generate_by_int8(Engine& engine, std::span<const Request> requests) {
  auto completions = engine.generate(requests);
  EXPECT_TRUE(completions.ok()) << completions.status().to_string();
  return std::move(*completions);
}

std::vector<Request> some_requests(int count, std::uint32_t seed, std::int32_t vocab = 160) {
  std::vector<Request> requests = sampled_requests(count, seed, {.vocab = vocab});
  for (Request& request : requests) request.sampling.prompt_logprobs = true;
  return requests;
}

void expect_all_same(const std::vector<Completion>& a, const std::vector<Completion>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].status.ok()) << a[i].status.to_string();
    EXPECT_EQ(a[i].ids, b[i].ids) << i;
    EXPECT_EQ(a[i].logprobs, b[i].logprobs) << i;
    EXPECT_EQ(a[i].prompt_logprobs, b[i].prompt_logprobs) << i;
  }
}

TEST(EngineInt8, GivesARequestTheSameBitsWhateverElseRuns) {
  const auto model = tiny_model();
  const std::vector<Request> requests = some_requests(30, 7);
  std::vector<Completion> alone;
  const auto single = make_int8_engine(*model);
  for (const Request& request : requests) {
    for (Completion& completion : generate_by_int8(*single, std::span(&request, 1)))
      alone.push_back(std::move(completion));
  }
  std::vector<EngineOptions> variants(4);
  variants[1].sequences_max = 3;
  variants[2].step_tokens_max = 7;
  variants[3].cache.bytes_max = 12 * single->cache().block_bytes();
  for (std::size_t v = 0; v < variants.size(); ++v) {
    SCOPED_TRACE(v);
    model->pool().set_threads(v == 0 ? 4 : 2);
    expect_all_same(generate_by_int8(*make_int8_engine(*model, variants[v]), requests), alone);
  }
}

// Every family, mixtures of experts among them. The engine is near what fp32 says about the same
// tokens. It says to the bit what a pass of the trainer's kind over the same 8-bit weights says.
TEST(EngineInt8, IsNearFp32OnTheFixtureModels) {
  int checked = 0;
  for (const std::filesystem::path& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto model = Transformer::load(folder);
    if (!model.ok() && model.status().code() == runtime::ErrorCode::kUnimplemented) continue;
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    if ((*model)->config().task != ModelTask::kCausalLm) continue;
    const auto engine = make_int8_engine(**model);
    const std::vector<Request> requests =
        some_requests(6, 3, static_cast<std::int32_t>((*model)->config().vocab_size));
    const std::vector<Completion> completions = generate_by_int8(*engine, requests);
    const std::vector<float> int8 = engine_logprobs(completions),
                             fp32 = trainer_logprobs(**model, requests, completions);
    ASSERT_EQ(int8.size(), fp32.size());
    double sum = 0, largest = 0;
    for (std::size_t i = 0; i < int8.size(); ++i) {
      ASSERT_TRUE(std::isfinite(int8[i]));
      const double difference = std::fabs(double{int8[i]} - double{fp32[i]});
      sum += difference;
      largest = std::max(largest, difference);
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(sum / static_cast<double>(int8.size()), 0.1);
    if (!(*model)->config().moe) {  // another expert's answer is another one
      EXPECT_LT(largest, 1.0);
    }
    auto weights = QuantizedWeights::create((*model)->config(), (*model)->parameters());
    ASSERT_TRUE(weights.ok()) << weights.status().to_string();
    (*weights)->refresh((*model)->pool());
    EXPECT_EQ(int8, trainer_logprobs(**model, requests, completions, /*with_prompts=*/true,
                                     {.quantized = weights->get()}));
    ++checked;
  }
  testing::count_fixtures(
      "generation_int8", std::to_string(checked) + " models generate with 8-bit weights near fp32");
  EXPECT_GE(checked, 2);
}

TEST(EngineInt8, UsesChangedWeightsFromTheRefreshOn) {
  const auto model = tiny_model(5);
  const auto engine = make_int8_engine(*model);
  const std::vector<Request> requests = some_requests(8, 9);
  const std::vector<Completion> before = generate_by_int8(*engine, requests);
  at::Tensor changed = model->parameters().view("model.layers.1.mlp.down_proj.weight");
  changed.mul_(-1.5F);
  expect_all_same(generate_by_int8(*engine, requests), before);  // until it is told
  engine->refresh_weights();
  const std::vector<Completion> after = generate_by_int8(*engine, requests);
  expect_all_same(after, generate_by_int8(*make_int8_engine(*model), requests));
  EXPECT_NE(engine_logprobs(after), engine_logprobs(before));
  changed.div_(-1.5F);
  engine->refresh_weights();
  EXPECT_EQ(generate_by_int8(*engine, requests).front().ids, before.front().ids);
}

TEST(EngineInt8, SaysWhatItsCopyTakes) {
  const auto model = tiny_model();
  const auto int8 = make_int8_engine(*model);
  auto fp32 = Engine::create(*model);
  ASSERT_TRUE(fp32.ok());
  EXPECT_EQ((*fp32)->copied_weight_bytes(), 0);
  (*fp32)->refresh_weights();
  EXPECT_GT(int8->copied_weight_bytes(), 0);
  EXPECT_LT(int8->copied_weight_bytes(), model->parameters().count() * 4 * 3 / 10);
}

TEST(EngineInt8, ReportsWeightsThatAreNotFinite) {
  const auto model = tiny_model();
  const auto engine = make_int8_engine(*model);
  model->parameters().view("lm_head.weight").mutable_data_ptr<float>()[100] =
      std::numeric_limits<float>::quiet_NaN();
  engine->refresh_weights();
  const std::vector<Request> requests = some_requests(1, 1);
  const std::vector<Completion> completions = generate_by_int8(*engine, requests);
  EXPECT_EQ(completions.front().finish_reason, FinishReason::kError);
}

TEST(EngineInt8, IsNearFp32OnSmolLm2) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf)
    GTEST_SKIP() << "SmolLM2's GGUF file is not in the cache; .ci/fetch_wheels.sh model fetches it";
  auto model = Transformer::load(*gguf);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const auto engine = make_int8_engine(**model);
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "smollm2" / "reference.json");
  std::vector<Request> requests;
  for (const nlohmann::json& row : reference)
    requests.push_back(sampled_request(row["prompt_ids"].get<std::vector<std::int32_t>>(), 16, 4));
  const std::vector<Completion> completions = generate_by_int8(*engine, requests);
  const std::vector<float> int8 = engine_logprobs(completions),
                           fp32 = trainer_logprobs(**model, requests, completions,
                                                   /*with_prompts=*/false);
  ASSERT_EQ(int8.size(), fp32.size());
  double sum = 0;
  for (std::size_t i = 0; i < int8.size(); ++i) {
    const double difference = std::fabs(int8[i] - fp32[i]);
    EXPECT_LT(difference, 0.5) << i;
    sum += difference;
  }
  EXPECT_LT(sum / static_cast<double>(int8.size()), 0.1);
}

}  // namespace
}  // namespace rl
