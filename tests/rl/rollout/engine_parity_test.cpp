// The engine against reference numbers and against the trainer's forward pass.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"
#include "tests/rl/fixture_counts.h"
#include "tests/rl/model/fixtures.h"
#include "tiny_model.h"

namespace rl {
namespace {

using testing::engine_logprobs;
using testing::model_cases;
using testing::read_json;
using testing::trainer_logprobs;

Request greedy_request(std::vector<std::int32_t> prompt, std::int64_t new_tokens, bool ignore_eos) {
  Request request{.prompt_ids = std::move(prompt)};
  request.sampling.temperature = 0.0F;
  request.sampling.max_new_tokens = new_tokens;
  request.sampling.ignore_eos = ignore_eos;
  request.sampling.prompt_logprobs = true;
  return request;
}

TEST(EngineParity, ReproducesTheFixtureModels) {
  int checked = 0;
  for (const std::filesystem::path& folder : model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto model = Transformer::load(folder);
    if (!model.ok() && model.status().code() == runtime::ErrorCode::kUnimplemented) continue;
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    auto engine = Engine::create(**model);
    ASSERT_TRUE(engine.ok()) << engine.status().to_string();
    const nlohmann::json reference = read_json(folder / "reference.json");
    const auto prompt = reference["input_ids"][0].get<std::vector<std::int32_t>>();
    const auto expected = reference["greedy_row0"].get<std::vector<std::int32_t>>();
    const std::vector<Request> requests{
        greedy_request(prompt, static_cast<std::int64_t>(expected.size()), true)};
    auto completions = (*engine)->generate(requests);
    ASSERT_TRUE(completions.ok()) << completions.status().to_string();
    ASSERT_TRUE(completions->front().status.ok()) << completions->front().status.to_string();
    ++checked;
    EXPECT_EQ(engine_logprobs(*completions), trainer_logprobs(**model, requests, *completions));
    // Angles of dynamic scaling depend on the length of the whole sequence, which the reference
    // takes again at every token.
    if ((*model)->config().rope.kind == RopeConfig::Kind::kDynamic) continue;
    EXPECT_EQ(completions->front().ids, expected);
    const auto token_logprobs = reference["token_logprobs"][0].get<std::vector<float>>();
    ASSERT_EQ(completions->front().prompt_logprobs.size(), token_logprobs.size());
    for (std::size_t i = 0; i < token_logprobs.size(); ++i)
      EXPECT_NEAR(completions->front().prompt_logprobs[i], token_logprobs[i], 1e-4);
  }
  testing::count_fixtures(
      "generation",
      std::to_string(checked) + " models generate as the trainer computes, bit for bit");
  EXPECT_GE(checked, 2);
}

TEST(EngineParity, ReproducesSmolLm2) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf)
    GTEST_SKIP() << "SmolLM2's GGUF file is not in the cache; .ci/fetch_wheels.sh model fetches it";
  auto model = Transformer::load(*gguf);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  auto engine = Engine::create(**model);
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  const nlohmann::json reference = read_json(testing::fixtures() / "smollm2" / "reference.json");
  std::vector<Request> requests;
  for (const nlohmann::json& row : reference) {
    requests.push_back(greedy_request(row["prompt_ids"].get<std::vector<std::int32_t>>(),
                                      static_cast<std::int64_t>(row["greedy_ids"].size()), false));
  }
  auto completions = (*engine)->generate(requests);
  ASSERT_TRUE(completions.ok()) << completions.status().to_string();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    const Completion& completion = (*completions)[i];
    EXPECT_EQ(completion.ids, reference[i]["greedy_ids"].get<std::vector<std::int32_t>>());
    std::vector<float> logprobs = completion.prompt_logprobs;
    logprobs.insert(logprobs.end(), completion.logprobs.begin(), completion.logprobs.end());
    const auto expected = reference[i]["token_logprobs"].get<std::vector<float>>();
    ASSERT_LE(expected.size(), logprobs.size());
    for (std::size_t t = 0; t < expected.size(); ++t)
      ASSERT_NEAR(logprobs[t], expected[t], 1e-3) << t;
  }
  EXPECT_EQ(engine_logprobs(*completions), trainer_logprobs(**model, requests, *completions));
}

}  // namespace
}  // namespace rl
