#include "rl/rollout/partial_rollout.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "random_requests.h"
#include "runtime/codec/codec.h"

namespace rl {
namespace {

using testing::make_engine;
using testing::random_prompt;
using testing::tiny_model;

std::vector<PartialPrompt> some_prompts(int count) {
  std::mt19937 generator(7);
  std::vector<PartialPrompt> prompts;
  for (int i = 0; i < count; ++i)
    prompts.push_back({.ids = random_prompt(generator, 3 + static_cast<std::size_t>(i) % 5),
                       .seed = static_cast<std::uint64_t>(i)});
  return prompts;
}

// Of different lengths: the model's end comes by chance.
Request like(std::int64_t n = 3) {
  Request request{.prompt_ids = {}, .n = n};
  request.sampling.max_new_tokens = 40;
  request.sampling.stop_ids = {5, 9, 17, 30, 31, 32};
  return request;
}

std::vector<std::vector<Completion>> whole(const Transformer& model,
                                           const std::vector<PartialPrompt>& prompts) {
  std::vector<std::vector<Completion>> all;
  for (const PartialPrompt& prompt : prompts) {
    Request request = like();
    request.prompt_ids = prompt.ids;
    request.sampling.seed = prompt.seed;
    auto completions = make_engine(model)->generate(std::span(&request, 1));
    EXPECT_TRUE(completions.ok());
    all.push_back(std::move(*completions));
  }
  return all;
}

void expect_same_rest(const Completion& a, const Completion& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.logprobs, b.logprobs) << "to the bit";
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.length_max, b.length_max);
  EXPECT_EQ(a.sample, b.sample);
}

TEST(PartialRollout, InPiecesSamplesAreThoseOfOneGo) {
  const auto model = tiny_model();
  const auto prompts = some_prompts(10);
  const auto expected = whole(*model, prompts);
  for (const std::int64_t sequences : {64, 4}) {  // all at once, or some after others
    const auto engine = make_engine(*model, {.sequences_max = sequences});
    std::vector<PartialPrompt> left = prompts;
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < 10; ++i) numbers.push_back(i);
    int pieces = 0, partial = 0;
    for (; !left.empty(); ++pieces) {
      const auto generated = generate_partially(
          *engine, like(), left,
          {.prompts = std::min<std::int64_t>(3, static_cast<std::int64_t>(left.size()))});
      ASSERT_TRUE(generated.ok()) << generated.status().to_string();
      ASSERT_EQ(generated->finished.size(), std::min<std::size_t>(3, left.size()));
      EXPECT_TRUE(std::is_sorted(generated->finished.begin(), generated->finished.end()));
      for (std::size_t i = 0; i < generated->finished.size(); ++i) {
        const auto& of_prompt = expected[static_cast<std::size_t>(
            numbers[static_cast<std::size_t>(generated->finished[i])])];
        ASSERT_EQ(generated->completions[i].size(), of_prompt.size());
        for (std::size_t sample = 0; sample < of_prompt.size(); ++sample)
          expect_same_rest(generated->completions[i][sample], of_prompt[sample]);
      }
      for (auto row = generated->finished.rbegin(); row != generated->finished.rend(); ++row)
        numbers.erase(numbers.begin() + *row);
      left = generated->rest;
      for (const PartialPrompt& prompt : left) {
        for (const PartialSample& sample : prompt.samples)
          partial += sample.ids.empty() || sample.finished ? 0 : 1;
      }
      EXPECT_TRUE(engine->idle());
      EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
    }
    EXPECT_EQ(pieces, 4);
    EXPECT_GT(partial, 0) << "no sample was partial between two pieces";
  }
}

TEST(PartialRollout, WhatWasDrawnByOtherWeightsStays) {
  const auto model = tiny_model(1);
  const auto other = tiny_model(2);
  const auto prompts = some_prompts(6);
  const auto before = whole(*model, prompts);
  const auto engine = make_engine(*model);
  engine->weights_changed(3);
  auto generated = generate_partially(*engine, like(), prompts, {.prompts = 2});
  ASSERT_TRUE(generated.ok());
  const std::vector<PartialPrompt> rest = generated->rest;
  model->parameters().arena().copy_(other->parameters().arena());
  engine->weights_changed(4);
  generated = generate_partially(*engine, like(), rest, {.prompts = 4});
  ASSERT_TRUE(generated.ok()) << generated.status().to_string();
  EXPECT_TRUE(generated->rest.empty());
  int mixed = 0;
  for (std::size_t row = 0; row < rest.size(); ++row) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Completion& completion = generated->completions[row][i];
      const PartialSample& partial = rest[row].samples[i];
      ASSERT_GE(completion.ids.size(), partial.ids.size());
      EXPECT_TRUE(std::equal(partial.ids.begin(), partial.ids.end(), completion.ids.begin()));
      EXPECT_TRUE(std::equal(partial.logprobs.begin(), partial.logprobs.end(),
                             completion.logprobs.begin()));
      const auto old = static_cast<std::int64_t>(partial.ids.size()),
                 fresh = static_cast<std::int64_t>(completion.ids.size()) - old;
      if (old == 0 || fresh == 0) continue;
      ++mixed;
      EXPECT_EQ(completion.weight_versions, (std::vector<VersionRun>{{3, old}, {4, fresh}}));
      // The new tokens have the log-probs that the new weights give them behind the old ones.
      PackedBatch batch;
      std::vector<std::int32_t> ids = rest[row].ids;
      ids.insert(ids.end(), completion.ids.begin(), completion.ids.end());
      batch.append(ids, static_cast<std::int64_t>(rest[row].ids.size()));
      const auto scored = other->token_logprobs(batch);
      ASSERT_TRUE(scored.ok());
      EXPECT_TRUE(std::equal(completion.logprobs.begin() + old, completion.logprobs.end(),
                             scored->logprobs_N.const_data_ptr<float>() + old));
    }
  }
  EXPECT_GT(mixed, 0);
}

TEST(PartialRollout, OldPromptsAreWaitedForOrStartAgain) {
  const auto model = tiny_model();
  const auto prompts = some_prompts(8);
  const auto engine = make_engine(*model);
  const auto first = generate_partially(*engine, like(), prompts, {.prompts = 2});
  ASSERT_TRUE(first.ok());
  ASSERT_NE(first->finished.front(), 0) << "the oldest prompt was to take longer than two others";
  const auto waited =
      generate_partially(*engine, like(), prompts, {.prompts = 2, .must_finish = 2});
  ASSERT_TRUE(waited.ok());
  EXPECT_EQ(waited->finished, (std::vector<std::int64_t>{0, 1}))
      << "and of those that are done the oldest are taken";
  const auto done_before =
      std::count_if(waited->rest.begin(), waited->rest.end(), [](const PartialPrompt& prompt) {
        return std::all_of(prompt.samples.begin(), prompt.samples.end(),
                           [](const PartialSample& sample) { return sample.finished; });
      });
  EXPECT_GT(done_before, 0) << "others had finished meanwhile, which costs nothing later";
  const auto later = generate_partially(*engine, like(), waited->rest, {.prompts = done_before});
  ASSERT_TRUE(later.ok());

  engine->weights_changed(9);
  const auto again = generate_partially(*engine, like(), first->rest, {.prompts = 6, .restart = 3});
  ASSERT_TRUE(again.ok());
  for (std::size_t row = 0; row < 3; ++row) {
    for (const Completion& completion : again->completions[row])
      EXPECT_EQ(completion.weight_versions.size(), 1U);
  }
}

TEST(PartialRollout, RefusesWhatDoesNotFit) {
  const auto model = tiny_model();
  const auto engine = make_engine(*model);
  const auto message = [&](const std::vector<PartialPrompt>& prompts, const Request& request,
                           const PartialPlan& plan) {
    const auto generated = generate_partially(*engine, request, prompts, plan);
    EXPECT_FALSE(generated.ok());
    EXPECT_TRUE(engine->idle());
    EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
    return generated.status().message();
  };
  const auto with = [](std::vector<PartialSample> samples) {
    return std::vector<PartialPrompt>{{.ids = {3}, .seed = 1},
                                      {.ids = {1, 2}, .seed = 0, .samples = std::move(samples)}};
  };
  const PartialSample sound{.ids = {4}, .logprobs = {-1}, .weight_versions = {{0, 1}}};
  EXPECT_NE(message(some_prompts(2), like(), {.prompts = 3}).find("3 prompts are wanted of 2"),
            std::string::npos);
  EXPECT_NE(message(with({sound}), like(), {.prompts = 2})
                .find("prompt 1: request: 1 partial samples, n is 3"),
            std::string::npos)
      << message(with({sound}), like(), {.prompts = 2});
  const auto of = [&](const PartialSample& sample, const Request& request = like(1)) {
    return message(with({sample}), request, {.prompts = 2});
  };
  EXPECT_NE(of({.ids = {4}, .logprobs = {}, .weight_versions = {{0, 1}}}).find("differ in number"),
            std::string::npos);
  EXPECT_NE(
      of({.ids = {4}, .logprobs = {-1}, .weight_versions = {{0, 2}}}).find("differ in number"),
      std::string::npos);
  EXPECT_NE(of({.ids = {1 << 20}, .logprobs = {-1}, .weight_versions = {{0, 1}}})
                .find("outside the vocabulary"),
            std::string::npos);
  EXPECT_NE(of({.ids = {}, .logprobs = {}, .weight_versions = {}, .finished = true})
                .find("without a token"),
            std::string::npos);
  const PartialSample full{.ids = std::vector<std::int32_t>(40, 4),
                           .logprobs = std::vector<float>(40, -1),
                           .weight_versions = {{0, 40}}};
  EXPECT_NE(of(full).find("leave none to generate of 40"), std::string::npos);
  Request beams = like(1);
  beams.sampling.beam.width = 2;
  EXPECT_NE(of(sound, beams).find("no beam search"), std::string::npos);
}

TEST(PartialRollout, TravelsWhole) {
  const PartialPrompt prompt{.ids = {1, 2},
                             .seed = 8,
                             .samples = {{.ids = {4},
                                          .logprobs = {-1},
                                          .weight_versions = {{2, 1}},
                                          .finished = true,
                                          .stopped = true},
                                         {}}};
  runtime::Encoder encoder;
  runtime::encode_value(encoder, prompt);
  runtime::Decoder decoder(encoder.to_buffer());
  const auto back = runtime::decode_all<PartialPrompt>(decoder);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, prompt);
}

}  // namespace
}  // namespace rl
