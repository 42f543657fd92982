// The engine with deterministic=false: the same pass by ATen, which is what runs on other devices.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rl/model/device.h"
#include "tests/rl/fixture_counts.h"
#include "tests/rl/model/fixtures.h"
#include "tiny_model.h"

namespace rl {
namespace {

using testing::engine_logprobs;
using testing::largest_difference;
using testing::make_engine;
using testing::sampled_request;
using testing::sampled_requests;
using testing::tiny_model;
using testing::trainer_logprobs;

constexpr double kNear = 1e-4;

// On one of ATen's threads: several wait for each other by spinning, which takes minutes where
// other tests run.
class EngineAten : public ::testing::Test {
 protected:
  EngineAten() { at::set_num_threads(1); }
  ~EngineAten() override { at::set_num_threads(threads_); }

 private:
  const int threads_ = at::get_num_threads();
};

EngineOptions aten_options(EngineOptions options = {}) {
  options.deterministic = false;
  return options;
}

std::vector<Completion> generate_by_aten(Engine& engine, std::span<const Request> requests) {
  auto completions = engine.generate(requests);
  EXPECT_TRUE(completions.ok()) << completions.status().to_string();
  for (const Completion& completion : *completions)
    EXPECT_TRUE(completion.status.ok()) << completion.status.to_string();
  return std::move(*completions);
}

// Every family: prompts whole and in pieces next to what decodes, sequences of many lengths
// together, prompts scored.
TEST_F(EngineAten, IsNearTheDeterministicForwardOnTheFixtureModels) {
  int checked = 0;
  double largest = 0;
  for (const std::filesystem::path& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto model = Transformer::load(folder);
    if (!model.ok() && model.status().code() == runtime::ErrorCode::kUnimplemented) continue;
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    if ((*model)->config().task != ModelTask::kCausalLm) continue;
    std::vector<Request> requests = sampled_requests(
        9, 3, {.new_max = 24, .vocab = static_cast<std::int32_t>((*model)->config().vocab_size)});
    for (Request& request : requests) request.sampling.prompt_logprobs = true;
    for (const std::int64_t step_tokens : {512, 11}) {
      const auto engine = make_engine(**model, aten_options({.step_tokens_max = step_tokens}));
      const std::vector<Completion> completions = generate_by_aten(*engine, requests);
      const double apart = largest_difference(engine_logprobs(completions),
                                              trainer_logprobs(**model, requests, completions));
      EXPECT_LE(apart, kNear);
      EXPECT_GT(apart, 0) << "the kernels computed";
      largest = std::max(largest, apart);
    }
    ++checked;
  }
  testing::count_fixtures("generation_aten", std::to_string(checked) +
                                                 " models generate by ATen with log-probs within " +
                                                 std::to_string(largest) + " of the trainer's");
  EXPECT_GE(checked, 2);
}

TEST_F(EngineAten, IsNearOnSmolLm2) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf)
    GTEST_SKIP() << "SmolLM2's GGUF file is not in the cache; .ci/fetch_wheels.sh model fetches it";
  auto model = Transformer::load(*gguf);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const auto engine = make_engine(**model, aten_options());
  const std::vector<Request> requests =
      sampled_requests(4, 5, {.new_max = 12, .n_max = 2, .vocab = 40000});
  const std::vector<Completion> completions = generate_by_aten(*engine, requests);
  EXPECT_LE(
      largest_difference(engine_logprobs(completions),
                         trainer_logprobs(**model, requests, completions, /*with_prompts=*/false)),
      kNear);
}

// The same seeds, so nearly always the same draws: what a draw goes by differs in its last bits.
TEST_F(EngineAten, DrawsAsTheDeterministicEngineDoes) {
  const auto model = tiny_model(4);
  std::vector<Request> requests = sampled_requests(40, 8, {.new_max = 30});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SamplingParams& sampling = requests[i].sampling;
    sampling.temperature = i % 5 == 0 ? 0.0F : 0.8F;
    sampling.top_k = i % 3 == 0 ? 7 : 0;
    sampling.top_p = i % 4 == 0 ? 0.9F : 1.0F;
    sampling.min_p = i % 7 == 0 ? 0.05F : 0.0F;
    if (i % 11 == 0) sampling.repetition_penalty = 1.2F;  // chosen on the host
    if (i % 13 == 0) sampling.top_logprobs = 3;
  }
  const auto expected = generate_by_aten(*make_engine(*model), requests),
             found = generate_by_aten(*make_engine(*model, aten_options()), requests);
  ASSERT_EQ(found.size(), expected.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < found.size(); ++i) differ += found[i].ids != expected[i].ids ? 1 : 0;
  EXPECT_LE(differ, 2U);
}

TEST_F(EngineAten, PreemptsSwapsAndKeepsPrefixes) {
  const auto model = tiny_model(6);
  std::vector<Request> requests = sampled_requests(30, 2, {.prompt_max = 60, .new_max = 40});
  for (Request& request : requests) request.prompt_ids.insert(request.prompt_ids.begin(), 20, 9);
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    EngineOptions options =
        aten_options({.sequences_max = 12, .step_tokens_max = 50, .preemption = preemption});
    options.cache.bytes_max = 20 * make_engine(*model)->cache().block_bytes();
    const auto engine = make_engine(*model, options);
    const std::vector<Completion> completions = generate_by_aten(*engine, requests);
    EXPECT_LE(
        largest_difference(engine_logprobs(completions),
                           trainer_logprobs(*model, requests, completions, /*with_prompts=*/false)),
        kNear);
    EXPECT_GT(engine->stats().preemptions, 0);
    EXPECT_GT(engine->stats().cached_tokens, 0);
    EXPECT_EQ(engine->stats().swaps > 0, preemption == Preemption::kSwap);
    EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
  }
}

// Blocks that held a broken sequence's keys and values come to others, whose places behind their
// end they fill.
TEST_F(EngineAten, FailsOnlyTheRequestWhoseLogitsAreNotFinite) {
  const auto model = tiny_model();
  model->parameters().view("model.embed_tokens.weight").select(0, 50).fill_(std::nan(""));
  const auto engine = make_engine(*model, aten_options());
  std::vector<Request> broken(4, sampled_request(std::vector<std::int32_t>(40, 50), 4, 1));
  broken[1].sampling.top_k = 3;
  broken[2].sampling.temperature = 0.0F;
  auto completions = engine->generate(broken);
  ASSERT_TRUE(completions.ok()) << completions.status().to_string();
  for (const Completion& completion : *completions)
    EXPECT_NE(completion.status.message().find("not finite"), std::string::npos)
        << completion.status.to_string();
  std::vector<Request> sound;
  for (int i = 0; i < 4; ++i)
    sound.push_back(
        sampled_request(std::vector<std::int32_t>(static_cast<std::size_t>(8 + 2 * i), i), 12,
                        1));  // of unequal lengths in one group
  for (Request& request : sound) request.sampling.logit_bias = {{.id = 50, .bias = -1000}};
  sound.push_back(broken[0]);
  completions = engine->generate(sound);
  ASSERT_TRUE(completions.ok());
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE((*completions)[i].status.ok()) << (*completions)[i].status.to_string();
}

TEST_F(EngineAten, SearchesBeamsAndScoresPrompts) {
  const auto model = tiny_model(2);
  Request request = sampled_request({5, 6, 7, 8}, 8, 1, 2);
  request.sampling.beam.width = 3;
  const auto expected = generate_by_aten(*make_engine(*model), std::span(&request, 1)),
             found = generate_by_aten(*make_engine(*model, aten_options()), std::span(&request, 1));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].ids, expected[i].ids);
    EXPECT_NEAR(found[i].beam_score, expected[i].beam_score, kNear);
  }
  request.sampling.beam = {};
  request.sampling.prompt_top_logprobs = 2;
  const auto scored =
      generate_by_aten(*make_engine(*model, aten_options()), std::span(&request, 1));
  ASSERT_EQ(scored.front().prompt_top_logprobs.size(), 3U);
  EXPECT_GE(scored.front().prompt_top_logprobs[0][0].logprob,
            scored.front().prompt_top_logprobs[0][1].logprob);
}

TEST_F(EngineAten, RefusesWhatDoesNotGoWithIt) {
  const auto model = tiny_model();
  const auto int8 = Engine::create(*model, aten_options({.weights = EngineWeights::kInt8}));
  ASSERT_FALSE(int8.ok());
  EXPECT_NE(int8.status().message().find("take fp32 weights"), std::string::npos)
      << int8.status().to_string();
  EXPECT_EQ(Engine::create(*model, {.device = "TPU"}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(Engine::create(*model, {.device = "tpu"}).status().code(),
            runtime::ErrorCode::kUnavailable)
      << "it may have a plugin elsewhere";
  EXPECT_EQ(Engine::create(*model, {.device = "cuda:x"}).status().code(),
            runtime::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Engine::create(*model, {.device = "cpu"}).ok());
  const auto cuda = Engine::create(*model, {.device = "cuda"});
  ASSERT_FALSE(cuda.ok());  // the model is on the CPU in any case
  if (!find_device("cuda").ok()) {
    EXPECT_EQ(cuda.status().code(), runtime::ErrorCode::kUnavailable);
    EXPECT_NE(cuda.status().message().find("take device cpu"), std::string::npos)
        << cuda.status().to_string();
  }
}

}  // namespace
}  // namespace rl
