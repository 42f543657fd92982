// The state that a rank's links show to a watcher. That teams compute right is any_mesh_test.cpp's.
#include "rl/optim/pass_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rl/comm/thread_links.h"
#include "tests/support/eventually.h"

namespace rl {
namespace {

using runtime::Status;

std::unique_ptr<Communicator> end_of(std::unique_ptr<Links>& links) {
  return std::make_unique<Communicator>(std::move(links));
}

// Both ranks of a team, which are all there are.
class PassRanksTest : public ::testing::Test {
 protected:
  static constexpr PassSharing kTwo{.ranks = 2};

  static std::unique_ptr<PassRanks> made(const Communicator& all, std::unique_ptr<Links>& of_team) {
    TrainingRanks ranks(nullptr, end_of(of_team));
    return std::make_unique<PassRanks>(all, ranks, kTwo, /*streams=*/false);
  }

  std::vector<std::unique_ptr<Links>> all_links_ = make_thread_links(2);
  std::vector<std::unique_ptr<Links>> team_links_ = make_thread_links(2);
  std::unique_ptr<Communicator> all0_ = end_of(all_links_[0]), all1_ = end_of(all_links_[1]);
  std::unique_ptr<PassRanks> first_ = made(*all0_, team_links_[0]),
                             second_ = made(*all1_, team_links_[1]);
};

TEST_F(PassRanksTest, TheTeamIsAsItWasSharedOut) {
  EXPECT_EQ(second_->team().rank(), 1);
  EXPECT_EQ(second_->team().size(), 2);
  EXPECT_EQ(second_->team().stages(), 1);
  EXPECT_EQ(second_->team().links(), nullptr);
}

TEST_F(PassRanksTest, WhatIsDoneWithTheTeamCountsAndWhatIsDoneElsewhereStays) {
  Pulse pulse{.steps = 5, .operations = 2, .where = "a sum of all"};
  first_->team().communicator().progress("layer 1");
  first_->team().communicator().progress("layer 2");
  first_->add_to(pulse);
  EXPECT_EQ(pulse.steps, 7u);
  EXPECT_EQ(pulse.where, "a sum of all") << "it does not wait for its team";
  EXPECT_FALSE(pulse.waiting);
}

TEST_F(PassRanksTest, ARankThatWaitsForItsTeamWaitsUntilItIsAborted) {
  std::atomic<bool> ended = false;
  Status status;
  std::thread waiting([&] {
    status = first_->team().communicator().barrier("of the team");
    ended = true;
  });
  const auto read = [&] {
    Pulse pulse{.where = "elsewhere"};
    first_->add_to(pulse);
    return pulse;
  };
  EXPECT_TRUE(support::eventually([&] { return read().waiting; }));
  EXPECT_NE(read().where.find("of the team"), std::string::npos) << read().where;
  EXPECT_FALSE(ended);
  first_->abort(runtime::cancelled("another worker has failed"));
  waiting.join();
  EXPECT_EQ(status.code(), runtime::ErrorCode::kCancelled) << status.to_string();
  EXPECT_FALSE(read().waiting);
}

}  // namespace
}  // namespace rl
