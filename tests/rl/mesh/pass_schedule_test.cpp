// Schedules of whole pipelines, in simulated time.
#include "rl/mesh/pass_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

namespace rl {
namespace {

struct Shape {
  int stages = 1;
  int chunks = 1;
  std::size_t passes = 0;
};

std::string text_of(const Shape& shape) {
  return std::to_string(shape.stages) + " stages, " + std::to_string(shape.chunks) + " chunks, " +
         std::to_string(shape.passes) + " passes";
}

// A forward pass of a chunk takes one unit, a backward pass two.
constexpr std::int64_t kForward = 1, kBackward = 2;

// When the last stage is ready, as if nothing is sent; none: the stages wait for one another.
std::optional<std::int64_t> end_of(const Shape& shape) {
  std::map<std::tuple<bool, int, std::size_t>, std::int64_t> made;  // backward, chunk, pass
  std::vector<std::vector<PassStep>> steps;
  for (int stage = 0; stage < shape.stages; ++stage)
    steps.push_back(pass_schedule(stage, shape.stages, shape.chunks, shape.passes));
  const std::size_t size = steps.size();
  std::vector<std::size_t> next(size);
  std::vector<std::int64_t> now(size);
  const int last_chunk = shape.stages * shape.chunks - 1;
  const auto before = [&](const PassStep& step, int chunk) {
    std::optional<std::tuple<bool, int, std::size_t>> needed;
    if (!step.is_backward && chunk > 0) needed = {false, chunk - 1, step.pass};
    if (step.is_backward && chunk < last_chunk) needed = {true, chunk + 1, step.pass};
    if (step.is_backward && chunk == last_chunk) needed = {false, chunk, step.pass};
    return needed;
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t stage = 0; stage < size; ++stage) {
      if (next[stage] == steps[stage].size()) continue;
      const PassStep& step = steps[stage][next[stage]];
      const int chunk = step.chunk * shape.stages + static_cast<int>(stage);
      const auto needed = before(step, chunk);
      if (needed && !made.contains(*needed)) continue;
      const std::int64_t begin = std::max(now[stage], needed ? made[*needed] : 0);
      now[stage] = begin + (step.is_backward ? kBackward : kForward);
      made[{step.is_backward, chunk, step.pass}] = now[stage];
      ++next[stage];
      goes_on = true;
    }
  }
  for (std::size_t stage = 0; stage < size; ++stage)
    if (next[stage] < steps[stage].size()) return std::nullopt;
  return *std::max_element(now.begin(), now.end());
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (int stages = 1; stages <= 6; ++stages)
    for (int chunks = 1; chunks <= 4; ++chunks)
      for (std::size_t passes = 0; passes <= 20; ++passes) all.push_back({stages, chunks, passes});
  return all;
}

TEST(PassSchedule, EachChunkMakesEachPassOnceEitherWayInTheOrderOfPasses) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(text_of(shape));
    std::vector<std::size_t> every(shape.passes);
    std::iota(every.begin(), every.end(), 0);
    for (int stage = 0; stage < shape.stages; ++stage) {
      std::map<std::pair<int, bool>, std::vector<std::size_t>> made;
      for (const PassStep& step : pass_schedule(stage, shape.stages, shape.chunks, shape.passes))
        made[{step.chunk, step.is_backward}].push_back(step.pass);
      EXPECT_EQ(made.size(), shape.passes == 0 ? 0U : 2U * static_cast<std::size_t>(shape.chunks));
      for (const auto& [of, passes] : made) EXPECT_EQ(passes, every);
    }
  }
}

TEST(PassSchedule, NoStageWaitsForEver) {
  for (const Shape& shape : shapes()) EXPECT_TRUE(end_of(shape).has_value()) << text_of(shape);
}

// Of passes that fill whole groups.
TEST(PassSchedule, StagesWaitAsLongAsTheFormulaOfInterleavedStagesSays) {
  int compared = 0;
  for (const Shape& shape : shapes()) {
    if (shape.passes == 0 || shape.passes % static_cast<std::size_t>(shape.stages) != 0) continue;
    const auto works = static_cast<std::int64_t>(shape.passes) * shape.chunks;
    EXPECT_EQ(end_of(shape), (works + shape.stages - 1) * (kForward + kBackward)) << text_of(shape);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(PassSchedule, NoStageHasMoreChunksInFlightThanItSays) {
  for (const Shape& shape : shapes()) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      std::int64_t now = 0, most = 0;
      for (const PassStep& step : pass_schedule(stage, shape.stages, shape.chunks, shape.passes))
        most = std::max(most, now += step.is_backward ? -1 : 1);
      EXPECT_LE(most, chunks_in_flight_max(stage, shape.stages, shape.chunks))
          << text_of(shape) << ", stage " << stage;
    }
  }
  EXPECT_EQ(chunks_in_flight_max(0, 4, 1), 4);
  EXPECT_EQ(chunks_in_flight_max(3, 4, 1), 1);
}

TEST(PassSchedule, WithOneChunkAStageIsAsManyPassesAheadAsThereAreStagesBehind) {
  const std::vector<PassStep> expected = {{0, 0, false}, {1, 0, false}, {0, 0, true},
                                          {2, 0, false}, {1, 0, true},  {2, 0, true}};
  EXPECT_EQ(pass_schedule(1, 3, 1, 3), expected);
}

TEST(PassSchedule, PassesThatHaveNotGoneBackThroughTheFirstChunk) {
  EXPECT_EQ(passes_not_through(3, 1, 6), (std::vector<std::size_t>{0, 1, 2, 2, 2, 2}));
  for (const Shape& shape : shapes()) {
    const auto waiting = passes_not_through(shape.stages, shape.chunks, shape.passes);
    ASSERT_EQ(waiting.size(), shape.passes) << text_of(shape);
    for (std::size_t pass = 0; pass < waiting.size(); ++pass) EXPECT_LE(waiting[pass], pass);
  }
}

}  // namespace
}  // namespace rl
