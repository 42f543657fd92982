// bench_rollout --suite: what continuous batching over a paged cache is for.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/micro/rollout_run.h"

namespace bench {

using Json = nlohmann::ordered_json;

// Tokens that a cell of the table reads at once, at most: beyond, it is left out.
inline constexpr std::int64_t kCellTokensMax = 16384;

// Decoding and reading prompts against batch and length: one object per cell.
inline runtime::Result<Json> table_suite(const rl::Transformer& model, const Options& options) {
  Json cells = Json::array();
  for (const std::string& weights : options.weights) {
    for (std::int64_t length : options.lengths) {
      for (std::int64_t batch : options.batches) {
        if (batch * length > kCellTokensMax) continue;
        std::vector<double> prefill, decode;
        for (int i = 0; i < options.repeat; ++i) {
          auto run = run_batch(
              model, {.batch = batch, .prompt_tokens = length, .new_tokens = options.new_tokens},
              weights, static_cast<std::uint32_t>(i + 1));
          if (!run.ok()) return run.status();
          prefill.push_back(run->prefill_tok_per_s);
          decode.push_back(run->decode_tok_per_s);
        }
        cells.push_back({{"weights", weights},
                         {"batch", batch},
                         {"length", length},
                         {"prefill_tok_per_s", spread_of(prefill).median},
                         {"decode_tok_per_s", spread_of(decode).median}});
      }
    }
  }
  return cells;
}

// Eight samples of one prompt of 512 tokens, against reading the prompt for one. Each has two
// tokens, so that every one has left the prompt's blocks.
inline runtime::Result<Json> samples_suite(const rl::Transformer& model, const Options& options) {
  constexpr std::int64_t kPromptTokens = 512, kSamples = 8;
  auto engine = rl::Engine::create(model, engine_options(options.weights.front()));
  if (!engine.ok()) return engine.status();
  std::vector<double> one, several;
  std::int64_t blocks = 0;
  for (int i = 0; i < options.repeat; ++i) {
    std::mt19937 generator(static_cast<std::uint32_t>(i + 1));
    rl::Request request = random_request(model, generator, kPromptTokens, 1);
    const auto timed = [&](std::vector<double>& seconds) -> runtime::Status {
      const Clock::time_point start = Clock::now();
      auto completions = generate(**engine, std::span(&request, 1));
      seconds.push_back(seconds_since(start));
      return completions.status();
    };
    if (runtime::Status status = timed(one); !status.ok()) return status;
    if (i == 0) blocks = (*engine)->stats().blocks_peak;
    request.n = kSamples;
    request.sampling.max_new_tokens = 2;
    if (runtime::Status status = timed(several); !status.ok()) return status;
  }
  return Json{{"prompt_tokens", kPromptTokens},
              {"samples", kSamples},
              {"one_s", spread_of(one).median},
              {"several_s", spread_of(several).median},
              {"ratio", spread_of(several).median / spread_of(one).median},
              {"blocks_of_one", blocks},
              {"blocks_of_several", (*engine)->stats().blocks_peak}};
}

// 64 requests whose lengths follow Pareto's law, 16 at a time. They start as places become free, or
// in batches padded until their longest is done, as transformers' generate() does it. Also in
// batches that their finished rows leave.
inline runtime::Result<Json> tail_suite(const rl::Transformer& model, const Options& options) {
  constexpr std::int64_t kRequests = 64, kPlaces = 16, kLongest = 256;
  std::mt19937 generator(20);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<rl::Request> requests;
  std::int64_t tokens = 0, longest = 0;
  for (std::int64_t i = 0; i < kRequests; ++i) {
    const auto length = static_cast<std::int64_t>(
        8.0 * std::pow(1.0 - uniform(generator), -1 / 1.1));  // shape 1.1, at least 8
    requests.push_back(
        random_request(model, generator, options.prompt_tokens, std::min(kLongest, length)));
    tokens += requests.back().sampling.max_new_tokens;
    longest = std::max(longest, requests.back().sampling.max_new_tokens);
  }
  rl::EngineOptions how = engine_options(options.weights.front());
  how.sequences_max = kPlaces;
  auto engine = rl::Engine::create(model, how);
  if (!engine.ok()) return engine.status();
  Clock::time_point start = Clock::now();
  if (auto completions = generate(**engine, requests); !completions.ok())
    return completions.status();
  const double continuous = seconds_since(start);

  double batches[2] = {};  // padded, not padded
  for (const bool padded : {true, false}) {
    for (std::int64_t first = 0; first < kRequests; first += kPlaces) {
      std::vector<rl::Request> part(requests.begin() + first, requests.begin() + first + kPlaces);
      std::int64_t last = 0;
      for (const rl::Request& request : part)
        last = std::max(last, request.sampling.max_new_tokens);
      for (rl::Request& request : part)
        request.sampling.max_new_tokens = padded ? last : request.sampling.max_new_tokens;
      start = Clock::now();
      if (auto completions = generate(**engine, part); !completions.ok())
        return completions.status();
      batches[padded ? 0 : 1] += seconds_since(start);
    }
  }
  const auto rate = [&](double seconds) { return static_cast<double>(tokens) / seconds; };
  return Json{{"requests", kRequests},
              {"places", kPlaces},
              {"tokens", tokens},
              {"longest", longest},
              {"continuous_tok_per_s", rate(continuous)},
              {"static_tok_per_s", rate(batches[0])},
              {"static_unpadded_tok_per_s", rate(batches[1])},
              {"ratio", batches[0] / continuous},
              {"ratio_to_unpadded", batches[1] / continuous}};
}

// The cache's memory against the tokens alive in it, just before a batch ends.
inline runtime::Result<Json> memory_suite(const rl::Transformer& model, const Options& options) {
  Json rows = Json::array();
  for (std::int64_t batch : options.batches) {
    rl::EngineOptions how = engine_options(options.weights.front());
    how.sequences_max = batch;
    auto engine = rl::Engine::create(model, how);
    if (!engine.ok()) return engine.status();
    const rl::KvCache& cache = (*engine)->cache();
    std::mt19937 generator(1);
    std::vector<rl::Request> requests;
    for (std::int64_t i = 0; i < batch; ++i)
      requests.push_back(
          random_request(model, generator, options.prompt_tokens, options.new_tokens));
    // Sequences may be a token or two apart, since prompts are read in turn.
    std::int64_t blocks = 0, live = 0;
    double resident = 0;
    const double before = resident_bytes();
    double grown = 0;
    auto completions = generate(**engine, requests, [&](const rl::EngineProgress& progress) {
      const std::int64_t used = cache.blocks() - cache.free_blocks();
      if (used < blocks || progress.finished > 0) return true;
      blocks = used;
      live = batch * (options.prompt_tokens - 1) +
             progress.generated_tokens;  // the last token of each is not in the cache yet
      resident = resident_bytes(const_cast<rl::KvCache&>(cache).keys(0),
                                static_cast<std::size_t>(cache.blocks() * cache.block_bytes()));
      grown = resident_bytes() - before;
      return true;
    });
    if (!completions.ok()) return completions.status();
    const double allotted = static_cast<double>(blocks * cache.block_bytes());
    const double needed =
        static_cast<double>(live) * static_cast<double>(cache.block_bytes() / cache.block_tokens());
    rows.push_back({{"batch", batch},
                    {"live_tokens", live},
                    {"blocks", blocks},
                    {"block_tokens", cache.block_tokens()},
                    {"needed_mib", needed / (1 << 20)},
                    {"blocks_mib", allotted / (1 << 20)},
                    {"resident_mib", resident / (1 << 20)},
                    {"resident_to_blocks", resident / allotted},
                    {"process_grown_mib", grown / (1 << 20)}});
  }
  return rows;
}

}  // namespace bench
