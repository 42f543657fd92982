// A random model small enough for thousands of requests.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"

namespace rl::testing {

inline ModelConfig tiny_config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 48;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 12;
  config.intermediate_size = 96;
  config.vocab_size = 160;
  config.max_position_embeddings = 128;
  config.initializer_range = 0.3F;  // large: its distributions are far from uniform
  config.eos_ids = {2};
  return config;
}

inline std::unique_ptr<Transformer> tiny_model(std::uint64_t seed = 1) {
  return std::make_unique<Transformer>(tiny_config(), Parameters::random(tiny_config(), seed));
}

inline std::vector<std::int32_t> random_prompt(std::mt19937& generator, std::size_t length,
                                               std::int32_t vocab = 160) {
  std::vector<std::int32_t> ids;
  while (ids.size() < length)
    ids.push_back(static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(vocab)));
  return ids;
}

inline Request sampled_request(std::vector<std::int32_t> prompt, std::int64_t new_tokens,
                               std::uint64_t seed, std::int64_t n = 1) {
  Request request{.prompt_ids = std::move(prompt), .n = n};
  request.sampling.max_new_tokens = new_tokens;
  request.sampling.seed = seed;
  request.sampling.ignore_eos = true;
  return request;
}

/// Up to which lengths and numbers sampled_requests() draws.
struct RequestRange {
  std::uint32_t prompt_max = 40;
  std::uint32_t new_max = 20;
  std::uint32_t n_max = 3;
  std::int32_t vocab = 160;
};

/// Requests of random prompts, lengths and group sizes.
inline std::vector<Request> sampled_requests(int count, std::uint32_t seed,
                                             const RequestRange& range = {}) {
  std::mt19937 generator(seed);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> prompt =
        random_prompt(generator, 1 + generator() % range.prompt_max, range.vocab);
    const std::int64_t new_tokens = 1 + generator() % range.new_max;
    const std::uint64_t of_draws = generator();
    requests.push_back(
        sampled_request(std::move(prompt), new_tokens, of_draws, 1 + generator() % range.n_max));
  }
  return requests;
}

inline std::unique_ptr<Engine> make_engine(const Transformer& model,
                                           const EngineOptions& options = {}) {
  auto engine = Engine::create(model, options);
  EXPECT_TRUE(engine.ok()) << engine.status().to_string();
  return std::move(*engine);
}

/// The tokens that the trainer is given for a completion.
inline std::vector<std::int32_t> prompt_and_completion(std::span<const Request> requests,
                                                       const Completion& completion) {
  std::vector<std::int32_t> ids = requests[completion.request].prompt_ids;
  ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
  return ids;
}

/// What the trainer says of completions in one packed batch: of every token that has one before it,
/// or of the sampled ones alone.
inline std::vector<float> trainer_logprobs(const Transformer& model,
                                           std::span<const Request> requests,
                                           std::span<const Completion> completions,
                                           bool with_prompts = true, const PassOptions& how = {}) {
  PackedBatch batch;
  for (const Completion& completion : completions) {
    const std::vector<std::int32_t> ids = prompt_and_completion(requests, completion);
    if (ids.size() > 1)
      batch.append(ids, with_prompts ? 1
                                     : static_cast<std::int64_t>(
                                           requests[completion.request].prompt_ids.size()));
  }
  auto scored = model.token_logprobs(batch, {}, how);
  EXPECT_TRUE(scored.ok()) << scored.status().to_string();
  if (!scored.ok()) return {};
  const float* values = scored->logprobs_N.const_data_ptr<float>();
  return {values, values + scored->logprobs_N.numel()};
}

/// What the engine said of the same tokens.
inline std::vector<float> engine_logprobs(std::span<const Completion> completions) {
  std::vector<float> all;
  for (const Completion& completion : completions) {
    all.insert(all.end(), completion.prompt_logprobs.begin(), completion.prompt_logprobs.end());
    all.insert(all.end(), completion.logprobs.begin(), completion.logprobs.end());
  }
  return all;
}

/// The largest difference of two numbers at a place; infinite where one is NaN.
inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double apart = std::fabs(double{a[i]} - double{b[i]});
    largest =
        std::isnan(apart) ? std::numeric_limits<double>::infinity() : std::max(largest, apart);
  }
  return largest;
}

}  // namespace rl::testing
