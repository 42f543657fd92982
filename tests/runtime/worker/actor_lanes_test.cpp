// The lanes of calls before one actor: which of them may run, and in which turn.
#include "runtime/worker/actor_lanes.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

class ActorLanesTest : public ::testing::Test {
 protected:
  // Methods by the groups that they are in.
  static constexpr MethodId kPlain = 1, kIo = 2, kIoToo = 3, kSlow = 4;
  using Order = std::vector<std::uint64_t>;

  ActorLanesTest() {
    for (const auto& [id, group] : std::vector<std::pair<MethodId, std::string>>{
             {kPlain, ""}, {kIo, "io"}, {kIoToo, "io"}, {kSlow, "slow"}}) {
      MethodEntry entry;
      entry.id = id;
      entry.concurrency_group = group;
      class_.add(std::move(entry));
    }
  }
  void configure(std::uint32_t at_once, ConcurrencyGroups groups) {
    lanes_.configure({at_once, std::move(groups), {}}, class_);
  }
  std::unique_ptr<ActorJob> job(MethodId method, std::uint64_t sequence) const {
    auto made = std::make_unique<ActorJob>();
    made->channel = caller_.near;
    made->call.method = method;
    made->call.sequence = sequence;
    return made;
  }
  void push(MethodId method, std::uint64_t sequence) { lanes_.push(job(method, sequence)); }
  /// Begins all that may run; in the order in which they begin.
  Order begin_all() {
    Order begun;
    Lane* lane = nullptr;
    while (auto next = lanes_.pop(&lane)) {
      begun.push_back(next->call.sequence);
      running_.push_back(lane);
    }
    return begun;
  }
  void end_all() {
    for (Lane* lane : running_) --lane->active;
    running_.clear();
  }
  Order take_all() {
    Order taken;
    while (auto next = lanes_.take_any()) taken.push_back(next->call.sequence);
    return taken;
  }

  EventLoop loop_;
  ChannelPair caller_{loop_};
  ActorClass class_{"Counter", typeid(int)};
  ActorLanes lanes_;
  std::vector<Lane*> running_;
};

TEST_F(ActorLanesTest, WithoutGroupsThereIsOneLineOfOneAtATime) {
  configure(1, {});
  push(kIo, 1);
  push(kPlain, 2);
  push(kSlow, 3);
  EXPECT_EQ(lanes_.limit(), 1u);
  EXPECT_EQ(begin_all(), Order{1});
  EXPECT_FALSE(lanes_.is_runnable());
  EXPECT_EQ(lanes_.size(), 2u);
  end_all();
  EXPECT_TRUE(lanes_.is_runnable());
  EXPECT_EQ(begin_all(), Order{2});
}

TEST_F(ActorLanesTest, AGroupHasItsOwnLineAndLimit) {
  configure(1, {{"io", 2}, {"slow", 1}});
  EXPECT_EQ(lanes_.limit(), 4u);
  EXPECT_FALSE(lanes_.is_runnable());
  for (std::uint64_t i = 1; i <= 3; ++i) push(i == 2 ? kIoToo : kIo, i);
  push(kPlain, 4);
  push(kPlain, 5);
  push(kSlow, 6);
  const Order begun = begin_all();
  EXPECT_EQ(std::set(begun.begin(), begun.end()), (std::set<std::uint64_t>{1, 2, 4, 6}));
  EXPECT_EQ(lanes_.size(), 2u);
  end_all();
  const Order rest = begin_all();
  EXPECT_EQ(std::set(rest.begin(), rest.end()), (std::set<std::uint64_t>{3, 5}));
}

TEST_F(ActorLanesTest, AMethodWhoseGroupTheActorWasNotGivenIsInTheDefaultLine) {
  configure(1, {{"io", 1}});
  push(kSlow, 1);
  push(kPlain, 2);
  push(999, 3);  // its class has none such
  EXPECT_EQ(begin_all(), Order{1});
  EXPECT_EQ(take_all(), (Order{2, 3}));
}

TEST_F(ActorLanesTest, LanesTakeTurns) {
  configure(9, {{"io", 9}, {"slow", 9}});
  for (std::uint64_t i = 0; i < 3; ++i) {
    push(kIo, 10 + i);
    push(kSlow, 20 + i);
    push(kPlain, 30 + i);
  }
  EXPECT_EQ(begin_all(), (Order{10, 20, 30, 11, 21, 31, 12, 22, 32}))
      << "a lane with much to do does not keep the others waiting";
}

TEST_F(ActorLanesTest, WhatIsPutBackComesBeforeWhatCameMeanwhile) {
  configure(1, {{"io", 1}});
  push(kIo, 3);
  push(kPlain, 5);
  JobLine back;
  back.push(job(kIo, 1));
  back.push(job(kPlain, 4));
  back.push(job(kIo, 2));
  lanes_.put_back(back);
  EXPECT_TRUE(back.empty());
  EXPECT_EQ(take_all(), (Order{4, 5, 1, 2, 3})) << "the default line first, each in its order";
}

TEST_F(ActorLanesTest, ACallIsFoundAndTakenByItsConnectionAndNumber) {
  configure(1, {{"io", 1}});
  const ChannelPair other(loop_);
  push(kPlain, 1);
  push(kIo, 2);
  const Lane* lane = lanes_.find(caller_.near.get(), 2);
  ASSERT_NE(lane, nullptr);
  EXPECT_NE(lane, lanes_.find(caller_.near.get(), 1));
  EXPECT_EQ(lanes_.find(other.near.get(), 2), nullptr) << "another caller's";
  EXPECT_EQ(lanes_.take(other.near.get(), 2), nullptr);
  const auto taken = lanes_.take(caller_.near.get(), 2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->call.sequence, 2u);
  EXPECT_EQ(lanes_.find(caller_.near.get(), 2), nullptr);
  EXPECT_EQ(lanes_.take(caller_.near.get(), 2), nullptr);
  EXPECT_EQ(take_all(), Order{1});
}

TEST_F(ActorLanesTest, AllAreTakenWhetherTheyMayRunOrNot) {
  configure(1, {{"io", 1}});
  push(kIo, 1);
  push(kIo, 2);
  push(kPlain, 3);
  begin_all();
  EXPECT_FALSE(lanes_.is_runnable());
  EXPECT_EQ(take_all(), Order{2});
  EXPECT_EQ(lanes_.take_any(), nullptr);
}

}  // namespace
}  // namespace runtime
