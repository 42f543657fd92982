// Beam search against what transformers found (make_beam_cases.py), and what the engine makes of
// it.
#include "rl/rollout/beam_search.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <set>

#include "random_requests.h"

namespace rl {
namespace {

using nlohmann::json;
using testing::expect_same_completion;
using testing::tiny_model;

Request request_of(const json& item) {
  const json& params = item.at("params");
  Request request{.prompt_ids = item.at("prompt").get<std::vector<std::int32_t>>(),
                  .n = params.at("num_return_sequences")};
  SamplingParams& sampling = request.sampling;
  sampling.beam.width = params.at("num_beams");
  sampling.beam.length_penalty = params.at("length_penalty");
  const json& early = params.at("early_stopping");
  using Stop = BeamSearchParams::Stop;
  sampling.beam.early_stopping = early.is_string()   ? Stop::kNever
                                 : early.get<bool>() ? Stop::kFirst
                                                     : Stop::kHeuristic;
  sampling.max_new_tokens = params.at("max_new_tokens");
  sampling.min_new_tokens = params.at("min_new_tokens");
  sampling.repetition_penalty = params.at("repetition_penalty");
  sampling.bad_words = params.at("bad_words_ids").get<std::vector<std::vector<std::int32_t>>>();
  sampling.stop_ids = params.at("eos").get<std::vector<std::int32_t>>();
  sampling.ignore_eos = true;
  return request;
}

TEST(BeamSearch, FindsWhatTransformersFinds) {
  const json cases = testing::read_json(STARLING_SOURCE_DIR "/tests/rl/rollout/beam_cases.json");
  ASSERT_GE(cases.size(), 60U);
  std::string name;
  std::unique_ptr<Transformer> model;
  std::unique_ptr<Engine> engine;
  for (const json& item : cases) {
    if (item.at("model") != name) {
      name = item.at("model");
      engine = nullptr;
      auto loaded = Transformer::load(testing::fixtures() / "models" / name);
      ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
      model = std::move(*loaded);
      model->parameters().arena().mul_(6.0);
      engine = std::move(*Engine::create(*model));
    }
    SCOPED_TRACE(item.dump());
    const Request request = request_of(item);
    auto found = engine->generate(std::span(&request, 1));
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const json& expected = item.at("hypotheses");
    ASSERT_EQ(found->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Completion& completion = (*found)[i];
      ASSERT_TRUE(completion.status.ok()) << completion.status.to_string();
      EXPECT_EQ(completion.ids, expected[i].at("ids").get<std::vector<std::int32_t>>()) << i;
      const float score = expected[i].at("score");
      EXPECT_NEAR(completion.beam_score, score, 2e-3 * std::max(1.0F, std::abs(score))) << i;
      EXPECT_EQ(completion.sample, static_cast<std::int64_t>(i));
    }
  }
}

TEST(BeamSearch, OfWidthOneIsGreedy) {
  const auto model = tiny_model();
  auto engine = std::move(*Engine::create(*model));
  std::vector<Request> requests(2, testing::sampled_request({5, 6, 7}, 20, 0));
  requests[0].sampling.temperature = 0.0F;
  requests[1].sampling.beam.width = 1;
  auto completions = engine->generate(requests);
  EXPECT_EQ((*completions)[1].ids, (*completions)[0].ids);
  EXPECT_EQ((*completions)[1].logprobs, (*completions)[0].logprobs);
}

// As any request: the same bits short of blocks, in small steps, and among others.
TEST(BeamSearch, GivesTheSameBitsWhateverElseRuns) {
  const auto model = tiny_model(4);
  std::mt19937 generator(2);
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) {
    Request request = testing::sampled_request(
        testing::random_prompt(generator, 1 + generator() % 50), 1 + generator() % 30, 0, 2);
    if (i % 3 != 0) request.sampling.beam.width = 2 + static_cast<std::int64_t>(generator() % 5);
    request.sampling.prompt_logprobs = i % 2 == 0;
    request.sampling.stop_ids = {3, 33, 63, 93};
    requests.push_back(std::move(request));
  }
  auto reference = std::move(*Engine::create(*model, {.prefix_caching = PrefixCaching::kOff}));
  std::vector<Completion> alone;
  for (const Request& request : requests) {
    auto completions = reference->generate(std::span(&request, 1));
    for (Completion& completion : *completions) alone.push_back(std::move(completion));
  }
  std::vector<EngineOptions> variants(4);
  variants[1] = {.sequences_max = 2, .step_tokens_max = 5};
  variants[2] = {.cache = {.bytes_max = 7 * reference->cache().block_bytes()}};
  variants[3] = {.cache = {.bytes_max = 7 * reference->cache().block_bytes()},
                 .preemption = Preemption::kSwap,
                 .prefix_caching = PrefixCaching::kOff};
  for (const EngineOptions& options : variants) {
    auto engine = std::move(*Engine::create(*model, options));
    auto together = engine->generate(requests);
    ASSERT_TRUE(together.ok());
    for (std::size_t i = 0; i < alone.size(); ++i) expect_same_completion((*together)[i], alone[i]);
    EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
  }
}

TEST(BeamSearch, ReportsLogprobsThatAddUpToTheScore) {
  const auto model = tiny_model();
  auto engine = std::move(*Engine::create(*model));
  Request request = testing::sampled_request({5, 6, 7}, 10, 0, 3);
  request.sampling.beam = {.width = 3, .length_penalty = 0.5F};
  auto completions = engine->generate(std::span(&request, 1));
  ASSERT_EQ(completions->size(), 3U);
  for (const Completion& completion : *completions) {
    double sum = 0;
    for (const float logprob : completion.logprobs) sum += double{logprob};
    EXPECT_NEAR(completion.beam_score, sum / std::sqrt(static_cast<double>(completion.ids.size())),
                1e-4);
    EXPECT_EQ(completion.weight_versions,
              (std::vector<VersionRun>{{0, static_cast<std::int64_t>(completion.ids.size())}}));
  }
  EXPECT_GE((*completions)[0].beam_score, (*completions)[1].beam_score);
}

TEST(BeamSearch, RefusesWhatDoesNotGoWithIt) {
  const auto model = tiny_model();
  auto engine = std::move(*Engine::create(*model, {.tokenizer = testing::byte_tokenizer()}));
  const auto message = [&](const std::function<void(Request&)>& change) {
    Request request = testing::sampled_request({5}, 4, 0);
    request.sampling.beam.width = 2;
    change(request);
    return engine->generate(std::span(&request, 1))->front().status.message();
  };
  EXPECT_EQ(message([](Request& r) { r.n = 3; }), "request: n is 3, above beam.width 2");
  EXPECT_NE(message([](Request& r) { r.best_of = 3; }).find("best_of"), std::string::npos);
  EXPECT_NE(message([](Request& r) { r.sampling.stop_strings = {"a"}; }).find("stop_strings"),
            std::string::npos);
  EXPECT_NE(message([](Request& r) {
              r.sampling.beam.width = 100;
            }).find("beam.width 100 takes 200 candidates, the vocabulary has 160"),
            std::string::npos);
  EXPECT_NE(
      message([](Request& r) { r.sampling.beam.length_penalty = NAN; }).find("length_penalty"),
      std::string::npos);
  EXPECT_EQ(message([](Request&) {}), "");
  EXPECT_EQ(message([](Request& r) { r.sampling.max_new_tokens = 0; }), "");
}

}  // namespace
}  // namespace rl
