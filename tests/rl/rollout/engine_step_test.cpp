// Step by step what a step tells and completes; that its numbers are right is engine_test.cpp's.
#include "rl/rollout/engine_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "rl/model/tensor_span.h"
#include "rl/rollout/decoder.h"
#include "tests/rl/rollout/open_engine.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class EngineStepTest : public ::testing::Test {
 protected:
  std::vector<NewToken> told(std::uint64_t weight_version = 1) {
    step_.clear_new_tokens();
    step_.run(weight_version);
    return {step_.new_tokens().begin(), step_.new_tokens().end()};
  }

  testing::OpenEngine engine_;
  Decoder decoder_{*engine_.model, *engine_.cache};
  EngineStep step_{engine_.setting,   engine_.pool,      decoder_,         *engine_.cache,
                   &engine_.prefixes, engine_.scheduler, engine_.requests, engine_.stats};
};

TEST_F(EngineStepTest, WithoutRequestsItIsNone) {
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(engine_.stats.steps, 0);
}

TEST_F(EngineStepTest, TheStepThatReadsThePromptChoosesATokenForEachSample) {
  engine_.add(testing::sampled_request({5, 6, 7}, 2, 1, /*n=*/3));
  const std::vector<NewToken> first = told();
  ASSERT_EQ(first.size(), 3u);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].sample, static_cast<std::int64_t>(i));
    EXPECT_FALSE(first[i].last);
  }
  EXPECT_EQ(engine_.stats.prompt_tokens, 3) << "once for all";
  const std::vector<NewToken> second = told();
  ASSERT_EQ(second.size(), 3u);
  EXPECT_TRUE(second[0].last);
  EXPECT_EQ(engine_.stats.steps, 2);
  EXPECT_EQ(engine_.stats.generated_tokens, 6);
  EXPECT_EQ(engine_.progress.generated_tokens, 6);
  const std::vector<Completion> finished = engine_.requests.take_finished();
  ASSERT_EQ(finished.size(), 3u);
  EXPECT_EQ(finished[1].ids, (std::vector<std::int32_t>{first[1].id, second[1].id}));
  EXPECT_EQ(finished[1].logprobs, (std::vector<float>{first[1].logprob, second[1].logprob}));
  EXPECT_TRUE(told().empty());
}

TEST_F(EngineStepTest, TokensAreStampedWithTheWeightsThatChoseThem) {
  engine_.add(testing::sampled_request({5, 6}, 3, 1));
  for (const std::uint64_t version : {4, 4, 9}) (void)told(version);
  const std::vector<Completion> finished = engine_.requests.take_finished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].weight_versions, (std::vector<VersionRun>{{4, 2}, {9, 1}}));
}

TEST_F(EngineStepTest, WithoutNewTokensAPromptIsScoredAlone) {
  Request request = testing::sampled_request({5, 6, 7, 8}, 0, 1, /*n=*/2);
  request.sampling.prompt_logprobs = true;
  request.sampling.prompt_top_logprobs = 2;
  engine_.add(std::move(request));
  EXPECT_TRUE(told().empty());
  const std::vector<Completion> finished = engine_.requests.take_finished();
  ASSERT_EQ(finished.size(), 2u);
  for (const Completion& completion : finished) {
    EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
    EXPECT_TRUE(completion.ids.empty());
    EXPECT_EQ(completion.prompt_logprobs.size(), 3u);
    ASSERT_EQ(completion.prompt_top_logprobs.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(completion.prompt_top_logprobs[i].size(), 2u);
      EXPECT_GE(completion.prompt_top_logprobs[i][0].logprob, completion.prompt_logprobs[i]);
    }
  }
}

TEST_F(EngineStepTest, StopIdsStopAsSoonAsTheyMay) {
  Request any = testing::sampled_request({5, 6}, 4, 1);
  engine_.add(any);
  while (!engine_.requests.empty()) (void)told();
  const std::vector<std::int32_t> ids = engine_.requests.take_finished().at(0).ids;
  ASSERT_EQ(ids.size(), 4u);
  any.sampling.stop_ids = {ids[0]};
  engine_.add(any);
  EXPECT_TRUE(told().at(0).last);
  const Completion stopped = engine_.requests.take_finished().at(0);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.ids, (std::vector<std::int32_t>{ids[0]}));
  any.sampling.min_new_tokens = 2;
  engine_.add(any);
  EXPECT_FALSE(told().at(0).last) << "until then no stop id is chosen";
}

TEST_F(EngineStepTest, TokensThatMayBeDiscardedAreNotTold) {
  Request request = testing::sampled_request({5, 6}, 2, 1);
  request.best_of = 3;
  engine_.add(std::move(request));
  EXPECT_TRUE(told().empty());
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(engine_.requests.take_finished().size(), 1u);
  EXPECT_EQ(engine_.stats.generated_tokens, 6);
}

TEST_F(EngineStepTest, WithoutAFiniteLogitASampleFailsAndSaysWhere) {
  engine_.add(testing::sampled_request({5, 6}, 4, 1));
  (void)told();
  for (float& weight : elements_of(engine_.model->parameters().arena()))
    weight = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(told().empty());
  const std::vector<Completion> failed = engine_.requests.take_finished();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].ids.size(), 1u) << "what there was stays";
  EXPECT_EQ(failed[0].finish_reason, FinishReason::kError);
  support::expect_failure(failed[0].status, runtime::ErrorCode::kTaskFailed,
                          {"at position 3", "not finite"});
}

}  // namespace
}  // namespace rl
