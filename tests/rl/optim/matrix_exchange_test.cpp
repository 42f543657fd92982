// Muon's matrices on several ranks, which are threads.
#include "rl/optim/matrix_exchange.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "rl/mesh/unit_homes.h"
#include "rl/optim/muon.h"
#include "tests/rl/optim/counting_links.h"

namespace rl {
namespace {

constexpr std::int64_t kExchangedElements = 640;
const std::vector<ArenaMatrix> kExchangedMatrices = {
    {16, 8, 12}, {112, 5, 5}, {144, 16, 8}, {304, 10, 32}};

std::vector<float> drawn_values(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(kExchangedElements);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<PackedRanges> homes_on(int ranks, int group) {
  std::vector<PackedRanges> homes;
  const std::vector<RangeSet> units = {{{0, 144}}, {{144, 300}, {400, 640}}, {{300, 400}}};
  for (RangeSet& home : unit_homes(units, kExchangedElements, 16, ranks, group))
    homes.emplace_back(std::move(home));
  return homes;
}

std::vector<float> packed_of(const PackedRanges& home, std::span<const float> arena) {
  std::vector<float> values;
  for (const ArenaRange& range : home.set().ranges()) {
    const std::span<const float> part = part_of(arena, range);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

// What a rank has after three steps, of its home; of all of the arena where there are no homes.
struct Taken {
  std::vector<float> weights, first, second;  // the moments
};

void take_steps(Communicator& ranks, std::span<const PackedRanges> homes, Taken& taken) {
  kernel::ThreadPool pool(1);
  const PackedRanges all({{0, kExchangedElements}});
  const PackedRanges& home = homes.empty() ? all : homes[static_cast<std::size_t>(ranks.rank())];
  const std::vector<ArenaRange> decayed = {{0, 400}};
  Muon muon(MatrixExchange(ranks, kExchangedElements, kExchangedMatrices, homes),
            home.packed_parts(decayed), {}, {});
  taken.weights = packed_of(home, drawn_values(1));
  for (unsigned step = 0; step < 3; ++step) {
    const std::vector<float> gradients = packed_of(home, drawn_values(step + 2));
    const runtime::Status status = muon.step(pool, taken.weights, gradients, 0.01F, 0.5F);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  const std::vector<OptimizerState> state = muon.state();
  taken.first.assign(state[0].values.begin(), state[0].values.end());
  taken.second.assign(state[1].values.begin(), state[1].values.end());
}

TEST(MatrixExchange, MuonsWeightsAndMomentsAreThoseOfOneRank) {
  Taken one;
  take_steps(*make_single_communicator(), {}, one);
  for (const auto& [size, group] : {std::pair(2, 0), {2, 2}, {3, 3}, {4, 2}, {5, 0}, {8, 8}}) {
    SCOPED_TRACE(std::to_string(size) + " ranks in groups of " + std::to_string(group));
    const std::vector<PackedRanges> homes =
        group > 0 ? homes_on(size, group) : std::vector<PackedRanges>();
    auto links = make_thread_links(size);
    std::vector<Taken> taken(links.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Communicator ranks(std::move(links[rank]));
        take_steps(ranks, homes, taken[rank]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < taken.size(); ++rank) {
      const PackedRanges home =
          homes.empty() ? PackedRanges({{0, kExchangedElements}}) : homes[rank];
      EXPECT_TRUE(taken[rank].weights == packed_of(home, one.weights)) << "rank " << rank;
      EXPECT_TRUE(taken[rank].first == packed_of(home, one.first)) << "rank " << rank;
      EXPECT_TRUE(taken[rank].second == packed_of(home, one.second)) << "rank " << rank;
    }
  }
}

// A rank that goes in the middle of a step, where the others wait for its parts.
TEST(MatrixExchange, ARankThatGoesIsAnErrorOfTheOthers) {
  const std::vector<PackedRanges> homes = homes_on(3, 3);
  auto links = make_thread_links(3);
  std::vector<runtime::Status> ended(links.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Communicator ranks(std::move(links[rank]));
      MatrixExchange exchange(ranks, kExchangedElements, kExchangedMatrices, homes);
      const auto nothing = [](const ArenaMatrix&, const ArenaRange&, std::span<float>) {};
      const ArenaMatrix* const mine = exchange.mine(0);
      std::vector<float> whole(mine == nullptr ? 0 : static_cast<std::size_t>(mine->elements()));
      const runtime::Status collected = exchange.collect(0, nothing, whole);
      ASSERT_TRUE(collected.ok()) << collected.to_string();
      if (rank == 1) {
        ranks.abort(runtime::unavailable("it goes"));
        return;
      }
      for (int turn = 0; turn < 100 && ended[rank].ok(); ++turn) {
        ended[rank] = exchange.distribute(
            0, whole, [](const ArenaMatrix&, const ArenaRange&, std::span<const float>) {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(ended[rank].code(), runtime::ErrorCode::kUnavailable) << ended[rank].to_string();
    EXPECT_NE(ended[rank].to_string().find("orthogonal matrices"), std::string::npos)
        << ended[rank].to_string();
  }
}

}  // namespace
}  // namespace rl
