// Requests of random ids through the engine, timed: what bench_rollout's figures and suites are
// made of.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/micro/rollout_machine.h"
#include "rl/model/transformer.h"
#include "rl/rollout/engine.h"

namespace bench {

struct Options {
  std::string model;
  std::vector<std::int64_t> batches{1, 16, 64};
  std::vector<std::int64_t> lengths{32, 128, 512};
  std::int64_t prompt_tokens = 48;
  std::int64_t new_tokens = 32;
  std::vector<std::string> weights{"fp32"};
  std::vector<std::string> suites;
  std::string device = "cpu";
  int threads = 0;
  int repeat = 3;
  bool json = false;
};

// An engine of a kind that --weights names.
inline rl::EngineOptions engine_options(const std::string& weights) {
  rl::EngineOptions options;
  options.cache.bytes_max = std::int64_t{8} << 30;
  options.weights = weights == "int8" ? rl::EngineWeights::kInt8 : rl::EngineWeights::kFp32;
  options.deterministic = weights != "aten";
  return options;
}

// Random ids, sampled at temperature 1, end-of-sequence ignored.
inline rl::Request random_request(const rl::Transformer& model, std::mt19937& generator,
                                  std::int64_t prompt_tokens, std::int64_t new_tokens) {
  rl::Request request;
  for (std::int64_t t = 0; t < prompt_tokens; ++t) {
    request.prompt_ids.push_back(static_cast<std::int32_t>(
        generator() % static_cast<std::uint64_t>(model.config().vocab_size)));
  }
  request.sampling.max_new_tokens = new_tokens;
  request.sampling.ignore_eos = true;
  request.sampling.seed = generator();
  return request;
}

// All completions, or what went wrong with the first that failed.
inline runtime::Result<std::vector<rl::Completion>> generate(
    rl::Engine& engine, std::span<const rl::Request> requests,
    const rl::Engine::OnStep& on_step = nullptr) {
  auto completions = engine.generate(requests, on_step);
  if (!completions.ok()) return completions;
  for (const rl::Completion& completion : *completions) {
    if (!completion.status.ok()) return completion.status;
  }
  return completions;
}

// A batch of requests of one length.
struct BatchShape {
  std::int64_t batch = 1;
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
};

struct BatchRun {
  double prefill_tok_per_s = 0;
  double decode_tok_per_s = 0;
  std::int64_t copied_weight_bytes = 0;
  std::vector<rl::Request> requests;
  std::vector<rl::Completion> completions;
};

// Decoding is timed from the first step after all prompts are read.
inline runtime::Result<BatchRun> run_batch(const rl::Transformer& model, const BatchShape& shape,
                                           const std::string& weights, std::uint32_t seed) {
  std::mt19937 generator(seed);
  BatchRun run;
  for (std::int64_t i = 0; i < shape.batch; ++i)
    run.requests.push_back(random_request(model, generator, shape.prompt_tokens, shape.new_tokens));
  // One step reads all prompts, so that every later step only decodes.
  rl::EngineOptions how = engine_options(weights);
  how.sequences_max = shape.batch;
  how.step_tokens_max = shape.batch * shape.prompt_tokens;
  auto engine = rl::Engine::create(model, how);
  if (!engine.ok()) return engine.status();
  const Clock::time_point start = Clock::now();
  double prefilled = 0;
  auto completions = generate(**engine, run.requests, [&](const rl::EngineProgress&) {
    if (prefilled == 0) prefilled = seconds_since(start);
    return true;
  });
  const double end = seconds_since(start);
  if (!completions.ok()) return completions.status();
  run.prefill_tok_per_s = static_cast<double>(shape.batch * shape.prompt_tokens) / prefilled;
  run.decode_tok_per_s =
      static_cast<double>(shape.batch * (shape.new_tokens - 1)) / (end - prefilled);
  run.copied_weight_bytes = (*engine)->copied_weight_bytes();
  run.completions = std::move(*completions);
  return run;
}

// |reported - what fp32 says| of log-probs of sampled tokens.
struct Difference {
  double sum = 0;
  double largest = 0;
  std::int64_t tokens = 0;
};

// Adds the sampled tokens of up to `completions_max` completions.
inline runtime::Status add_differences(const rl::Transformer& model, const BatchRun& run,
                                       std::size_t completions_max, Difference& difference) {
  rl::PackedBatch batch;
  std::vector<float> reported;
  for (std::size_t i = 0; i < std::min(completions_max, run.completions.size()); ++i) {
    const rl::Completion& completion = run.completions[i];
    std::vector<std::int32_t> ids = run.requests[completion.request].prompt_ids;
    const auto prompt = static_cast<std::int64_t>(ids.size());
    ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
    batch.append(ids, prompt);
    reported.insert(reported.end(), completion.logprobs.begin(), completion.logprobs.end());
  }
  auto scored = model.token_logprobs(batch);
  if (!scored.ok()) return scored.status();
  const float* expected = scored->logprobs_N.const_data_ptr<float>();
  for (std::size_t i = 0; i < reported.size(); ++i) {
    const double apart = std::abs(double{reported[i]} - double{expected[i]});
    difference.sum += apart;
    difference.largest = std::max(difference.largest, apart);
    ++difference.tokens;
  }
  return {};
}

}  // namespace bench
