#include "rl/comm/rank_watch.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using std::chrono::seconds;

constexpr RankWatch::Time kBegin{};

RankWatch::Time at(int second) { return kBegin + seconds(second); }

Pulse computing(std::uint64_t steps, const char* where = "layer 3") {
  return {.steps = steps, .operations = 4, .waiting = false, .where = where};
}

Pulse waiting(std::uint64_t operation, const char* where = "all-reduce of gradients") {
  return {.steps = 7, .operations = operation, .waiting = true, .where = where};
}

TEST(RankWatch, WaitsForARankThatComputes) {
  RankWatch watch(2, seconds(60), kBegin);
  for (int second = 0; second < 1000; ++second) {
    watch.heard(0, waiting(5), at(second));
    watch.heard(1, computing(static_cast<std::uint64_t>(second / 50)), at(second));
    ASSERT_FALSE(watch.judge(at(second)).has_value()) << second;
  }
}

TEST(RankWatch, NamesTheRankThatNoLongerAnswersWhereverItStopped) {
  for (const Pulse& last : {waiting(5), computing(3)}) {
    RankWatch watch(3, seconds(60), kBegin);
    watch.heard(1, last, at(0));
    for (int second = 0; second <= 61; ++second) {
      watch.heard(0, waiting(5), at(second));
      watch.heard(2, waiting(5), at(second));
      ASSERT_EQ(watch.judge(at(second)).has_value(), second > 60) << second;
    }
    const std::optional<HeldUp> verdict = watch.judge(at(61));
    EXPECT_EQ(verdict->rank, 1);
    EXPECT_NE(verdict->reason.find(last.where), std::string::npos) << verdict->reason;
    EXPECT_NE(verdict->reason.find("61 s"), std::string::npos) << verdict->reason;
    EXPECT_NE(verdict->reason.find("rank 0 waits in all-reduce of gradients"), std::string::npos)
        << verdict->reason;
  }
}

TEST(RankWatch, NamesTheRankThatComputesWithoutProgressNotThoseThatWaitForIt) {
  RankWatch watch(3, seconds(60), kBegin);
  for (int second = 0; second <= 61; ++second) {
    watch.heard(0, waiting(5), at(second));
    watch.heard(1, waiting(4), at(second));
    watch.heard(2, computing(3), at(second));
  }
  const std::optional<HeldUp> verdict = watch.judge(at(61));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 2);
  EXPECT_NE(verdict->reason.find("layer 3"), std::string::npos) << verdict->reason;
}

TEST(RankWatch, LetsARankComputeAsLongAsNoRankWaitsForIt) {
  RankWatch watch(2, seconds(60), kBegin);
  for (int second = 0; second <= 1000; ++second) {
    watch.heard(0, computing(3), at(second));
    watch.heard(1, computing(4), at(second));
    ASSERT_FALSE(watch.judge(at(second)).has_value()) << second;
  }
}

TEST(RankWatch, NamesTheRankThatIsBehindWhereAllWait) {
  RankWatch watch(3, seconds(60), kBegin);
  for (int second = 0; second <= 61; ++second) {
    watch.heard(0, waiting(5), at(second));
    watch.heard(1, waiting(3, "all-gather of layer 2"), at(second));
    watch.heard(2, waiting(5), at(second));
  }
  const std::optional<HeldUp> verdict = watch.judge(at(61));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->rank, 1);
  EXPECT_NE(verdict->reason.find("all-gather of layer 2"), std::string::npos) << verdict->reason;
}

TEST(RankWatch, DoesNotWaitForARankThatIsThrough) {
  RankWatch watch(2, seconds(60), kBegin);
  watch.finished(1);
  for (int second = 0; second <= 100; ++second)
    watch.heard(0, computing(static_cast<std::uint64_t>(second)), at(second));
  EXPECT_FALSE(watch.judge(at(100)).has_value());
}

}  // namespace
}  // namespace rl
