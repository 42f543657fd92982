#include "runtime/store/room_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/turned_clock.h"

namespace runtime::object_detail {
namespace {

using namespace std::chrono_literals;
using Ends = std::vector<std::string>;

class RoomLineTest : public ::testing::Test {
 protected:
  /// A client waits for `bytes` of room_.
  void wait(const std::string& name, std::uint64_t bytes, std::chrono::milliseconds time = 1min,
            ExtentTable::Client client = 2) {
    line_->wait(
        bytes, client, deadline_after(time),
        [this, name, bytes] {
          if (room_ < bytes) return false;
          room_ -= bytes;
          ends_.push_back(name + " has room");
          return true;
        },
        [this, name] { ends_.push_back(name + " gave up"); });
  }
  void add_room(std::uint64_t bytes) {
    room_ += bytes;
    line_->serve();
  }

  support::TurnedClock clock_;
  EventLoop loop_;
  const std::shared_ptr<RoomLine> line_ = std::make_shared<RoomLine>(loop_);
  std::uint64_t room_ = 0;
  Ends ends_;
};

TEST_F(RoomLineTest, TakesTheRoomThatThereIsAtOnce) {
  room_ = 10;
  wait("a", 10);
  EXPECT_EQ(ends_, Ends{"a has room"});
  EXPECT_TRUE(line_->empty());
  EXPECT_EQ(line_->wanted_bytes(), 0u);
}

TEST_F(RoomLineTest, ALargeOneIsNotOvertakenBySmallOnes) {
  room_ = 10;
  wait("large", 100);
  wait("small", 10);
  EXPECT_EQ(line_->wanted_bytes(), 110u);
  line_->serve();
  EXPECT_TRUE(ends_.empty()) << "small would have had room";
  add_room(90);
  EXPECT_EQ(ends_, Ends{"large has room"});
  EXPECT_EQ(line_->wanted_bytes(), 10u);
  add_room(10);
  EXPECT_EQ(ends_, (Ends{"large has room", "small has room"}));
  EXPECT_TRUE(line_->empty());
}

TEST_F(RoomLineTest, OneThatGivesUpLetsTheNextOneIn) {
  room_ = 10;
  wait("large", 100, 2s);
  wait("small", 10, 10s);
  clock_.turn(2s - 1ns);
  EXPECT_TRUE(ends_.empty());
  clock_.turn(1ns);
  EXPECT_EQ(ends_, (Ends{"large gave up", "small has room"}));
  EXPECT_EQ(line_->wanted_bytes(), 0u);
}

TEST_F(RoomLineTest, EachHasADeadlineOfItsOwn) {
  wait("first", 10, 10s);
  wait("second", 10, 2s);
  clock_.turn(2s);
  EXPECT_EQ(ends_, Ends{"second gave up"});
  EXPECT_EQ(line_->wanted_bytes(), 10u);
  clock_.turn(8s);
  EXPECT_EQ(ends_, (Ends{"second gave up", "first gave up"}));
}

TEST_F(RoomLineTest, WithoutTimeItIsTriedOnce) {
  wait("a", 10, 0s);
  EXPECT_EQ(ends_, Ends{"a gave up"});
  room_ = 10;
  wait("b", 10, 0s);
  EXPECT_EQ(ends_, (Ends{"a gave up", "b has room"}));
}

TEST_F(RoomLineTest, AClientThatIsGoneHearsNothing) {
  room_ = 10;
  wait("a", 100, 2s, 2);
  wait("b", 10, 10s, 3);
  wait("c", 20, 2s, 2);
  line_->drop(2);
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(line_->wanted_bytes(), 10u);
  line_->serve();
  EXPECT_EQ(ends_, Ends{"b has room"});
  clock_.turn(1min);
  EXPECT_EQ(ends_.size(), 1u);
}

TEST_F(RoomLineTest, WhatAGoneClientOwnedMayComeBack) {
  struct Owned {
    std::shared_ptr<RoomLine> line;
    ~Owned() { line->serve(); }
  };
  auto owned = std::make_shared<Owned>(Owned{line_});
  line_->wait(
      10, 2, deadline_after(1min), [owned] { return false; }, [] {});
  wait("b", 10, 1min, 3);
  owned.reset();
  room_ = 10;
  line_->drop(2);
  EXPECT_EQ(ends_, Ends{"b has room"}) << "as soon as the first is gone";
}

TEST_F(RoomLineTest, AnAttemptMayAskForRoomItself) {
  bool served = false;
  line_->wait(
      10, 2, deadline_after(1min),
      [&] {
        if (room_ < 10) return false;
        wait("inner", 5);
        line_->serve();
        EXPECT_TRUE(ends_.empty()) << "inner is behind this one";
        return served = true;
      },
      [] {});
  add_room(10);
  EXPECT_TRUE(served);
  EXPECT_EQ(ends_, Ends{"inner has room"});
  EXPECT_EQ(line_->wanted_bytes(), 0u);
}

TEST_F(RoomLineTest, GivesUpAllWhenItStops) {
  wait("a", 10);
  wait("b", 10);
  line_->stop();
  EXPECT_EQ(ends_, (Ends{"a gave up", "b gave up"}));
  EXPECT_EQ(line_->wanted_bytes(), 0u);
  add_room(100);
  clock_.turn(2min);
  EXPECT_EQ(ends_.size(), 2u);
}

TEST_F(RoomLineTest, EndsWithTimersUnderWay) {
  auto line = std::make_shared<RoomLine>(loop_);
  line->wait(
      10, 2, deadline_after(1s), [] { return false; },
      [] { ADD_FAILURE() << "it has ended before"; });
  line.reset();
  clock_.turn(2s);
}

}  // namespace
}  // namespace runtime::object_detail
