#include "rl/rollout/engine.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "rl/model/head.h"
#include "tiny_model.h"

namespace rl {
namespace {

using testing::make_engine;
using testing::random_prompt;
using testing::sampled_request;
using testing::sampled_requests;
using testing::tiny_model;

std::vector<Completion> generate(Engine& engine, std::span<const Request> requests,
                                 const Engine::OnStep& on_step = nullptr) {
  auto completions = engine.generate(requests, on_step);
  EXPECT_TRUE(completions.ok()) << completions.status().to_string();
  EXPECT_EQ(engine.cache().free_blocks(), engine.cache().blocks());
  return std::move(*completions);
}

void expect_same(const Completion& a, const Completion& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.status, b.status);
}

// Requests of every kind: lengths, group sizes, sampling parameters.
std::vector<Request> mixed_requests(int count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<Request> requests = sampled_requests(count, seed, {.prompt_max = 60, .new_max = 40});
  for (Request& request : requests) {
    request.sampling.temperature = std::array{0.0F, 0.7F, 1.0F, 1.5F}[generator() % 4];
    request.sampling.top_k = std::array{0, 0, 5, 1}[generator() % 4];
    request.sampling.top_p = std::array{1.0F, 0.9F}[generator() % 2];
    request.sampling.ignore_eos = generator() % 2 == 0;
    request.sampling.prompt_logprobs = generator() % 3 == 0;
    if (generator() % 4 == 0) request.sampling.stop_ids = {7, 11};
  }
  return requests;
}

// The signature: together, in small steps, short of blocks, on more threads: the bits of each
// request alone.
TEST(Engine, GivesARequestTheSameBitsWhateverElseRuns) {
  const auto model = tiny_model();
  const std::vector<Request> requests = mixed_requests(40, 7);
  std::vector<Completion> alone;
  const auto single = make_engine(*model);
  for (const Request& request : requests) {
    for (Completion& completion : generate(*single, std::span(&request, 1)))
      alone.push_back(std::move(completion));
  }
  const std::int64_t block_bytes = single->cache().block_bytes();
  std::vector<EngineOptions> variants(5);
  variants[1].sequences_max = 3;
  variants[2].step_tokens_max = 7;
  variants[3].cache.block_tokens = 32;
  variants[4].cache.bytes_max = 12 * block_bytes;  // a few sequences: preemption all the time
  for (std::size_t v = 0; v < variants.size(); ++v) {
    SCOPED_TRACE(v);
    model->pool().set_threads(v == 0 ? 4 : 2);
    const auto engine = make_engine(*model, variants[v]);
    const std::vector<Completion> together = generate(*engine, requests);
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) expect_same(together[i], alone[i]);
    if (v == 4) {
      EXPECT_GT(engine->stats().preemptions, 0);
    }
  }
}

TEST(Engine, SharesThePromptAmongItsSamples) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  std::mt19937 generator(1);
  const Request request = sampled_request(random_prompt(generator, 50), 6, 9, 8);
  const std::vector<Completion> completions = generate(*engine, std::span(&request, 1));
  ASSERT_EQ(completions.size(), 8U);
  EXPECT_EQ(engine->stats().prompt_tokens, 50);
  EXPECT_LE(engine->stats().blocks_peak,
            3 + 8);  // three full blocks of the prompt, and one for each sample alone
  std::set<std::vector<std::int32_t>> distinct;
  for (const Completion& completion : completions) distinct.insert(completion.ids);
  EXPECT_GE(distinct.size(), 6U);
}

TEST(Engine, DrawsFromTheDistributionItReports) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  const std::int64_t n = 20000;
  const Request request = sampled_request({5, 6, 7}, 1, 123, n);
  std::map<std::int32_t, std::pair<std::int64_t, float>> seen;  // count and log-prob
  for (const Completion& completion : generate(*engine, std::span(&request, 1))) {
    auto& entry = seen[completion.ids.front()];
    ++entry.first;
    entry.second = completion.logprobs.front();
  }
  for (const auto& [id, entry] : seen) {
    const double p = std::exp(double{entry.second});
    const double deviation = std::sqrt(p * (1 - p) * static_cast<double>(n));
    EXPECT_NEAR(static_cast<double>(entry.first), p * static_cast<double>(n), 5 * deviation + 1)
        << id;
  }
}

TEST(Engine, StopsAtStopIdsUnlessToldOtherwise) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  Request request{.prompt_ids = {9, 8, 7}};
  request.sampling.temperature = 0.0F;
  request.sampling.max_new_tokens = 20;
  request.sampling.ignore_eos = true;
  const Completion free = generate(*engine, std::span(&request, 1)).front();
  ASSERT_EQ(free.ids.size(), 20U);
  EXPECT_EQ(free.finish_reason, FinishReason::kLength);

  request.sampling.stop_ids = {free.ids[3]};
  const auto first = std::find(free.ids.begin(), free.ids.end(), free.ids[3]);
  const Completion stopped = generate(*engine, std::span(&request, 1)).front();
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.ids, std::vector<std::int32_t>(free.ids.begin(), first + 1));

  request.sampling.min_new_tokens = 10;
  const Completion longer = generate(*engine, std::span(&request, 1)).front();
  EXPECT_GE(longer.ids.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NE(longer.ids[i], free.ids[3]);
}

TEST(Engine, RefusesABadRequestAndServesTheOthers) {
  const auto model = tiny_model();
  EngineOptions options;
  options.cache.bytes_max = 7 * make_engine(*model)->cache().block_bytes();
  const auto engine = make_engine(*model, options);
  std::mt19937 generator(2);
  const Request good = sampled_request({1, 2, 3}, 5, 1);
  std::vector<Request> requests = {good, {}, good, good, good, good, good, good, good};
  requests[2].prompt_ids = random_prompt(generator, 128);  // no room for a token
  requests[3].prompt_ids = {1, 160};
  requests[4].sampling.temperature = -1.0F;
  requests[5].sampling.top_p = 0.0F;
  requests[6].n = 0;
  requests[7].prompt_ids = random_prompt(generator, 100);
  requests[7].sampling.max_new_tokens = 28;  // 128 tokens, 8 blocks
  const std::vector<Completion> completions = generate(*engine, requests);
  ASSERT_EQ(completions.size(), requests.size());
  EXPECT_TRUE(completions[0].status.ok());
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(completions[i].finish_reason, FinishReason::kError) << i;
    EXPECT_TRUE(completions[i].ids.empty());
  }
  EXPECT_NE(completions[1].status.message().find("empty"), std::string::npos);
  EXPECT_NE(completions[2].status.message().find("128 tokens"), std::string::npos);
  EXPECT_NE(completions[3].status.message().find("160"), std::string::npos);
  EXPECT_EQ(completions[7].status.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(completions[8].ids, completions[0].ids);
}

TEST(Engine, RefusesAModelWithoutAnOutputLayer) {
  const ModelConfig critic = with_task(testing::tiny_config(), ModelTask::kTokenClassification);
  const Transformer model(critic, Parameters::random(critic, 1));
  const auto engine = Engine::create(model);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(
      engine.status().message(),
      "the model is a classifier: it has no output layer over the vocabulary to generate with");
}

TEST(Engine, FailsOnlyTheRequestWhoseLogitsAreNotFinite) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  // The embedding of id 50 becomes NaN: prompts with it break, the others don't.
  model->parameters().view("model.embed_tokens.weight").select(0, 50).fill_(std::nan(""));
  std::vector<Request> requests = {sampled_request({1, 2}, 4, 1),
                                   sampled_request({1, 50}, 4, 1, 2)};
  requests[0].sampling.stop_ids = requests[1].sampling.stop_ids = {};
  const std::vector<Completion> completions = generate(*engine, requests);
  EXPECT_TRUE(completions[0].status.ok() || completions[0].ids.back() == 50);
  for (std::size_t i : {1U, 2U}) {
    EXPECT_EQ(completions[i].finish_reason, FinishReason::kError);
    EXPECT_NE(completions[i].status.message().find("not finite"), std::string::npos);
  }
}

TEST(Engine, SeesAnUpdateOfTheArena) {
  const auto model = tiny_model(1);
  const auto other = tiny_model(2);
  const auto engine = make_engine(*model);
  const Request request = sampled_request({1, 2, 3}, 10, 1);
  const Completion before = generate(*engine, std::span(&request, 1)).front();
  model->parameters().arena().copy_(other->parameters().arena());
  const Completion after = generate(*engine, std::span(&request, 1)).front();
  EXPECT_NE(after.logprobs, before.logprobs);
  expect_same(after, generate(*make_engine(*other), std::span(&request, 1)).front());
}

TEST(Engine, EndsWhenTheCallbackSaysSo) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  std::vector<Request> requests = {sampled_request({1}, 3, 1), sampled_request({2}, 100, 1)};
  std::size_t total = 0;
  const std::vector<Completion> completions =
      generate(*engine, requests, [&](const EngineProgress& progress) {
        total = progress.total;
        return progress.generated_tokens < 20;
      });
  EXPECT_EQ(total, 2U);
  EXPECT_EQ(completions[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(completions[1].finish_reason, FinishReason::kAborted);
  EXPECT_EQ(completions[1].ids.size(), 17U);
}

TEST(Engine, StopsAtTheEndOfTheContext) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model, {.context_max = 20});
  const Request request = sampled_request(std::vector<std::int32_t>(15, 3), 50, 1);
  const Completion completion = generate(*engine, std::span(&request, 1)).front();
  EXPECT_EQ(completion.ids.size(), 5U);
  EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
}

TEST(Engine, AnswersNoRequestsWithNothing) {
  const auto model = tiny_model();
  EXPECT_TRUE(generate(*make_engine(*model), {}).empty());
}

}  // namespace
}  // namespace rl
