#include "runtime/worker/stream_sender.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/call/call_wire.h"
#include "runtime/worker/held_results.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class StreamSenderTest : public ::testing::Test {
 protected:
  StreamSenderTest() {
    connection_.near->set_handler([this](const std::shared_ptr<Channel>&, const Message& message) {
      Result<ObjectValue> value = decode_stream_item(message.meta, message.payload.first(), nullptr,
                                                     [this](std::uint64_t lend_id) {
                                                       lend_ids_.push_back(lend_id);
                                                       return nullptr;
                                                     });
      EXPECT_TRUE(value.ok()) << value.status().to_string();
      if (value.ok()) came_.push_back(*std::move(value));
    });
  }
  ~StreamSenderTest() override {
    connection_.close();
    run_on(loop_, [] {});
  }
  StreamSender& open(std::uint32_t window, Deadline deadline = deadline_after(60s)) {
    return sender_.emplace(StreamSender::Shared{loop_, shut_down_, objects_, held_},
                           connection_.far, actor_, 5, window,
                           CallContext(stop_.get_token(), deadline));
  }
  Status write(int number) {
    Encoder encoder;
    encode_value(encoder, number);
    return sender_->write(encoder);
  }
  Status write_ref(const ObjectStatePtr& object) {
    Encoder encoder;
    encode_value(encoder, ObjectRef<int>(object));
    return sender_->write(encoder);
  }
  /// Writes on another thread, and calls `meanwhile` once that waits. What write() returned.
  template <class Meanwhile>
  Status write_while(Meanwhile meanwhile) {
    support::BlockingThread waiting;
    Status written;
    std::thread method([&] {
      waiting.begin();
      written = write(100);
    });
    EXPECT_TRUE(waiting.is_blocked());
    meanwhile();
    method.join();
    return written;
  }
  /// What the consumer has once it has this many values.
  std::vector<int> values(std::size_t count) {
    EXPECT_TRUE(comes_true(loop_, [&] { return came_.size() >= count; }));
    std::vector<int> numbers;
    run_on(loop_, [&] {
      for (const ObjectValue& value : came_) {
        Decoder decoder(value.bytes);
        numbers.push_back(*decode_all<int>(decoder));
      }
    });
    return numbers;
  }

  EventLoop loop_;
  std::atomic<bool> shut_down_ = false;
  test::FakeCallObjects objects_;
  HeldResults held_;
  ChannelPair connection_{loop_};
  const ActorId actor_ = ActorId::random();
  std::stop_source stop_;
  std::vector<ObjectValue> came_;        // on the loop
  std::vector<std::uint64_t> lend_ids_;  // on the loop
  std::optional<StreamSender> sender_;   // ends first
};

TEST_F(StreamSenderTest, SendsValuesInTheirOrder) {
  open(4);
  for (int number = 1; number <= 3; ++number) EXPECT_TRUE(write(number).ok());
  EXPECT_EQ(values(3), (std::vector<int>{1, 2, 3}));
}

TEST_F(StreamSenderTest, IsAtMostItsWindowAhead) {
  StreamSender& sender = open(2);
  EXPECT_TRUE(write(1).ok());
  EXPECT_TRUE(write(2).ok());
  EXPECT_TRUE(write_while([&] {
                EXPECT_TRUE(comes_true(loop_, [&] { return came_.size() == 2; }));
                sender.on_taken(1);
              }).ok());
  EXPECT_EQ(values(3), (std::vector<int>{1, 2, 100}));
}

TEST_F(StreamSenderTest, WhatWasNotSentIsNotTaken) {
  StreamSender& sender = open(1);
  sender.on_taken(1000);
  EXPECT_TRUE(write(1).ok());
  EXPECT_TRUE(write_while([&] { sender.on_taken(1); }).ok()) << "the window is as it was";
  sender.on_taken(0);
  sender.on_taken(2);
  EXPECT_TRUE(write(3).ok());
}

TEST_F(StreamSenderTest, AWaitEndsWithTheCall) {
  open(1);
  EXPECT_TRUE(write(1).ok());
  EXPECT_EQ(write_while([&] { stop_.request_stop(); }).code(), ErrorCode::kCancelled);
  EXPECT_EQ(write(2).code(), ErrorCode::kCancelled);
}

TEST_F(StreamSenderTest, AConsumerThatTakesNothingIsNotWaitedForBeyondTheDeadline) {
  open(1, deadline_after(50ms));
  EXPECT_TRUE(write(1).ok());
  EXPECT_EQ(write(2), deadline_exceeded("the consumer of the stream did not take its values in "
                                        "time"));
}

TEST_F(StreamSenderTest, AProcessThatEndsSaysSo) {
  open(1, deadline_after(50ms));
  EXPECT_TRUE(write(1).ok());
  shut_down_ = true;
  EXPECT_EQ(write(2), cancelled("the process ends"));
}

TEST_F(StreamSenderTest, ACallerThatIsGoneGetsNothing) {
  open(4);
  EXPECT_TRUE(write(1).ok());
  EXPECT_EQ(values(1), std::vector<int>{1});
  connection_.close();
  run_on(loop_, [] {});
  EXPECT_EQ(write(2), cancelled("the caller is gone"));
}

TEST_F(StreamSenderTest, AValueThatCannotBeStoredIsNotSent) {
  open(4);
  objects_.full = resource_exhausted("the store is full");
  EXPECT_EQ(write(1), resource_exhausted("the store is full"));
  objects_.full = {};
  EXPECT_TRUE(write(2).ok());
  EXPECT_EQ(values(1), std::vector<int>{2});
}

TEST_F(StreamSenderTest, WhatAValueRefersToIsHeldUntilItIsReleased) {
  open(4);
  const ObjectStatePtr object = ObjectState::ready(nullptr, test::small_value(1));
  const long before = object.use_count();
  EXPECT_TRUE(write_ref(object).ok());
  EXPECT_TRUE(write_ref(object).ok());
  EXPECT_EQ(object.use_count(), before + 2);
  ASSERT_TRUE(comes_true(loop_, [&] { return came_.size() == 2; }));
  std::vector<std::uint64_t> lent;
  run_on(loop_, [&] { lent = lend_ids_; });
  ASSERT_EQ(lent.size(), 2u);
  EXPECT_NE(lent[0], lent[1]);
  held_.release(connection_.far.get(), actor_, lent[0]);
  EXPECT_EQ(object.use_count(), before + 1);
  held_.release(connection_.far.get(), actor_, lent[1]);
  EXPECT_EQ(object.use_count(), before);
}

}  // namespace
}  // namespace runtime
