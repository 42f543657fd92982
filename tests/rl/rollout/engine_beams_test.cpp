// Beams of an engine by logits that a test gives; the search itself is beam_search_test.cpp's.
#include "rl/rollout/engine_beams.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/rl/rollout/open_engine.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::size_t kTokens = 6;  // of which 2 ends a sequence

// Probabilities of some tokens; the others share the rest.
std::vector<float> logits_of(const std::map<std::int32_t, double>& probabilities) {
  double rest = 1;
  for (const auto& [id, probability] : probabilities) rest -= probability;
  rest /= static_cast<double>(kTokens - probabilities.size());
  std::vector<float> logits;
  for (std::size_t id = 0; id < kTokens; ++id) {
    const auto given = probabilities.find(static_cast<std::int32_t>(id));
    logits.push_back(
        static_cast<float>(std::log(given == probabilities.end() ? rest : given->second)));
  }
  return logits;
}

class EngineBeamsTest : public ::testing::Test {
 protected:
  void search(std::int64_t new_tokens, std::int64_t n = 2) {
    Request request{.prompt_ids = {1, 3, 5}, .n = n};
    request.sampling.max_new_tokens = new_tokens;
    request.sampling.beam.width = 2;
    engine_.add(std::move(request));
  }
  // The step that computes all that is pending: the sequences whose next token is wanted.
  std::vector<Sequence*> computed() {
    std::vector<Sequence*> read;
    for (const ScheduledTokens& part : engine_.scheduler.schedule()) {
      part.sequence->computed += part.count;
      read.push_back(part.sequence);
    }
    return read;
  }

  testing::OpenEngine engine_;
  EngineBeams beams_{engine_.setting,   engine_.pool,     *engine_.cache,
                     engine_.scheduler, engine_.requests, engine_.stats};
};

TEST_F(EngineBeamsTest, TheBestHypothesesAreCompletedWithTheirScoresAndVersions) {
  search(/*new_tokens=*/2);
  beams_.collect(*computed().at(0), logits_of({{0, 0.5}, {1, 0.3}}), /*weight_version=*/7);
  const std::vector<Sequence*> live = computed();
  ASSERT_EQ(live.size(), 2u);
  EXPECT_EQ(live[0]->tokens, (Ids{1, 3, 5, 0}));
  EXPECT_EQ(live[1]->tokens, (Ids{1, 3, 5, 1}));
  beams_.collect(*live[0], logits_of({{4, 0.6}, {5, 0.3}}), 8);
  beams_.collect(*live[1], logits_of({{0, 0.9}}), 8);
  const std::vector<Completion> found = engine_.requests.take_finished();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].ids, (Ids{0, 4}));
  EXPECT_EQ(found[1].ids, (Ids{1, 0}));
  EXPECT_NEAR(found[0].beam_score, std::log(0.5 * 0.6) / 2, 1e-5);
  EXPECT_NEAR(found[1].beam_score, std::log(0.3 * 0.9) / 2, 1e-5);
  ASSERT_EQ(found[0].logprobs.size(), 2u);
  EXPECT_NEAR(found[0].logprobs[1], std::log(0.6), 1e-5);
  for (const Completion& completion : found) {
    EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
    EXPECT_EQ(completion.weight_versions, (std::vector<VersionRun>{{7, 1}, {8, 1}}));
  }
  EXPECT_EQ(engine_.progress.finished, 2u);
  EXPECT_EQ(engine_.stats.generated_tokens, 4) << "those of the last round too";
  EXPECT_EQ(engine_.progress.generated_tokens, 4);
  EXPECT_TRUE(engine_.scheduler.idle());
  EXPECT_EQ(engine_.cache->free_blocks(), engine_.cache->blocks());
}

TEST_F(EngineBeamsTest, ABeamWaitsForTheOthers) {
  search(3);
  beams_.collect(*computed().at(0), logits_of({{0, 0.5}, {1, 0.3}}), 1);
  const std::vector<Sequence*> live = computed();
  beams_.collect(*live[0], logits_of({{4, 0.6}}), 1);
  EXPECT_TRUE(live[0]->held);
  EXPECT_EQ(live[0]->tokens.size(), 4u);
  beams_.collect(*live[1], logits_of({{4, 0.6}}), 1);
  EXPECT_FALSE(live[0]->held);
  EXPECT_EQ(live[0]->tokens, (Ids{1, 3, 5, 0, 4}));
  EXPECT_EQ(computed().size(), 2u);
}

TEST_F(EngineBeamsTest, BeamsThatGoOnHaveTheBlocksOfTheOneTheyComeFrom) {
  search(3);
  beams_.collect(*computed().at(0), logits_of({{0, 0.5}, {1, 0.3}}), 1);
  const std::vector<Sequence*> live = computed();
  ASSERT_EQ(live.size(), 2u);
  const std::vector<std::int32_t> of_first = live[0]->blocks, of_second = live[1]->blocks;
  ASSERT_NE(of_first, of_second) << "each has its own block to write to";
  beams_.collect(*live[0], logits_of({{4, 0.5}, {5, 0.45}}), 1);
  beams_.collect(*live[1], logits_of({}), 1);
  EXPECT_EQ(live[0]->tokens, (Ids{1, 3, 5, 0, 4}));
  EXPECT_EQ(live[1]->tokens, (Ids{1, 3, 5, 0, 5}));
  EXPECT_EQ(live[0]->blocks, of_first);
  EXPECT_EQ(live[1]->blocks, of_first);
  EXPECT_EQ(live[1]->computed, 4);
  EXPECT_TRUE(engine_.cache->shared(of_first.back()));
  EXPECT_EQ(engine_.cache->free_blocks(), engine_.cache->blocks() - std::ssize(of_first));
}

TEST_F(EngineBeamsTest, AHypothesisEndsWithAStopToken) {
  search(8);
  beams_.collect(*computed().at(0), logits_of({{2, 0.9}, {0, 0.05}}), 1);
  while (!engine_.requests.empty()) {
    for (Sequence* sequence : computed()) {
      if (sequence->request != nullptr) beams_.collect(*sequence, logits_of({{2, 0.5}}), 1);
    }
  }
  const std::vector<Completion> found = engine_.requests.take_finished();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].ids, Ids{2});
  EXPECT_EQ(found[0].finish_reason, FinishReason::kStop);
}

TEST_F(EngineBeamsTest, LogitsThatAreNotFiniteEndTheirRequestAlone) {
  search(4);
  engine_.add(testing::sampled_request({1, 2}, 4, 1));
  const std::vector<Sequence*> read = computed();
  ASSERT_EQ(read.size(), 2u);
  std::vector<float> logits = logits_of({});
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  beams_.collect(*read[0], logits, 1);
  const std::vector<Completion> failed = engine_.requests.take_finished();
  ASSERT_EQ(failed.size(), 2u);
  for (const Completion& completion : failed) {
    EXPECT_EQ(completion.finish_reason, FinishReason::kError);
    support::expect_failure(completion.status, runtime::ErrorCode::kTaskFailed,
                            {"at position 3", "not finite"});
  }
  EXPECT_EQ(engine_.requests.size(), 1);
}

}  // namespace
}  // namespace rl
