// The executor of a call's coroutines, of which each step is a turn of the actor.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "runtime/call/blocked_calls.h"
#include "runtime/worker/coroutine_call.h"
#include "runtime/worker/coroutine_host.h"

namespace runtime {
namespace {

/// Runs turns when the test says so.
class ManualHost final : public CoroutineHost {
 public:
  void run_in_turn(UniqueFunction<void()> task) override { turns.push_back(std::move(task)); }
  void end_coroutine(CoroutineCall&, Status) override { FAIL() << "no coroutine runs"; }
  void end_fetch(CoroutineCall&) override { FAIL() << "nothing is fetched"; }

  void run_all() {
    while (!turns.empty()) {
      UniqueFunction<void()> turn = std::move(turns.front());
      turns.pop_front();
      turn();
    }
  }

  std::deque<UniqueFunction<void()>> turns;
};

class ActorStrandTest : public ::testing::Test {
 protected:
  ServedCall call(std::uint64_t sequence) const {
    return {{actor_, nullptr, sequence}, &class_name_, &method_};
  }
  static std::uint64_t running() {
    const ServedCall* current = RunningCall::current();
    return current ? std::get<2>(current->key) : 0;
  }

  const ActorId actor_ = ActorId::random();
  const std::string class_name_ = "Counter", method_ = "add";
  asio::io_context context_;
  std::shared_ptr<ManualHost> host_ = std::make_shared<ManualHost>();
  const ActorStrand strand_{host_, context_, call(7)};
};

TEST_F(ActorStrandTest, WhatItIsGivenRunsInTurnsInOrder) {
  std::string said;
  const asio::any_io_executor any = strand_;
  asio::post(any, [&] { said += "a"; });
  asio::dispatch(any, [&] { said += "b"; });
  strand_.execute([&] {
    said += "c";
    asio::dispatch(any, [&] { said += "e"; });
    said += "d";
  });
  EXPECT_EQ(said, "") << "never from inside of the call";
  EXPECT_EQ(host_->turns.size(), 3u);
  host_->run_all();
  EXPECT_EQ(said, "abcde");
  EXPECT_EQ(context_.poll(), 0u) << "nothing went to the loop";
}

TEST_F(ActorStrandTest, ItsCallIsTheOneThatRunsMeanwhile) {
  const ActorStrand other(host_, context_, call(8));
  std::vector<std::uint64_t> seen;
  strand_.execute([&] { seen.push_back(running()); });
  other.execute([&] { seen.push_back(running()); });
  strand_.execute([&] { seen.push_back(running()); });
  EXPECT_EQ(running(), 0u);
  host_->run_all();
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{7, 8, 7}));
  EXPECT_EQ(running(), 0u);
  EXPECT_EQ(std::get<2>(strand_.call().key), 7u);
}

TEST_F(ActorStrandTest, CopiesAreEqualAndThoseOfOtherCallsAreNot) {
  const ActorStrand copy = strand_, other(host_, context_, call(7));
  EXPECT_TRUE(copy == strand_);
  EXPECT_FALSE(copy != strand_);
  EXPECT_FALSE(other == strand_) << "another call may have the same number elsewhere";
  const asio::any_io_executor any = strand_;
  ASSERT_NE(any.target<ActorStrand>(), nullptr);
  EXPECT_TRUE(*any.target<ActorStrand>() == strand_);
  EXPECT_EQ(&copy.own_slot(), &strand_.own_slot()) << "shared by all that the call awaits";
}

TEST_F(ActorStrandTest, TimersBelongToTheLoop) {
  EXPECT_EQ(&asio::query(strand_, asio::execution::context), &context_);
  asio::steady_timer timer(strand_, std::chrono::steady_clock::time_point::min());
  bool rang = false;
  timer.async_wait([&](boost::system::error_code) { rang = true; });
  EXPECT_TRUE(host_->turns.empty());
  context_.run();
  EXPECT_FALSE(rang) << "the loop has heard it, and gives it to the actor";
  host_->run_all();
  EXPECT_TRUE(rang);
}

TEST_F(ActorStrandTest, ItKeepsItsHost) {
  const std::weak_ptr<ManualHost> host = host_;
  {
    const ActorStrand kept(host_, context_, call(8));
    EXPECT_GT(host.use_count(), 2);
  }
  EXPECT_EQ(host.use_count(), 2) << "of the test and of its strand";
}

}  // namespace
}  // namespace runtime
