// The signature of the engine: the log-probability that it reports is the one that training
// computes, over 100,000 sampled tokens, however either of them batches.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "tiny_model.h"

namespace rl {
namespace {

using testing::prompt_and_completion;
using testing::sampled_requests;

constexpr std::size_t kTokensWanted = 100000;

// How a round generates.
struct Shape {
  std::int64_t batch = 64;              // sequences decoded together
  std::int64_t step_tokens = 512;       // below a prompt's length: it is read in pieces
  std::int64_t cache_blocks = 1 << 12;  // few: preemption
  Preemption preemption = Preemption::kRecompute;
  PrefixCaching prefixes = PrefixCaching::kWhileBusy;
  int requests = 180;
  float temperature = 1.0F;
};

// Lengths of all kinds, groups, and for every second request a beginning that others have too.
std::vector<Request> requests_of(const Shape& shape, std::uint32_t seed) {
  std::vector<Request> requests =
      sampled_requests(shape.requests, seed, {.prompt_max = 40, .new_max = 60, .n_max = 4});
  std::mt19937 generator(seed);
  const std::array beginnings{testing::random_prompt(generator, 16),
                              testing::random_prompt(generator, 23)};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<std::int32_t>& prompt = requests[i].prompt_ids;
    if (i % 2 == 0)
      prompt.insert(prompt.begin(), beginnings[i / 2 % 2].begin(), beginnings[i / 2 % 2].end());
    requests[i].sampling.temperature = shape.temperature;
  }
  return requests;
}

// One trainer's batch: of some completions, each filled up to `padded` tokens where that is more
// than it has.
std::vector<float> score(const Transformer& model, std::span<const Request> requests,
                         std::span<const Completion* const> completions, std::size_t padded,
                         float temperature) {
  PackedBatch batch;
  for (const Completion* completion : completions) {
    std::vector<std::int32_t> ids = prompt_and_completion(requests, *completion);
    const auto begin = batch.tokens(),
               first = begin +
                       static_cast<std::int64_t>(requests[completion->request].prompt_ids.size());
    const auto end = begin + static_cast<std::int64_t>(ids.size());
    ids.resize(std::max(ids.size(), padded), 0);
    batch.append(ids,
                 static_cast<std::int64_t>(
                     ids.size()));  // no own target: those that count are not at its end
    for (std::int64_t target = first; target < end; ++target) batch.targets.push_back(target);
  }
  auto scored = model.token_logprobs(batch, {.temperature = temperature});
  EXPECT_TRUE(scored.ok()) << scored.status().to_string();
  if (!scored.ok()) return {};
  const float* values = scored->logprobs_N.const_data_ptr<float>();
  return {values, values + scored->logprobs_N.numel()};
}

// The trainer's batches: completions in another order, several together, packed or padded to the
// longest.
void expect_equal(const Transformer& model, std::span<const Request> requests,
                  std::span<const Completion> completions, std::size_t together, bool padded,
                  float temperature) {
  std::vector<const Completion*> order;
  for (const Completion& completion : completions) order.push_back(&completion);
  std::mt19937 generator(static_cast<std::uint32_t>(together));
  std::shuffle(order.begin(), order.end(), generator);
  for (std::size_t begin = 0; begin < order.size(); begin += together) {
    const auto group = std::span(order).subspan(begin, std::min(together, order.size() - begin));
    std::vector<float> reported;
    std::size_t longest = 0;
    for (const Completion* completion : group) {
      reported.insert(reported.end(), completion->logprobs.begin(), completion->logprobs.end());
      longest = std::max(longest,
                         requests[completion->request].prompt_ids.size() + completion->ids.size());
    }
    ASSERT_EQ(reported, score(model, requests, group, padded ? longest : 0, temperature))
        << "in batches of " << together << (padded ? ", padded" : ", packed");
  }
}

TEST(EngineEquality, ReportsTheTrainersLogprobsToTheBitOver100000Tokens) {
  const auto model = testing::tiny_model(3);
  const std::int64_t few = 40;
  const std::array<Shape, 12> shapes{{
      {.batch = 1, .requests = 60},
      {.batch = 1, .step_tokens = 9, .requests = 60, .temperature = 0.7F},
      {.batch = 2, .step_tokens = 16, .prefixes = PrefixCaching::kOff},
      {.batch = 5, .step_tokens = 64, .prefixes = PrefixCaching::kKeep, .temperature = 0.9F},
      {.batch = 8, .step_tokens = 30, .cache_blocks = 24, .preemption = Preemption::kSwap},
      {.batch = 16, .temperature = 1.3F},
      {.batch = 16, .step_tokens = 21, .cache_blocks = few},
      {.batch = 31, .step_tokens = 100, .prefixes = PrefixCaching::kOff},
      {.batch = 48, .cache_blocks = few, .preemption = Preemption::kSwap, .temperature = 0.8F},
      {.batch = 64},
      {.batch = 64, .step_tokens = 77, .cache_blocks = few, .prefixes = PrefixCaching::kKeep},
      {.batch = 64, .step_tokens = 2048, .prefixes = PrefixCaching::kKeep, .temperature = 1.1F},
  }};
  const std::array<std::size_t, 5> together{1, 3, 17, 64, 200};
  std::size_t tokens = 0;
  EngineStats seen;
  for (std::size_t round = 0; round < shapes.size() || tokens < kTokensWanted; ++round) {
    const Shape& shape = shapes[round % shapes.size()];
    SCOPED_TRACE("round " + std::to_string(round));
    model->pool().set_threads(round % 3 == 0 ? 1 : 2);
    EngineOptions options{.sequences_max = shape.batch,
                          .step_tokens_max = shape.step_tokens,
                          .preemption = shape.preemption,
                          .prefix_caching = shape.prefixes};
    options.cache.bytes_max =
        shape.cache_blocks * testing::make_engine(*model)->cache().block_bytes();
    const auto engine = testing::make_engine(*model, options);
    const std::vector<Request> requests = requests_of(shape, static_cast<std::uint32_t>(round + 1));
    auto completions = engine->generate(requests);
    ASSERT_TRUE(completions.ok()) << completions.status().to_string();
    for (const Completion& completion : *completions) {
      ASSERT_TRUE(completion.status.ok()) << completion.status.to_string();
      tokens += completion.ids.size();
    }
    model->pool().set_threads(2);
    expect_equal(*model, requests, *completions, together[round % together.size()], false,
                 shape.temperature);
    expect_equal(*model, requests, *completions, together[(round + 2) % together.size()], true,
                 shape.temperature);
    if (HasFailure()) return;
    const EngineStats stats = engine->stats();
    seen.preemptions += stats.preemptions;
    seen.swaps += stats.swaps;
    seen.cached_tokens += stats.cached_tokens;
  }
  EXPECT_GE(tokens, kTokensWanted);
  EXPECT_GT(seen.swaps, 10);
  EXPECT_GT(seen.preemptions, seen.swaps + 10);
  EXPECT_GT(seen.cached_tokens, 1000);
  RecordProperty("tokens", static_cast<int>(tokens));
}

}  // namespace
}  // namespace rl
