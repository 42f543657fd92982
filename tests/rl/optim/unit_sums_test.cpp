// Gradients that are added up unit by unit in passes, against sums of what each rank made up. Ranks
// are threads.
#include "rl/optim/unit_sums.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rl/model/guarded.h"
#include "tests/rl/optim/unit_ranks.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Status;
using testing::GradientWriter;
using testing::made_up_gradient;
using testing::on_unit_ranks;
using testing::packed_home;
using testing::UnitRank;

Status make_pass(const UnitRank& mine) { return mine.model.idle_pass(/*with_backward=*/true); }

const RangeSet& home_of(const UnitRank& mine) {
  return mine.homes[static_cast<std::size_t>(mine.communicator.rank())];
}

void expect_sum(const UnitRank& mine, const UnitSums& sums,
                const std::function<float(std::int64_t)>& expected) {
  const std::vector<float> packed = packed_home(home_of(mine), expected);
  ASSERT_EQ(sums.sum().size(), packed.size());
  std::size_t others = 0;
  for (std::size_t i = 0; i < packed.size(); ++i) others += sums.sum()[i] == packed[i] ? 0 : 1;
  EXPECT_EQ(others, 0u) << "of " << packed.size() << " elements";
}

// A page in the midst of what the unit has, of its gradients.
bool is_resident(const UnitRank& mine, int unit) {
  const ArenaRange range = mine.units[static_cast<std::size_t>(unit)].own.ranges().front();
  const std::span<float> arena = elements_of(mine.model.gradient_arena().memory().arena());
  const auto middle = static_cast<std::size_t>((range.begin + range.end) / 2);
  unsigned char state = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(&arena[middle]) / 4096 * 4096;
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(address), 1, &state), 0);
  return (state & 1) != 0;
}

TEST(UnitSums, ARankHasTheSumOfItsHomeAloneWhenTheLastPassIsThrough) {
  for (const bool tied : {false, true}) {
    for (const int ranks : {1, 3}) {
      on_unit_ranks(ranks, tied, [&](const UnitRank& mine) {
        GradientWriter writer(mine);
        UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes);
        const std::vector<std::uint8_t> all(static_cast<std::size_t>(ranks), 1);
        for (int step = 0; step < 2; ++step) {
          EXPECT_EQ(std::ssize(sums.sum()), home_of(mine).elements());
          ASSERT_TRUE(make_pass(mine).ok());
          EXPECT_FALSE(sums.is_complete()) << "passes before the last one add up at home";
          sums.expect_last_pass(all, /*last_round=*/true);
          ASSERT_TRUE(make_pass(mine).ok());
          ASSERT_TRUE(sums.is_complete());
          expect_sum(mine, sums, [&](std::int64_t i) {
            float sum = 0.0F;
            for (int rank = 0; rank < ranks; ++rank)
              for (const int pass : {2 * step, 2 * step + 1})
                sum += made_up_gradient(rank, pass, i);
            return sum;
          });
          sums.end_step();
          EXPECT_FALSE(sums.is_complete());
        }
      });
    }
  }
}

// Round 0 adds ranks 0 and 2, round 1 rank 1; what the others' passes gave is dropped.
TEST(UnitSums, RoundsAddTheRanksThatTheyName) {
  on_unit_ranks(3, false, [](const UnitRank& mine) {
    GradientWriter writer(mine);
    UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes);
    sums.expect_last_pass(std::vector<std::uint8_t>{1, 0, 1}, /*last_round=*/false);
    ASSERT_TRUE(make_pass(mine).ok());
    EXPECT_FALSE(sums.is_complete());
    sums.expect_last_pass(std::vector<std::uint8_t>{0, 1, 0}, /*last_round=*/true);
    ASSERT_TRUE(make_pass(mine).ok());
    EXPECT_TRUE(sums.is_complete());
    expect_sum(mine, sums, [](std::int64_t i) {
      return made_up_gradient(0, 0, i) + made_up_gradient(2, 0, i) + made_up_gradient(1, 1, i);
    });
  });
}

// Four ranks in two teams of two positions: rank p * 2 + d. The second position computes the
// gradient of layer 1 and of half of the embeddings. The leaves are of ranks 2 (of team 0) and 1
// (of team 1).
TEST(UnitSums, OfATeamTheRankAddsThatHasTheGradient) {
  on_unit_ranks(4, false, [](const UnitRank& mine) {
    const ArenaRange embeddings = mine.units.front().own.ranges().front();
    const RangeSet second =
        mine.units[2].own.united({{embeddings.begin, embeddings.begin + embeddings.size() / 2}});
    const RangeSet first = RangeSet{{0, mine.model.parameters().arena_size()}}.without(second);
    GradientWriter writer(mine);
    UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes, {{first, second}});
    sums.expect_last_pass(std::vector<std::uint8_t>{0, 1, 1, 0}, /*last_round=*/true);
    ASSERT_TRUE(make_pass(mine).ok());
    ASSERT_TRUE(sums.is_complete());
    expect_sum(mine, sums, [&](std::int64_t i) {
      const int position = second.contains({i, i + 1}) ? 1 : 0;
      return made_up_gradient(position * 2, 0, i) + made_up_gradient(position * 2 + 1, 0, i);
    });
  });
}

// Notified of passes after the sums, it asks which units' gradients have memory then.
class MemoryWatch final : public LayerListener {
 public:
  explicit MemoryWatch(const UnitRank& rank) : rank_(rank) { rank_.model.tell(*this); }
  ~MemoryWatch() override { rank_.model.stop_telling(*this); }
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  std::vector<int> resident() const {
    std::vector<int> units;
    for (int unit = 0; unit < static_cast<int>(rank_.units.size()); ++unit)
      if (is_resident(rank_, unit)) units.push_back(unit);
    return units;
  }

  void before_backward(std::int64_t /*layer*/) override { seen.push_back(resident()); }
  void after_pass() override { seen.push_back(resident()); }

  std::vector<std::vector<int>> seen;

 private:
  const UnitRank rank_;
};

// Units 0 and 3 are the embeddings and the output layer. A page that comes from the system has
// memory once it is written.
TEST(UnitSums, GradientsHaveMemoryOnlyUntilTheirUnitIsThroughTheLastPass) {
  using Seen = std::vector<std::vector<int>>;
  on_unit_ranks(2, false, [](const UnitRank& mine) {
    GradientWriter writer(mine);
    ASSERT_EQ(mine.units.size(), 4u);
    UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes);
    MemoryWatch watch(mine);
    EXPECT_EQ(watch.resident(), std::vector<int>());
    sums.expect_last_pass(std::vector<std::uint8_t>{1, 1}, /*last_round=*/true);
    ASSERT_TRUE(make_pass(mine).ok());
    EXPECT_EQ(watch.seen, (Seen{{3}, {1, 2}, {}}))
        << "each is on its way while the next one computes, and that of 3 has moved to 1";
    sums.end_step();
    watch.seen.clear();
    ASSERT_TRUE(make_pass(mine).ok());
    EXPECT_EQ(watch.seen, (Seen{{3}, {2, 3}, {0, 1, 2, 3}})) << "another pass will add to them";
    sums.expect_last_pass(std::vector<std::uint8_t>{1, 1}, /*last_round=*/true);
    watch.seen.clear();
    ASSERT_TRUE(make_pass(mine).ok());
    EXPECT_EQ(watch.seen, (Seen{{0, 1, 2, 3}, {0, 1, 2, 3}, {}}))
        << "the memory of 3 is kept, though all others have some, and goes when the pass ends";
  });
}

// Rank 1 fails before its layer 0, whose gradients the others wait for.
TEST(UnitSums, ARankThatFailsEndsThePassOfTheOthersThere) {
  std::vector<Status> ended(3);
  on_unit_ranks(3, false, [&](const UnitRank& mine) {
    const int rank = mine.communicator.rank();
    GradientWriter writer(mine, [&](int unit) {
      if (rank == 1 && unit == 1) throw_unless_ok(runtime::task_failed("no gradients today"));
    });
    UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes);
    sums.expect_last_pass(std::vector<std::uint8_t>{1, 1, 1}, /*last_round=*/true);
    ended[static_cast<std::size_t>(rank)] = make_pass(mine);
    EXPECT_FALSE(sums.is_complete());
  });
  EXPECT_EQ(ended[1].code(), ErrorCode::kTaskFailed) << ended[1].to_string();
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(ended[rank].code(), ErrorCode::kUnavailable) << ended[rank].to_string();
    for (const char* named : {"gradients of layer 0", "has left the group"})
      EXPECT_NE(ended[rank].message().find(named), std::string::npos) << ended[rank].message();
  }
}

// The arena's memory is there again, and the passes that follow add up where they did before.
TEST(UnitSums, WithoutThemThePassesKeepTheirGradients) {
  on_unit_ranks(1, false, [](const UnitRank& mine) {
    GradientWriter writer(mine);
    {
      const UnitSums sums(mine.communicator, mine.model, mine.units, mine.homes);
      ASSERT_TRUE(make_pass(mine).ok());
    }
    mine.model.zero_gradients();
    ASSERT_TRUE(make_pass(mine).ok());
    const std::span<const float> gradients = elements_of(mine.model.gradients().arena());
    std::size_t others = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      others += gradients[i] == made_up_gradient(0, 1, static_cast<std::int64_t>(i)) ? 0 : 1;
    EXPECT_EQ(others, 0u);
  });
}

}  // namespace
}  // namespace rl
