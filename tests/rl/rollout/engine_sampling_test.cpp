// Sampling parameters through the whole engine.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "random_requests.h"

namespace rl {
namespace {

using testing::expect_same_completion;
using testing::sampled_request;
using testing::tiny_model;

class EngineSampling : public ::testing::Test {
 protected:
  EngineSampling()
      : model_(tiny_model()),
        engine_(std::move(*Engine::create(*model_, {.tokenizer = testing::byte_tokenizer()}))) {}

  std::vector<Completion> all(const Request& request) {
    auto completions = engine_->generate(std::span(&request, 1));
    EXPECT_TRUE(completions.ok()) << completions.status().to_string();
    EXPECT_EQ(engine_->cache().free_blocks(), engine_->cache().blocks());
    return std::move(*completions);
  }
  Completion one(const Request& request) { return all(request).front(); }

  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineSampling, PenaltiesBiasesAndBadWordsActOnTheCompletion) {
  Request request = sampled_request({5, 6, 7}, 40, 1);
  request.sampling.temperature = 0.0F;
  const Completion plain = one(request);
  request.sampling.presence_penalty = 1000.0F;
  const Completion once = one(request);
  EXPECT_EQ(std::set<std::int32_t>(once.ids.begin(), once.ids.end()).size(), once.ids.size());
  request.sampling.presence_penalty = -1000.0F;
  const Completion same = one(request);
  EXPECT_EQ(std::set<std::int32_t>(same.ids.begin(), same.ids.end()).size(), 1U);
  request.sampling = {
      .temperature = 0.0F, .logit_bias = {{.id = 77, .bias = 1000.0F}}, .max_new_tokens = 4};
  EXPECT_EQ(one(request).ids, (std::vector<std::int32_t>{77, 77, 77, 77}));
  request.sampling = {.temperature = 0.0F,
                      .max_new_tokens = 40,
                      .ignore_eos = true,
                      .bad_words = {{plain.ids[4], plain.ids[5]}, {plain.ids[8]}}};
  const Completion without = one(request);
  EXPECT_EQ(std::count(without.ids.begin(), without.ids.end(), plain.ids[8]), 0);
  for (std::size_t i = 0; i + 1 < without.ids.size(); ++i)
    EXPECT_FALSE(without.ids[i] == plain.ids[4] && without.ids[i + 1] == plain.ids[5]);
}

TEST_F(EngineSampling, StopStringsEndACompletionWhereTheyBegin) {
  Request request = sampled_request({5, 6, 7}, 40, 1);
  request.sampling.text = true;
  const Completion whole = one(request);
  ASSERT_GE(whole.text.size(), 20U);
  EXPECT_EQ(whole.text, testing::byte_tokenizer().decode(whole.ids, true));
  std::size_t at = 10;
  while ((static_cast<unsigned char>(whole.text[at]) & 0x80U) != 0 ||
         (static_cast<unsigned char>(whole.text[at + 1]) & 0x80U) != 0)
    ++at;
  const std::string stop = whole.text.substr(at, 2);
  request.sampling.stop_strings = {stop};
  const Completion cut = one(request);
  EXPECT_EQ(cut.finish_reason, FinishReason::kStop);
  EXPECT_EQ(cut.stop_string, stop);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(stop)));
  EXPECT_LT(cut.ids.size(), whole.ids.size());
  EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end(), whole.ids.begin()));
  request.sampling.keep_stop_string = true;
  EXPECT_EQ(one(request).text, cut.text + stop);
  // Streamed, the pieces are the text, and nothing of the stop string was shown.
  request.sampling.keep_stop_string = false;
  engine_->submit(request);
  std::string streamed;
  while (!engine_->idle()) {
    ASSERT_TRUE(engine_->step().ok());
    for (const NewToken& token : engine_->new_tokens()) streamed += token.text;
  }
  EXPECT_EQ(streamed, engine_->take_finished().front().text);
  EXPECT_EQ(streamed, cut.text);
}

TEST_F(EngineSampling, BestOfReturnsTheLikeliest) {
  Request request = sampled_request({5, 6, 7}, 10, 3, 6);
  std::vector<Completion> sampled = all(request);
  const auto mean = [](const Completion& completion) {
    double sum = 0;
    for (const float logprob : completion.logprobs) sum += double{logprob};
    return sum / static_cast<double>(completion.logprobs.size());
  };
  std::stable_sort(sampled.begin(), sampled.end(),
                   [&](const Completion& a, const Completion& b) { return mean(a) > mean(b); });
  request.n = 2;
  request.best_of = 6;
  const std::vector<Completion> best = all(request);
  ASSERT_EQ(best.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) expect_same_completion(best[i], sampled[i]);
}

TEST_F(EngineSampling, TopLogprobsHoldTheChosenBitsAndTheLikeliest) {
  Request request = sampled_request({5, 6, 7, 8}, 12, 3);
  request.sampling.temperature = 0.8F;
  request.sampling.top_logprobs = 100;
  request.sampling.prompt_top_logprobs = 5;
  const Completion completion = one(request);
  ASSERT_EQ(completion.top_logprobs.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    const auto& top = completion.top_logprobs[i];
    ASSERT_EQ(top.size(), 100U);
    EXPECT_TRUE(std::is_sorted(
        top.begin(), top.end(),
        [](const TokenScore& a, const TokenScore& b) { return a.logprob > b.logprob; }));
    const auto chosen = std::find_if(top.begin(), top.end(), [&](const TokenScore& score) {
      return score.id == completion.ids[i];
    });
    if (chosen != top.end()) {
      EXPECT_EQ(chosen->logprob, completion.logprobs[i]);
    }
  }
  ASSERT_EQ(completion.prompt_top_logprobs.size(), 3U);
  ASSERT_EQ(completion.prompt_logprobs.size(), 3U);
  request.prompt_ids[1] = completion.prompt_top_logprobs[0][0].id;
  EXPECT_EQ(one(request).prompt_logprobs[0], completion.prompt_top_logprobs[0][0].logprob);
}

TEST_F(EngineSampling, ProcessedLogprobsAreOfWhatIsDrawnFrom) {
  Request request = sampled_request({5, 6, 7}, 20, 3);
  request.sampling.processed_logprobs = true;
  const Completion plain = one(request);
  EXPECT_EQ(plain.processed_logprobs, plain.logprobs);  // nothing is changed, to the bit
  request.sampling.top_k = 3;
  request.sampling.top_logprobs = 10;
  const Completion three = one(request);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& top = three.top_processed_logprobs[i];
    ASSERT_EQ(top.size(), 3U);
    double sum = 0;
    for (const TokenScore& score : top) sum += std::exp(double{score.logprob});
    EXPECT_NEAR(sum, 1.0, 1e-5);
    EXPECT_GE(three.processed_logprobs[i], three.logprobs[i]);
    EXPECT_NEAR(top[0].logprob - top[1].logprob,
                three.top_logprobs[i][0].logprob - three.top_logprobs[i][1].logprob, 1e-4);
  }
  request.sampling.top_k = 0;
  request.sampling.temperature = 0.0F;
  request.sampling.bad_words = {{5}};
  const Completion greedy = one(request);
  for (std::size_t i = 0; i < greedy.ids.size(); ++i) {
    EXPECT_GE(greedy.processed_logprobs[i], greedy.logprobs[i]);
    for (const TokenScore& score : greedy.top_processed_logprobs[i]) EXPECT_NE(score.id, 5);
  }
}

TEST_F(EngineSampling, GreedyReportsTheLogprobsOfTemperatureOne) {
  Request request = sampled_request({5, 6, 7}, 20, 3);
  request.sampling.temperature = 0.0F;
  const Completion completion = one(request);
  PackedBatch batch;
  std::vector<std::int32_t> ids = request.prompt_ids;
  ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
  batch.append(ids, 3);
  auto scored = model_->token_logprobs(batch);
  ASSERT_TRUE(scored.ok());
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(completion.logprobs[i], scored->logprobs_N.const_data_ptr<float>()[i]);
}

TEST_F(EngineSampling, NamesTheFieldThatIsWrong) {
  const auto message = [&](const std::function<void(Request&)>& change) {
    std::vector<Request> requests(2, sampled_request({5}, 4, 0));
    change(requests[0]);
    auto completions = engine_->generate(requests);
    EXPECT_TRUE(completions->back().status.ok());
    EXPECT_EQ(completions->back().ids.size(), 4U);
    EXPECT_EQ(completions->front().finish_reason, FinishReason::kError);
    return completions->front().status.message();
  };
  const auto expect = [&](const char* field, const std::function<void(Request&)>& change) {
    const std::string text(message(change));
    EXPECT_NE(text.find(field), std::string::npos) << text;
  };
  const float nan = std::nanf("");
  expect("presence_penalty", [&](Request& r) { r.sampling.presence_penalty = nan; });
  expect("frequency_penalty", [&](Request& r) { r.sampling.frequency_penalty = INFINITY; });
  expect("logit_bias", [&](Request& r) { r.sampling.logit_bias = {{.id = 3, .bias = nan}}; });
  expect("stop_ids: token id 5000", [](Request& r) { r.sampling.stop_ids = {5000}; });
  expect("logit_bias: token id 160",
         [](Request& r) { r.sampling.logit_bias = {{.id = 160, .bias = 0}}; });
  expect("bad_words", [](Request& r) { r.sampling.bad_words = {{}}; });
  expect("bad_words: token id -1", [](Request& r) { r.sampling.bad_words = {{3, -1}}; });
  expect("stop_strings", [](Request& r) { r.sampling.stop_strings = {"a", ""}; });
  expect("top_logprobs is 129", [](Request& r) { r.sampling.top_logprobs = 129; });
  expect("prompt_top_logprobs is -1", [](Request& r) { r.sampling.prompt_top_logprobs = -1; });
  expect("best_of is 1; 0 (none), or from n, 2", [](Request& r) { r.n = 2, r.best_of = 1; });
  expect("n is 0", [](Request& r) { r.n = 0; });
  expect("prompt_ids: token id 160", [](Request& r) { r.prompt_ids = {160}; });
  expect("beam.width is -1", [](Request& r) { r.sampling.beam.width = -1; });
  expect("every token is forbidden", [](Request& r) {
    for (std::int32_t id = 0; id < 160; ++id) r.sampling.bad_words.push_back({id});
  });
  auto without = std::move(*Engine::create(*model_));
  Request request = sampled_request({5}, 4, 0);
  request.sampling.stop_strings = {"a"};
  EXPECT_EQ(without->generate(std::span(&request, 1))->front().status.message(),
            "request: stop_strings need a tokenizer: EngineOptions::tokenizer");
}

}  // namespace
}  // namespace rl
