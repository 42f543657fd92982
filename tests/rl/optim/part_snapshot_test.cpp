#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/optim/learner_part.h"
#include "rl/optim/learner_snapshot.h"
#include "rl/weights/safetensors.h"
#include "tests/rl/plan/small_config.h"
#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

// Two ranks that each write a part of two parameters. Both have the weights whole.
class PartSnapshotTest : public ::testing::Test {
 protected:
  struct Rank {
    PackedRanges home;
    std::vector<float> weights, moments;
    std::int64_t steps = 1;
  };

  PartSnapshotTest() {
    const std::vector<RangeSet> homes = {RangeSet{{0, 3}, {10, 17}}, RangeSet{{3, 10}}};
    for (const RangeSet& home : homes) {
      Rank& rank = ranks_.emplace_back();
      rank.home = PackedRanges(home);
      set(rank, 1);
    }
  }
  // Every element another value, and other ones for another `round`.
  static void set(Rank& rank, int round) {
    rank.weights.clear();
    for (int i = 0; i < 17; ++i) rank.weights.push_back(static_cast<float>(100 * round + i));
    rank.moments.assign(static_cast<std::size_t>(rank.home.elements()),
                        static_cast<float>(round) + 0.5F);
    rank.steps = round;
  }
  LearnerPart part(std::size_t number) {
    Rank& rank = ranks_[number];
    return {.rank = static_cast<int>(number),
            .config = config_,
            .trained = specs_,
            .home = rank.home,
            .kept = whole_,
            .weights = rank.weights,
            .optimizer = {{"exp_avg", rank.moments}},
            .optimizer_name = "adamw",
            .optimizer_steps = rank.steps};
  }
  std::vector<PartSnapshot> snapshots() {
    std::vector<PartSnapshot> all;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) all.emplace_back(part(rank));
    return all;
  }

  using Files = std::vector<std::string>;
  Files read(const std::string& name) const {
    const std::filesystem::path folder = folder_.path() / name;
    return {support::content_of(folder / kModelFolder / kSafetensorsFile),
            support::content_of(folder / kMomentsFile),
            support::content_of(folder / kOptimizerFile)};
  }
  // What the parts themselves are written as now.
  Files written(const std::string& name) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto files = write_part(part(rank), folder_.path() / name);
      EXPECT_TRUE(files.ok()) << files.status().to_string();
    }
    return read(name);
  }
  Files written(const std::vector<PartSnapshot>& all, const std::string& name) const {
    for (const PartSnapshot& snapshot : all) {
      const auto files = snapshot.write(config_, nullptr, folder_.path() / name);
      EXPECT_TRUE(files.ok()) << files.status().to_string();
    }
    return read(name);
  }

  support::TemporaryFolder folder_;
  const ModelConfig config_ = small_config();
  const std::vector<ParameterSpec> specs_ = {
      {.name = "matrix", .shape = {4, 3}, .offset = 0, .count = 12, .transposed = true},
      {.name = "vector", .shape = {5}, .offset = 12, .count = 5}};
  const PackedRanges whole_{RangeSet{{0, 17}}};
  std::vector<Rank> ranks_;
};

TEST_F(PartSnapshotTest, IsWhatThePartWasWhateverItBecomes) {
  const Files before = written("before");
  const std::vector<PartSnapshot> taken = snapshots();
  for (Rank& rank : ranks_) set(rank, 2);
  EXPECT_EQ(written(taken, "taken"), before);
  EXPECT_NE(written("after"), before);
  EXPECT_EQ(written(taken, "again"), before) << "it may be written more than once";
}

TEST_F(PartSnapshotTest, IsTakenAgainInItsMemory) {
  std::vector<PartSnapshot> taken = snapshots();
  for (Rank& rank : ranks_) set(rank, 3);
  for (std::size_t rank = 0; rank < taken.size(); ++rank) taken[rank].retake(part(rank));
  const Files now = written("now");
  for (Rank& rank : ranks_) set(rank, 4);
  EXPECT_EQ(written(taken, "taken"), now);
}

TEST_F(PartSnapshotTest, OfAnotherHomeIsTakenAnew) {
  std::vector<PartSnapshot> taken = snapshots();
  std::swap(ranks_[0].home, ranks_[1].home);
  for (Rank& rank : ranks_) set(rank, 5);
  for (std::size_t rank = 0; rank < taken.size(); ++rank) taken[rank].retake(part(rank));
  const Files now = written("now");
  EXPECT_EQ(written(taken, "taken"), now);
}

TEST_F(PartSnapshotTest, TheFirstRankNamesTheFilesAndAFailureItsRank) {
  const std::vector<PartSnapshot> taken = snapshots();
  const auto first = taken[0].write(config_, nullptr, folder_.path() / "x");
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(*first, learner_files(specs_, /*is_adapter=*/false));
  const auto second = taken[1].write(config_, nullptr, folder_.path() / "x");
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_TRUE(second->empty());
  const auto failed = taken[1].write(config_, nullptr, folder_.path() / "none" / "x");
  ASSERT_FALSE(failed.ok());
  EXPECT_TRUE(failed.status().message().starts_with("rank 1: ")) << failed.status().message();
}

}  // namespace
}  // namespace rl
