// Requests of every kind in any order, and the engine under them: what comes out is what each gives
// alone, and no block is lost.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "rl/rollout/engine.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/rollout/tiny_model.h"

namespace rl::testing {

inline constexpr std::int32_t kBrokenToken = 150;  // whose embedding is NaN

inline std::unique_ptr<Transformer> partly_broken_model() {
  auto model = tiny_model(9);
  model->parameters().view("model.embed_tokens.weight").select(0, kBrokenToken).fill_(std::nan(""));
  return model;
}

inline Tokenizer byte_tokenizer() {
  auto tokenizer = Tokenizer::load(fixtures() / "tokenizers" / "gpt2_bytelevel");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return *tokenizer;
}

/// Request `index` of those that `seed` stands for: a sequence of them shares beginnings, and some
/// can't be served.
class RandomRequests {
 public:
  explicit RandomRequests(std::uint32_t seed) : seed_(seed) {
    std::mt19937 generator(seed);
    for (int i = 0; i < 6; ++i)
      beginnings_.push_back(random_prompt(generator, 20 + generator() % 50, kBrokenToken));
  }

  Request at(std::size_t index) const {
    std::mt19937 generator(seed_ + 1000003U * static_cast<std::uint32_t>(index + 1));
    Request request;
    if (generator() % 2 == 0) {
      const auto& beginning = beginnings_[generator() % beginnings_.size()];
      request.prompt_ids.assign(
          beginning.begin(),
          beginning.begin() + 1 + static_cast<std::ptrdiff_t>(generator() % beginning.size()));
    }
    const auto more = random_prompt(
        generator, generator() % 30 + (request.prompt_ids.empty() ? 1 : 0), kBrokenToken);
    request.prompt_ids.insert(request.prompt_ids.end(), more.begin(), more.end());
    request.n = generator() % 4 == 0 ? 1 + generator() % 4 : 1;
    request.priority = generator() % 3;
    request.predicted_tokens = generator() % 40;
    SamplingParams& sampling = request.sampling;
    sampling.seed = generator();
    sampling.max_new_tokens = generator() % 24;
    sampling.temperature = std::array{0.0F, 0.7F, 1.0F, 1.5F}[generator() % 4];
    sampling.top_k = std::array{0, 0, 5, 1}[generator() % 4];
    sampling.top_p = std::array{1.0F, 0.9F}[generator() % 2];
    sampling.min_p = std::array{0.0F, 0.0F, 0.1F}[generator() % 3];
    sampling.ignore_eos = generator() % 2 == 0;
    sampling.prompt_logprobs = generator() % 5 == 0;
    if (generator() % 4 == 0) sampling.stop_ids = {7, 11, 40, 90};
    add_rare(request, generator);
    return request;
  }

 private:
  static void add_rare(Request& request, std::mt19937& generator) {
    SamplingParams& sampling = request.sampling;
    switch (generator() % 24) {
      case 0: sampling.repetition_penalty = 1.3F; break;
      case 1: sampling.presence_penalty = 0.5F, sampling.frequency_penalty = 0.2F; break;
      case 2: sampling.logit_bias = {{.id = 4, .bias = 3.0F}, {.id = 5, .bias = -3.0F}}; break;
      case 3: sampling.bad_words = {{3}, {12, 13}}; break;
      case 4: sampling.stop_strings = {"ab", "#", "\n"}, sampling.text = true; break;
      case 5: sampling.top_logprobs = 3, sampling.processed_logprobs = true; break;
      case 6: sampling.prompt_top_logprobs = 2; break;
      case 7: request.best_of = request.n + 2; break;
      case 8:
      case 9: sampling.beam.width = request.n + 1; break;
      case 10: sampling.min_new_tokens = sampling.max_new_tokens / 2; break;
      case 11: request.prompt_ids.back() = kBrokenToken; break;
      case 12: request.prompt_ids.clear(); break;
      case 13: request.prompt_ids = random_prompt(generator, 200, kBrokenToken); break;
      case 14: sampling.top_p = 0.0F; break;
      case 15: sampling.temperature = std::numeric_limits<float>::quiet_NaN(); break;
      default: break;
    }
  }

  std::uint32_t seed_;
  std::vector<std::vector<std::int32_t>> beginnings_;
};

inline void expect_same_completion(const Completion& a, const Completion& b) {
  EXPECT_EQ(a.sample, b.sample);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.logprobs, b.logprobs);
  EXPECT_EQ(a.processed_logprobs, b.processed_logprobs);
  EXPECT_EQ(a.top_logprobs, b.top_logprobs);
  EXPECT_EQ(a.top_processed_logprobs, b.top_processed_logprobs);
  EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
  EXPECT_EQ(a.prompt_top_logprobs, b.prompt_top_logprobs);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.stop_string, b.stop_string);
  EXPECT_EQ(a.beam_score, b.beam_score);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.status, b.status);
}

/// Whether `a` is what there was of `b` when it was aborted.
inline void expect_beginning(const Completion& a, const Completion& b) {
  ASSERT_LE(a.ids.size(), b.ids.size());
  EXPECT_TRUE(std::equal(a.ids.begin(), a.ids.end(), b.ids.begin()));
  EXPECT_TRUE(std::equal(a.logprobs.begin(), a.logprobs.end(), b.logprobs.begin()));
}

/// Submits `count` random requests to an engine of `options` in bursts, with aborts and pauses
/// between its steps, and compares.
inline void survive_random_requests(std::size_t count, std::uint32_t seed, EngineOptions options) {
  const auto model = partly_broken_model();
  options.tokenizer = byte_tokenizer();
  auto alone = Engine::create(
      *model, {.prefix_caching = PrefixCaching::kOff, .tokenizer = options.tokenizer});
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  options.cache.bytes_max *= (*alone)->cache().block_bytes();  // given in blocks
  auto engine = Engine::create(*model, options);
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  const RandomRequests requests(seed);
  std::mt19937 generator(seed);
  std::size_t submitted = 0, answered = 0, aborted = 0;
  while (answered < count) {
    for (std::size_t burst = generator() % 4 == 0 ? generator() % 12 : 0;
         burst > 0 && submitted < count; --burst) {
      ASSERT_EQ((*engine)->submit(requests.at(submitted)), submitted);
      ++submitted;
    }
    if (generator() % 20 == 0 && submitted > 0)
      aborted +=
          (*engine)->abort(submitted - 1 - generator() % std::min<std::size_t>(submitted, 20)) ? 1
                                                                                               : 0;
    if (generator() % 100 == 0)
      (*engine)->pause(generator() % 2 == 0);
    else if ((*engine)->paused())
      (*engine)->resume();
    const runtime::Status status = (*engine)->step();
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (std::vector<Completion> finished = (*engine)->take_finished(); !finished.empty();) {
      const RequestId id = finished.front().request;
      SCOPED_TRACE("request " + std::to_string(id) + " of seed " + std::to_string(seed));
      const Request request = requests.at(id);
      auto expected = (*alone)->generate(std::span(&request, 1));
      ASSERT_TRUE(expected.ok()) << expected.status().to_string();
      ASSERT_GE(finished.size(), expected->size());
      for (std::size_t i = 0; i < expected->size(); ++i) {
        ASSERT_EQ(finished[i].request, id);
        if (finished[i].finish_reason != FinishReason::kAborted)
          expect_same_completion(finished[i], (*expected)[i]);
        else if (request.best_of <= request.n && request.sampling.beam.width == 0)
          expect_beginning(finished[i], (*expected)[i]);
        if (::testing::Test::HasFailure()) return;
      }
      finished.erase(finished.begin(),
                     finished.begin() + static_cast<std::ptrdiff_t>(expected->size()));
      ++answered;
    }
    if ((*engine)->idle() && options.prefix_caching != PrefixCaching::kKeep) {
      ASSERT_EQ((*engine)->cache().free_blocks(), (*engine)->cache().blocks());
    }
  }
  EXPECT_TRUE((*engine)->idle());
  const EngineStats stats = (*engine)->stats();
  EXPECT_EQ((*engine)->cache().free_blocks() + stats.prefix_blocks, (*engine)->cache().blocks());
  EXPECT_EQ((*engine)->cache().idle_cached_blocks(), stats.prefix_blocks);
  EXPECT_GT(stats.preemptions, 0);
  EXPECT_GT(aborted, 0U);
  if (options.prefix_caching != PrefixCaching::kOff) {
    EXPECT_GT(stats.cached_tokens, 0);
  }
  if (options.preemption == Preemption::kSwap) {
    EXPECT_GT(stats.swaps, 0);
  }
  if (options.prefix_caching == PrefixCaching::kKeep) {
    EXPECT_GT(stats.evicted_blocks, 0);
    (*engine)->weights_changed(1);
    EXPECT_EQ((*engine)->cache().free_blocks(), (*engine)->cache().blocks());
  }
}

}  // namespace rl::testing
