// The engine request by request: streaming, aborts, pauses, new weights, prefixes kept, who comes
// first.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "random_requests.h"
#include "rl/rollout/engine.h"

namespace rl {
namespace {

using testing::expect_same_completion;
using testing::make_engine;
using testing::random_prompt;
using testing::sampled_request;
using testing::tiny_model;

Completion alone(const Transformer& model, const Request& request) {
  auto completions = make_engine(model)->generate(std::span(&request, 1));
  EXPECT_TRUE(completions.ok()) << completions.status().to_string();
  return completions->front();
}

std::vector<Completion> run(Engine& engine) {
  while (!engine.idle()) EXPECT_TRUE(engine.step().ok());
  return engine.take_finished();
}

void step(Engine& engine, int count) {
  for (int i = 0; i < count; ++i) ASSERT_TRUE(engine.step().ok());
}

TEST(EngineRequests, TellsTokensAsTheyCome) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  const RequestId first = engine->submit(sampled_request({1, 2, 3}, 7, 1, 2));
  step(*engine, 3);
  const RequestId second =
      engine->submit(sampled_request({4, 5}, 5, 2));  // while the first is on its way
  std::map<std::pair<RequestId, std::int64_t>, std::vector<std::int32_t>> told;
  std::map<RequestId, int> last;
  const auto note = [&] {
    for (const NewToken& token : engine->new_tokens()) {
      told[{token.request, token.sample}].push_back(token.id);
      last[token.request] += token.last ? 1 : 0;
    }
  };
  std::vector<Completion> finished;
  while (!engine->idle()) {
    step(*engine, 1);
    note();
    for (Completion& completion : engine->take_finished())
      finished.push_back(std::move(completion));
  }
  ASSERT_EQ(finished.size(), 3U);
  EXPECT_EQ(finished[0].request, first);
  EXPECT_EQ(finished[2].request, second);
  EXPECT_EQ(last[first], 2);
  EXPECT_EQ(last[second], 1);
  EXPECT_EQ((told[{second, 0}]), finished[2].ids);
  // The first three steps were not listened to.
  EXPECT_EQ((told[{first, 1}]),
            std::vector<std::int32_t>(finished[1].ids.begin() + 3, finished[1].ids.end()));
  EXPECT_EQ(finished[2].ids, alone(*model, sampled_request({4, 5}, 5, 2)).ids);
  EXPECT_TRUE(engine->take_finished().empty());
}

TEST(EngineRequests, AbortsWithWhatThereIs) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  const Request request = sampled_request({1, 2, 3}, 20, 5);
  const RequestId gone = engine->submit(request);
  const RequestId stays = engine->submit(sampled_request({9}, 20, 6));
  step(*engine, 4);
  EXPECT_TRUE(engine->abort(gone));
  EXPECT_FALSE(engine->abort(gone));
  EXPECT_FALSE(engine->abort(77));
  std::vector<Completion> finished = run(*engine);
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].finish_reason, FinishReason::kAborted);
  const std::vector<std::int32_t> whole = alone(*model, request).ids;
  EXPECT_EQ(finished[0].ids, std::vector<std::int32_t>(whole.begin(), whole.begin() + 4));
  EXPECT_EQ(finished[1].request, stays);
  EXPECT_EQ(finished[1].ids.size(), 20U);
  EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
}

TEST(EngineRequests, FinishesABadRequestAtOnce) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model, {.requests_max = 1});
  Request bad = sampled_request({1}, 5, 1, 3);
  bad.sampling.bad_words = {{5, 160}};
  const RequestId id = engine->submit(bad);
  EXPECT_TRUE(engine->idle());
  const std::vector<Completion> finished = engine->take_finished();
  ASSERT_EQ(finished.size(), 3U);
  EXPECT_EQ(finished[2].request, id);
  EXPECT_EQ(finished[2].status.message(),
            "request: bad_words: token id 160 is outside the vocabulary of 160");
  engine->submit(sampled_request({1}, 5, 1));
  engine->submit(sampled_request({1}, 5, 1));
  EXPECT_EQ(engine->take_finished().front().status.code(), runtime::ErrorCode::kResourceExhausted);
}

TEST(EngineRequests, GeneratesTogetherWithSubmittedRequests) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  const Request submitted = sampled_request({1, 2, 3}, 30, 5);
  const Request asked = sampled_request({7, 8}, 4, 6);
  const RequestId id = engine->submit(submitted);
  auto completions = engine->generate(std::span(&asked, 1));
  ASSERT_TRUE(completions.ok());
  ASSERT_EQ(completions->size(), 1U);
  EXPECT_EQ(completions->front().request, 0U);
  expect_same_completion(completions->front(), alone(*model, asked));
  const std::vector<Completion> finished = run(*engine);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].request, id);
  expect_same_completion(finished[0], alone(*model, submitted));
}

TEST(EngineRequests, PausesAndGoesOnWhereItWas) {
  const auto model = tiny_model();
  std::mt19937 generator(4);
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(sampled_request(random_prompt(generator, 30), 20, generator(), 2));
  requests[2].sampling.beam.width = 3;
  requests[3].sampling.prompt_logprobs = true;
  for (const bool keep : {true, false}) {
    const auto engine = make_engine(*model, {.step_tokens_max = 100});
    for (const Request& request : requests) engine->submit(request);
    for (int round = 0; round < 5; ++round) {
      step(*engine, 3);
      engine->pause(keep);
      EXPECT_EQ(engine->cache().free_blocks() == engine->cache().blocks(), !keep);
      const std::int64_t steps = engine->stats().steps;
      step(*engine, 2);
      EXPECT_TRUE(engine->new_tokens().empty());
      EXPECT_EQ(engine->stats().steps, steps);
      EXPECT_EQ(engine->generate(requests).status().message(),
                "generate: the engine is paused; resume() it first");
      engine->resume();
    }
    std::vector<Completion> finished = run(*engine);
    ASSERT_EQ(finished.size(), 12U);
    std::stable_sort(
        finished.begin(), finished.end(),
        [](const Completion& a, const Completion& b) { return a.request < b.request; });
    for (std::size_t i = 0; i < requests.size(); ++i)
      expect_same_completion(finished[2 * i], alone(*model, requests[i]));
  }
}

TEST(EngineRequests, AbortsABeamSearchAndAGroupThatStillReadsItsPrompt) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model, {.step_tokens_max = 30});
  std::mt19937 generator(4);
  std::vector<Request> requests;
  for (int i = 0; i < 3; ++i)
    requests.push_back(sampled_request(random_prompt(generator, 100), 10, generator(), 3));
  requests[0].sampling.beam.width = 4;
  for (const int steps : {0, 2, 4, 7}) {
    std::vector<RequestId> ids;
    for (const Request& request : requests) ids.push_back(engine->submit(request));
    step(*engine, steps);
    for (const RequestId id : {ids[2], ids[0]}) EXPECT_TRUE(engine->abort(id));
    std::vector<Completion> finished = run(*engine);
    ASSERT_EQ(finished.size(), 9U);
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(finished[i].finish_reason, FinishReason::kAborted);
    EXPECT_EQ(finished[6].request, ids[1]);
    expect_same_completion(finished[6], alone(*model, requests[1]));
    EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
  }
}

class NewWeights : public ::testing::TestWithParam<OnNewWeights> {};

// Half of a completion with the weights of one seed, half with another's.
TEST_P(NewWeights, AreStampedOnTokensAndUsedAsAsked) {
  const auto model = tiny_model(1);
  const auto other = tiny_model(2);
  const auto engine = make_engine(*model, {.prefix_caching = PrefixCaching::kKeep});
  engine->weights_changed(10);
  const Request request = sampled_request({1, 2, 3}, 40, 5);
  const Completion before = alone(*model, request);
  engine->submit(request);
  step(*engine, 25);
  model->parameters().arena().copy_(other->parameters().arena());
  engine->weights_changed(11, GetParam());
  EXPECT_EQ(engine->weight_version(), 11U);
  EXPECT_EQ(engine->stats().prefix_blocks, 0);
  const Completion completion = run(*engine).front();
  ASSERT_EQ(completion.ids.size(), 40U);
  EXPECT_EQ(completion.length_max, static_cast<std::int64_t>(request.prompt_ids.size()) + 40);
  if (GetParam() == OnNewWeights::kRestart) {
    EXPECT_EQ(completion.weight_versions, (std::vector<VersionRun>{{11, 40}}));
    expect_same_completion(completion, alone(*other, request));
    return;
  }
  EXPECT_EQ(completion.weight_versions, (std::vector<VersionRun>{{10, 25}, {11, 15}}));
  EXPECT_EQ(completion.weight_version(24), 10U);
  EXPECT_EQ(completion.weight_version(25), 11U);
  for (std::size_t i = 0; i < 25; ++i) ASSERT_EQ(completion.logprobs[i], before.logprobs[i]);
  // Read again by the new weights, the rest has their log-probs; with the old keys and values it
  // does not.
  PackedBatch batch;
  std::vector<std::int32_t> ids = request.prompt_ids;
  ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
  batch.append(ids, 3);
  auto scored = other->token_logprobs(batch);
  ASSERT_TRUE(scored.ok());
  const float* expected = scored->logprobs_N.const_data_ptr<float>();
  const bool same =
      std::equal(completion.logprobs.begin() + 25, completion.logprobs.end(), expected + 25);
  EXPECT_EQ(same, GetParam() == OnNewWeights::kRecompute);
}

INSTANTIATE_TEST_SUITE_P(Policies, NewWeights,
                         ::testing::Values(OnNewWeights::kContinue, OnNewWeights::kRecompute,
                                           OnNewWeights::kRestart));

TEST(EngineRequests, RestartsAGroupAroundItsOnePrompt) {
  const auto model = tiny_model(1);
  const auto engine = make_engine(*model, {.prefix_caching = PrefixCaching::kOff});
  std::mt19937 generator(3);
  Request request = sampled_request(random_prompt(generator, 40), 12, 5, 4);
  request.sampling.prompt_logprobs = true;
  request.sampling.stop_ids = {1, 20, 40, 60, 80};  // some samples end early
  engine->submit(request);
  step(*engine, 4);
  engine->weights_changed(1, OnNewWeights::kRestart);
  const std::vector<Completion> finished = run(*engine);
  auto expected = make_engine(*model)->generate(std::span(&request, 1));
  ASSERT_EQ(finished.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) expect_same_completion(finished[i], (*expected)[i]);
  EXPECT_LE(engine->stats().prompt_tokens, 80);
}

// What begins alike and comes in the same step: one reads the beginning, and the others go on from
// there.
TEST(EnginePrefixes, ReadACommonBeginningOnceOfRequestsThatComeTogether) {
  const auto model = tiny_model();
  for (const std::int64_t step_tokens : {512, 20}) {  // at once, and in pieces
    SCOPED_TRACE(step_tokens);
    std::mt19937 generator(8);
    const std::vector<std::int32_t> shared = random_prompt(generator, 64),
                                    other = random_prompt(generator, 48);  // four blocks and three
    std::vector<Request> requests;
    std::int64_t expected = 64 + 48, known = 0;
    for (int i = 0; i < 10; ++i) {
      Request request = sampled_request(i % 3 == 1 ? other : shared, 6, generator(), 1 + i % 2);
      const auto question = random_prompt(generator, 3 + generator() % 12);
      request.prompt_ids.insert(request.prompt_ids.end(), question.begin(), question.end());
      expected += static_cast<std::int64_t>(question.size());
      known += static_cast<std::int64_t>(request.prompt_ids.size());
      requests.push_back(std::move(request));
    }
    const auto engine = make_engine(*model, {.step_tokens_max = step_tokens});
    auto completions = engine->generate(requests);
    ASSERT_TRUE(completions.ok());
    EXPECT_EQ(engine->stats().prompt_tokens, expected);
    EXPECT_EQ(engine->stats().cached_tokens, known - expected);
    for (const Completion& completion : *completions) {
      if (completion.sample == 0)
        expect_same_completion(completion, alone(*model, requests[completion.request]));
    }
  }
}

TEST(EnginePrefixes, DoNotWaitForWhatIsNotShared) {
  const auto model = tiny_model();
  std::mt19937 generator(9);
  const std::vector<std::int32_t> shared = random_prompt(generator, 40);
  std::vector<Request> requests(3, sampled_request(shared, 4, 1));
  requests[1].sampling.prompt_logprobs = true;  // reads its own
  requests[2].prompt_ids.resize(15);            // less than a block
  requests.push_back(sampled_request(random_prompt(generator, 40), 4, 1));
  const auto engine = make_engine(*model);
  for (const Request& request : requests) engine->submit(request);
  step(*engine, 1);
  EXPECT_EQ(engine->stats().prompt_tokens, 40 + 40 + 15 + 40);
  EXPECT_EQ(engine->new_tokens().size(), 4U);
  run(*engine);
}

TEST(EnginePrefixes, ReadAPromptOnceForAllThatBeginAlike) {
  const auto model = tiny_model();
  std::mt19937 generator(8);
  const std::vector<std::int32_t> shared = random_prompt(generator, 70);
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) {
    Request request = sampled_request(shared, 10, generator());
    const auto question = random_prompt(generator, 5 + generator() % 20);
    request.prompt_ids.insert(request.prompt_ids.end(), question.begin(), question.end());
    requests.push_back(std::move(request));
  }
  const auto engine = make_engine(*model, {.prefix_caching = PrefixCaching::kKeep});
  std::int64_t known = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto completions = engine->generate(std::span(&requests[i], 1));
    ASSERT_TRUE(completions.ok());
    expect_same_completion(completions->front(), alone(*model, requests[i]));
    known += static_cast<std::int64_t>(requests[i].prompt_ids.size());
    // Of the 70 tokens four blocks are full, and of the fifth, which holds the next question too,
    // the first six agree.
    EXPECT_GE(completions->front().cached_prompt_tokens, i == 0 ? 0 : 70);
    EXPECT_LE(completions->front().cached_prompt_tokens, i == 0 ? 0 : 73);
  }
  EXPECT_EQ(engine->stats().prompt_tokens + engine->stats().cached_tokens, known);
  const std::int64_t kept = engine->stats().prefix_blocks;
  EXPECT_GT(kept, 4);
  EXPECT_EQ(engine->cache().free_blocks() + kept, engine->cache().blocks());
  engine->weights_changed(1);
  EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
}

TEST(EnginePrefixes, AnswerTheSameQuestionAgainAtTheCostOfOneToken) {
  const auto model = tiny_model();
  for (const std::size_t length : {29U, 32U, 33U, 48U}) {
    std::mt19937 generator(8);
    const Request request = sampled_request(random_prompt(generator, length), 3, 1);
    const auto engine = make_engine(*model, {.prefix_caching = PrefixCaching::kKeep});
    ASSERT_TRUE(engine->generate(std::span(&request, 1)).ok());
    const std::int64_t before = engine->stats().prompt_tokens;
    auto again = engine->generate(std::span(&request, 1));
    expect_same_completion(again->front(), alone(*model, request));
    const std::int64_t read = engine->stats().prompt_tokens - before;
    EXPECT_EQ(read, length == 29 ? 13 : 1) << length;  // only full blocks are kept
    EXPECT_EQ(again->front().cached_prompt_tokens, static_cast<std::int64_t>(length) - read);
  }
}

TEST(EnginePrefixes, TakeNoMoreMemoryThanTheyMay) {
  const auto model = tiny_model();
  const std::int64_t block_bytes = make_engine(*model)->cache().block_bytes();
  const auto engine = make_engine(
      *model, {.prefix_caching = PrefixCaching::kKeep, .prefix_bytes_max = 3 * block_bytes});
  std::mt19937 generator(8);
  for (int i = 0; i < 4; ++i) {
    const Request request = sampled_request(random_prompt(generator, 40), 20, 1);
    ASSERT_TRUE(engine->generate(std::span(&request, 1)).ok());
    EXPECT_EQ(engine->stats().prefix_blocks, 3);
  }
}

TEST(EnginePrefixes, GoWhenTheEngineIsIdleUnlessKept) {
  const auto model = tiny_model(1);
  const auto other = tiny_model(2);
  const auto engine = make_engine(*model);
  std::mt19937 generator(8);
  const Request request = sampled_request(random_prompt(generator, 50), 6, 1);
  ASSERT_TRUE(engine->generate(std::span(&request, 1)).ok());
  EXPECT_EQ(engine->stats().prefix_blocks, 0);
  model->parameters().arena().copy_(other->parameters().arena());  // without a notice
  expect_same_completion(engine->generate(std::span(&request, 1))->front(), alone(*other, request));
}

// Where angles depend on how long a sequence may become, equal beginnings are equal only among
// sequences of one stretch.
TEST(EnginePrefixes, AreNotSharedAcrossAnglesThatDiffer) {
  for (const char* name : {"llama_dynamic", "phi3_longrope"}) {
    SCOPED_TRACE(name);
    auto model = Transformer::load(testing::fixtures() / "models" / name);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    (*model)->parameters().arena().mul_(4.0);
    const auto engine = make_engine(**model, {.prefix_caching = PrefixCaching::kKeep});
    std::mt19937 generator(8);
    const std::vector<std::int32_t> prompt = random_prompt(generator, 20);
    const std::int64_t most = (*model)->config().max_position_embeddings - 20;
    for (const std::int64_t new_tokens : {std::int64_t{1}, std::min<std::int64_t>(most, 40),
                                          std::int64_t{1}, std::min<std::int64_t>(most, 12)}) {
      const Request request = sampled_request(prompt, new_tokens, 3);
      auto completions = engine->generate(std::span(&request, 1));
      ASSERT_TRUE(completions.ok());
      ASSERT_TRUE(completions->front().status.ok()) << completions->front().status.to_string();
      expect_same_completion(completions->front(), alone(**model, request));
    }
    EXPECT_GT(engine->stats().cached_tokens, 0);
  }
}

TEST(EnginePrefixes, ScoreAPromptInFullAllTheSame) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model, {.prefix_caching = PrefixCaching::kKeep});
  std::mt19937 generator(8);
  Request request = sampled_request(random_prompt(generator, 50), 6, 1);
  ASSERT_TRUE(engine->generate(std::span(&request, 1)).ok());
  request.sampling.prompt_logprobs = true;
  const Completion scored = engine->generate(std::span(&request, 1))->front();
  EXPECT_EQ(scored.prompt_logprobs.size(), 49U);
  EXPECT_EQ(scored.cached_prompt_tokens, 0);
  expect_same_completion(scored, alone(*model, request));
}

TEST(EnginePolicies, ServeTheUrgentFirst) {
  const auto model = tiny_model();
  const auto engine =
      make_engine(*model, {.sequences_max = 1, .policy = SchedulingPolicy::kPriority});
  std::vector<Request> requests;
  for (const std::int64_t priority : {0, 0, 5, 1}) {
    requests.push_back(sampled_request({1, 2, static_cast<std::int32_t>(requests.size())}, 6, 1));
    requests.back().priority = priority;
  }
  engine->submit(requests[0]);
  step(*engine, 2);
  for (std::size_t i = 1; i < requests.size(); ++i) engine->submit(requests[i]);
  const std::vector<Completion> finished = run(*engine);
  std::vector<RequestId> order;
  for (const Completion& completion : finished) order.push_back(completion.request);
  EXPECT_EQ(order, (std::vector<RequestId>{2, 3, 0, 1}));
  EXPECT_EQ(engine->stats().preemptions, 1);
  for (const Completion& completion : finished)
    expect_same_completion(completion, alone(*model, requests[completion.request]));
}

TEST(EnginePolicies, ServeTheLongestFirst) {
  const auto model = tiny_model();
  const auto engine =
      make_engine(*model, {.sequences_max = 1, .policy = SchedulingPolicy::kLongestFirst});
  for (const auto& [predicted, longest] : {std::pair{5, 9}, std::pair{0, 9}, std::pair{20, 3}}) {
    Request request = sampled_request({1, 2}, longest, 1);
    request.predicted_tokens = predicted;
    engine->submit(request);
  }
  std::vector<RequestId> order;
  for (const Completion& completion : run(*engine)) order.push_back(completion.request);
  EXPECT_EQ(order, (std::vector<RequestId>{2, 1, 0}));
}

TEST(EnginePolicies, SwapInsteadOfComputingAgain) {
  const auto model = tiny_model();
  std::mt19937 generator(6);
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(sampled_request(random_prompt(generator, 20), 40, generator()));
  const std::int64_t block_bytes = make_engine(*model)->cache().block_bytes();
  const auto prompt_tokens = [&](Preemption preemption) {
    const auto engine = make_engine(*model, {.cache = {.bytes_max = 10 * block_bytes},
                                             .preemption = preemption,
                                             .prefix_caching = PrefixCaching::kOff});
    auto completions = engine->generate(requests);
    EXPECT_TRUE(completions.ok());
    for (const Completion& completion : *completions)
      expect_same_completion(completion, alone(*model, requests[completion.request]));
    EXPECT_GT(engine->stats().preemptions, 0);
    EXPECT_EQ(engine->stats().swaps,
              preemption == Preemption::kSwap ? engine->stats().preemptions : 0);
    return engine->stats().prompt_tokens;
  };
  EXPECT_EQ(prompt_tokens(Preemption::kSwap), 120);  // what is swapped in is not read again
  EXPECT_GT(prompt_tokens(Preemption::kRecompute), 120);
}

}  // namespace
}  // namespace rl
