// A random model small enough for thousands of requests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "rl/model/transformer.h"
#include "rl/rollout/request.h"

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

inline std::vector<std::int32_t> random_prompt(std::mt19937& generator, std::size_t length, std::int32_t vocab = 160) {
  std::vector<std::int32_t> ids;
  while (ids.size() < length) ids.push_back(static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(vocab)));
  return ids;
}

inline Request sampled_request(std::vector<std::int32_t> prompt, std::int64_t new_tokens, std::uint64_t seed, std::int64_t n = 1) {
  Request request{.prompt_ids = std::move(prompt), .n = n};
  request.sampling.max_new_tokens = new_tokens;
  request.sampling.seed = seed;
  request.sampling.ignore_eos = true;
  return request;
}

}  // namespace rl::testing
