#include "rl/rollout/open_requests.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rl/rollout/request_check.h"
#include "tests/rl/rollout/open_engine.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::OpenEngine;

Request asked(std::int64_t n, std::int64_t new_tokens = 4) {
  return testing::sampled_request({5, 6, 7}, new_tokens, /*seed=*/1, n);
}

// The sequences in line, by the order in which they are computed.
std::vector<Sequence*> in_line(OpenEngine& engine) {
  std::vector<Sequence*> sequences;
  for (const ScheduledTokens& part : engine.scheduler.schedule())
    sequences.push_back(part.sequence);
  return sequences;
}

// As a step does.
void append(Sequence& sequence, std::int32_t id, float logprob) {
  sequence.tokens.push_back(id);
  sequence.completion->ids.push_back(id);
  sequence.completion->logprobs.push_back(logprob);
}

TEST(OpenRequests, NumbersAreNeverUsedAgain) {
  OpenEngine engine;
  EXPECT_EQ(engine.add(asked(1)), 0u);
  EXPECT_EQ(engine.add(asked(2)), 1u);
  EXPECT_TRUE(engine.requests.abort(1));
  EXPECT_EQ(engine.requests.next_id(), 2u);
  EXPECT_EQ(engine.add(asked(1)), 2u);
  EXPECT_EQ(engine.requests.size(), 2);
  EXPECT_EQ(engine.progress.total, 4u);
  EXPECT_EQ(engine.progress.finished, 2u);
}

TEST(OpenRequests, ARefusedRequestFinishesAtOnceWithAllItsSamples) {
  OpenEngine engine;
  const runtime::Status refused = runtime::invalid_argument("too long");
  EXPECT_EQ(engine.requests.add(asked(3), refused, &engine.progress), 0u);
  EXPECT_TRUE(engine.requests.empty());
  EXPECT_TRUE(engine.scheduler.idle());
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 3u);
  for (std::size_t i = 0; i < finished.size(); ++i) {
    EXPECT_EQ(finished[i].sample, static_cast<std::int64_t>(i));
    EXPECT_EQ(finished[i].finish_reason, FinishReason::kError);
    EXPECT_EQ(finished[i].status, refused);
  }
  EXPECT_EQ(engine.progress.finished, 3u);
}

TEST(OpenRequests, ANumberOfSamplesThatCannotBeIsRefusedOnce) {
  OpenEngine engine;
  const runtime::Status refused = runtime::invalid_argument("n");
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-5}, kSamplesMax + 1}) {
    for (const std::int64_t best_of : {0, 2}) {
      Request request = asked(n);
      request.best_of = best_of;
      (void)engine.requests.add(std::move(request), refused, &engine.progress);
      const std::vector<Completion> finished = engine.requests.take_finished();
      ASSERT_EQ(finished.size(), 1u) << n << ", the best of " << best_of;
      EXPECT_EQ(finished[0].status, refused);
    }
  }
}

TEST(OpenRequests, TheFirstSampleReadsThePromptForAll) {
  OpenEngine engine;
  engine.add(asked(3));
  const std::vector<Sequence*> line = in_line(engine);
  ASSERT_EQ(line.size(), 1u);
  EXPECT_EQ(line[0]->tokens, (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_EQ(line[0]->completion->sample, 0);
  ASSERT_EQ(line[0]->siblings.size(), 2u);
  EXPECT_EQ(line[0]->siblings[1]->completion->sample, 2);
}

TEST(OpenRequests, LengthsEndWithTheContext) {
  OpenEngine engine({.context_max = 5});
  engine.add(asked(1, 100));
  engine.add(asked(1, 1));
  const std::vector<Sequence*> line = in_line(engine);
  ASSERT_EQ(line.size(), 2u);
  EXPECT_EQ(line[0]->length_max, 5);
  EXPECT_EQ(line[0]->completion->length_max, 5);
  EXPECT_EQ(line[1]->length_max, 4);
}

TEST(OpenRequests, AreDeliveredWithTheirLastSampleInTheirOrder) {
  OpenEngine engine;
  engine.add(asked(2));
  Sequence* first = in_line(engine).at(0);
  Sequence* second = first->siblings.at(0);
  engine.requests.finish(*second, FinishReason::kStop);
  EXPECT_TRUE(engine.requests.take_finished().empty());
  EXPECT_EQ(engine.progress.finished, 1u);
  engine.requests.finish(*second, FinishReason::kLength);  // once is enough
  EXPECT_EQ(engine.progress.finished, 1u);
  engine.requests.finish(*first, FinishReason::kError, runtime::task_failed("no token"));
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].sample, 0);
  EXPECT_EQ(finished[0].status.code(), ErrorCode::kTaskFailed);
  EXPECT_EQ(finished[1].finish_reason, FinishReason::kStop);
  EXPECT_TRUE(engine.requests.empty());
  EXPECT_TRUE(engine.scheduler.idle());
  EXPECT_EQ(engine.cache->free_blocks(), engine.cache->blocks());
}

TEST(OpenRequests, PartialSamplesGoOnEachByItself) {
  OpenEngine engine;
  Request request = asked(4);
  request.partial = {{.ids = {9}, .logprobs = {-1}, .weight_versions = {{3, 1}}},
                     {.ids = {8, 8},
                      .logprobs = {-2, -2},
                      .weight_versions = {},
                      .finished = true,
                      .stopped = true},
                     {},
                     {.ids = {7}, .logprobs = {-3}, .weight_versions = {}, .finished = true}};
  engine.add(std::move(request));
  const std::vector<Sequence*> line = in_line(engine);
  ASSERT_EQ(line.size(), 2u) << "none waits for another to read the prompt";
  EXPECT_EQ(line[0]->tokens, (std::vector<std::int32_t>{5, 6, 7, 9}));
  EXPECT_EQ(line[1]->tokens, (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_EQ(line[1]->completion->sample, 2);
  EXPECT_EQ(engine.progress.finished, 2u);
  for (Sequence* sequence : line) engine.requests.finish(*sequence, FinishReason::kLength);
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 4u);
  EXPECT_EQ(finished[0].ids, (std::vector<std::int32_t>{9}));
  EXPECT_EQ(finished[0].weight_versions, (std::vector<VersionRun>{{3, 1}}));
  EXPECT_EQ(finished[1].finish_reason, FinishReason::kStop);
  EXPECT_EQ(finished[1].logprobs, (std::vector<float>{-2, -2}));
  EXPECT_EQ(finished[3].finish_reason, FinishReason::kLength);
}

TEST(OpenRequests, ARequestWhoseSamplesHadAllFinishedIsDelivered) {
  OpenEngine engine;
  Request request = asked(1);
  request.partial = {{.ids = {9}, .logprobs = {-1}, .weight_versions = {}, .finished = true}};
  engine.add(std::move(request));
  EXPECT_TRUE(engine.requests.empty());
  EXPECT_TRUE(engine.scheduler.idle());
  EXPECT_EQ(engine.requests.take_finished().size(), 1u);
}

TEST(OpenRequests, OfSeveralSamplesTheLikeliestAreKeptBestFirst) {
  OpenEngine engine;
  Request request = asked(2);
  request.best_of = 4;
  engine.add(std::move(request));
  EXPECT_EQ(engine.progress.total, 4u);
  Sequence* first = in_line(engine).at(0);
  std::vector<Sequence*> samples = first->siblings;
  samples.insert(samples.begin(), first);
  EXPECT_FALSE(engine.requests.of(*first).streams) << "a token may yet be discarded";
  append(*samples[0], 1, -3);
  append(*samples[1], 1, -1);
  append(*samples[1], 1, -2);  // on average -1.5
  append(*samples[2], 1, -0.1F);
  append(*samples[3], 1, -2);
  for (Sequence* sample : samples)
    engine.requests.finish(*sample,
                           sample == samples[2] ? FinishReason::kError : FinishReason::kStop);
  const std::vector<Completion> kept = engine.requests.take_finished();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].sample, 1);
  EXPECT_EQ(kept[1].sample, 3);
}

TEST(OpenRequests, AnAbortedRequestKeepsWhatThereWas) {
  OpenEngine engine;
  const RequestId id = engine.add(asked(2));
  Sequence* first = in_line(engine).at(0);
  append(*first, 9, -1);
  EXPECT_FALSE(engine.requests.abort(id + 1));
  EXPECT_TRUE(engine.requests.abort(id));
  EXPECT_FALSE(engine.requests.abort(id));
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 2u);
  EXPECT_EQ(finished[0].finish_reason, FinishReason::kAborted);
  EXPECT_EQ(finished[0].ids, (std::vector<std::int32_t>{9}));
  EXPECT_TRUE(finished[1].ids.empty());
  engine.add(asked(1));
  engine.add(asked(3));
  engine.requests.abort_all();
  EXPECT_EQ(engine.requests.take_finished().size(), 4u);
  EXPECT_TRUE(engine.requests.empty());
}

TEST(OpenRequests, SomeRequestsAreTakenInTheirOrderOthersStay) {
  OpenEngine engine;
  for (int i = 0; i < 4; ++i) engine.add(asked(1));
  for (const RequestId id : {3, 1, 0, 2}) EXPECT_TRUE(engine.requests.abort(id));
  const std::vector<Completion> middle = engine.requests.take_finished(1, 3);
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_EQ(middle[0].request, 1u);
  EXPECT_EQ(middle[1].request, 2u);
  const std::vector<Completion> rest = engine.requests.take_finished();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].request, 3u) << "as they finished";
  EXPECT_EQ(rest[1].request, 0u);
}

TEST(OpenRequests, ARestartBeginsWithThePromptOfSamplesThatHaveNotFinished) {
  OpenEngine engine;
  engine.add(asked(3));
  Sequence* first = in_line(engine).at(0);
  const std::vector<Sequence*> others = first->siblings;
  for (Sequence* sequence : {first, others[0], others[1]}) append(*sequence, 9, -1);
  engine.requests.finish(*first, FinishReason::kStop);
  engine.requests.restart_all();
  const std::vector<Sequence*> line = in_line(engine);
  ASSERT_EQ(line.size(), 1u) << "the first that is left reads the prompt";
  EXPECT_EQ(line[0], others[0]);
  EXPECT_EQ(line[0]->siblings, std::vector<Sequence*>{others[1]});
  for (const Sequence* sequence : others) {
    EXPECT_EQ(sequence->tokens, (std::vector<std::int32_t>{5, 6, 7}));
    EXPECT_TRUE(sequence->completion->ids.empty());
    EXPECT_EQ(sequence->completion->length_max, 7);
  }
  engine.requests.abort_all();
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 3u);
  EXPECT_EQ(finished[0].ids, (std::vector<std::int32_t>{9}));
  EXPECT_EQ(finished[2].sample, 2);
}

TEST(OpenRequests, WhatWasComputedMayBeDroppedAndTheLineStays) {
  OpenEngine engine;
  engine.add(asked(1));
  Sequence* sequence = in_line(engine).at(0);
  sequence->computed = 3;
  append(*sequence, 9, -1);
  engine.requests.drop_computed();
  EXPECT_EQ(sequence->computed, 0);
  EXPECT_TRUE(sequence->blocks.empty());
  EXPECT_EQ(engine.cache->free_blocks(), engine.cache->blocks());
  EXPECT_EQ(sequence->tokens.size(), 4u);
  EXPECT_EQ(in_line(engine), std::vector<Sequence*>{sequence});
}

TEST(OpenRequests, ThePolicySaysWhoComesFirst) {
  OpenEngine longest({.policy = SchedulingPolicy::kLongestFirst});
  longest.add(asked(1, 4));
  longest.add(asked(1, 6));
  Request predicted = asked(1, 100);
  predicted.predicted_tokens = 5;
  longest.add(std::move(predicted));
  std::vector<RequestId> order;
  for (const Sequence* sequence : in_line(longest)) order.push_back(sequence->completion->request);
  EXPECT_EQ(order, (std::vector<RequestId>{1, 2, 0}));
  OpenEngine urgent({.policy = SchedulingPolicy::kPriority});
  for (const std::int64_t priority :
       {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    Request request = asked(1);
    request.priority = priority;
    urgent.add(std::move(request));
  }
  order.clear();
  for (const Sequence* sequence : in_line(urgent)) order.push_back(sequence->completion->request);
  EXPECT_EQ(order, (std::vector<RequestId>{3, 1, 0, 2}));
}

TEST(OpenRequests, PrefixesAreForgottenWithTheLastRequest) {
  OpenEngine engine;
  const PrefixCache::Place place = engine.prefixes.match(0, {}).place;
  engine.add(asked(1));
  engine.add(asked(1));
  engine.requests.abort(0);
  EXPECT_TRUE(engine.prefixes.takes(place));
  engine.requests.abort(1);
  EXPECT_FALSE(engine.prefixes.takes(place));
}

TEST(OpenRequests, ABeamSearchBeginsWithOneBeamAndEndsAsAWhole) {
  OpenEngine engine;
  Request request = asked(2);
  request.sampling.beam.width = 3;
  engine.add(std::move(request));
  const std::vector<Sequence*> line = in_line(engine);
  ASSERT_EQ(line.size(), 1u);
  EXPECT_TRUE(line[0]->siblings.empty());
  RunningRequest& running = engine.requests.of(*line[0]);
  EXPECT_EQ(running.sequences.size(), 3u);
  ASSERT_TRUE(running.beams);
  EXPECT_EQ(running.beams->live().size(), 1u);
  EXPECT_EQ(running.candidates.size(), 1u);
  EXPECT_FALSE(running.streams);
  engine.requests.finish_all(running, FinishReason::kError, runtime::task_failed("no token"));
  const std::vector<Completion> finished = engine.requests.take_finished();
  ASSERT_EQ(finished.size(), 2u);
  for (const Completion& completion : finished)
    EXPECT_EQ(completion.status.code(), ErrorCode::kTaskFailed);
  EXPECT_EQ(engine.progress.finished, 2u);
  EXPECT_TRUE(engine.scheduler.idle());
}

}  // namespace
}  // namespace rl
