#include "rl/rollout/request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;

TEST(SamplingParams, AreValidUpToTheirBounds) {
  for (const SamplingParams& params : std::vector<SamplingParams>{
           {},
           {.temperature = 0.0F},
           {.temperature = 1e-4F},
           {.top_p = 1.0F, .top_k = -1},
           {.first_temperature = 0.0F, .min_p = 1.0F},
           {.presence_penalty = -2.0F, .frequency_penalty = -2.0F},
           {.max_new_tokens = 3, .min_new_tokens = 3},
           {.max_new_tokens = 0},
           {.prompt_top_logprobs = 128, .top_logprobs = 128},
           {.stop_ids = {1}, .beam = {.width = 256, .length_penalty = -1.0F}}})
    EXPECT_TRUE(params.validate().ok()) << params.validate().to_string();
}

TEST(SamplingParams, WhatIsOutOfRangeIsNamed) {
  const float no_number = std::nanf(""), infinite = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<SamplingParams, std::string>> wrong = {
      {{.temperature = -0.5F}, "temperature is"},
      {{.temperature = 1e-6F}, "temperature is"},
      {{.temperature = no_number}, "temperature is"},
      {{.temperature = infinite}, "temperature is"},
      {{.top_p = 0.0F}, "top_p is"},
      {{.top_p = 1.5F}, "top_p is"},
      {{.top_p = no_number}, "top_p is"},
      {{.top_k = -2}, "top_k is -2"},
      {{.first_temperature = -1.0F}, "first_temperature is"},
      {{.first_top_k = -1}, "first_top_k is -1"},
      {{.min_p = 1.5F}, "min_p is"},
      {{.repetition_penalty = 0.0F}, "repetition_penalty is"},
      {{.presence_penalty = infinite}, "presence_penalty is"},
      {{.frequency_penalty = no_number}, "frequency_penalty is"},
      {{.logit_bias = {{7, infinite}}}, "logit_bias of token 7 is"},
      {{.max_new_tokens = -1}, "max_new_tokens is -1"},
      {{.min_new_tokens = -1}, "min_new_tokens is -1"},
      {{.max_new_tokens = 2, .min_new_tokens = 3}, "min_new_tokens 3 exceeds max_new_tokens 2"},
      {{.stop_strings = {"a", ""}}, "stop_strings holds an empty text"},
      {{.bad_words = {{1}, {}}}, "bad_words holds an empty sequence"},
      {{.prompt_top_logprobs = 129}, "prompt_top_logprobs is 129"},
      {{.top_logprobs = -1}, "top_logprobs is -1"}};
  for (const auto& [params, named] : wrong)
    support::expect_failure(params.validate(), ErrorCode::kInvalidArgument, {"sampling: " + named});
}

TEST(SamplingParams, ABeamSearchRefusesWhatItDoesNotDo) {
  const std::vector<std::pair<SamplingParams, std::string>> wrong = {
      {{.beam = {.width = -1}}, "beam.width is -1"},
      {{.beam = {.width = 257}}, "beam.width is 257"},
      {{.beam = {.length_penalty = std::nanf("")}}, "beam.length_penalty is"},
      {{.stop_strings = {"x"}, .beam = {.width = 2}}, "stop_strings do not go with beam.width 2"},
      {{.top_logprobs = 1, .beam = {.width = 2}}, "top_logprobs does not go with beam.width 2"},
      {{.processed_logprobs = true, .beam = {.width = 2}},
       "processed_logprobs does not go with beam.width 2"}};
  for (const auto& [params, named] : wrong)
    support::expect_failure(params.validate(), ErrorCode::kInvalidArgument, {"sampling: " + named});
}

TEST(Completion, ATokenHasTheVersionOfItsRun) {
  Completion completion;
  completion.ids = {5, 6, 7, 8};
  completion.weight_versions = {{.version = 3, .tokens = 1}, {.version = 9, .tokens = 2}};
  EXPECT_EQ(completion.weight_version(0), 3u);
  EXPECT_EQ(completion.weight_version(1), 9u);
  EXPECT_EQ(completion.weight_version(2), 9u);
  EXPECT_EQ(completion.weight_version(3), 0u) << "no run has it";
}

}  // namespace
}  // namespace rl
