#include "runtime/call/stream_state.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "tests/runtime/call/caller_fixture.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using test::small_value;

class StreamStateTest : public test::CallerTest {
 protected:
  std::shared_ptr<StreamState> make(std::uint32_t window = 4) {
    return std::make_shared<StreamState>(context_, window);
  }
  /// The next value, which is there; -1: the stream has ended well, -2: it has not.
  static int next(StreamState& stream) {
    Result<ObjectStatePtr> value = stream.next(deadline_after(20s));
    if (!value.ok()) return -2;
    return *value ? *fetch<int>(**value, Deadline::max()) : -1;
  }
  /// The stream of a call that the worker has.
  std::shared_ptr<StreamState> open(std::uint32_t window) {
    client_ = client(address());
    std::shared_ptr<StreamState> stream = make(window);
    result_ = with_arguments<std::tuple<int>>(
        [&](Encoder& encoder) {
          return client_->call_stream(typeid(test::Adder), MethodKey::of(&test::Adder::add),
                                      encoder, 60s, stream);
        },
        1);
    EXPECT_TRUE(has_calls(0, 1));
    return stream;
  }
  bool worker_hears(const std::function<bool(const CallNotice&)>& expected) {
    return comes_true(loop_, [&] {
      const auto& notices = node_.workers.at(0)->notices;
      return std::any_of(notices.begin(), notices.end(), expected);
    });
  }

  std::shared_ptr<ActorClient> client_;
  ObjectStatePtr result_;
};

TEST_F(StreamStateTest, GivesItsValuesInOrderAndThenTheEnd) {
  const auto stream = make();
  stream->put(small_value(1));
  stream->put(small_value(2));
  stream->end({});
  EXPECT_FALSE(stream->ended()) << "there are values to be taken";
  EXPECT_EQ(next(*stream), 1);
  EXPECT_EQ(next(*stream), 2);
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(next(*stream), -1);
  EXPECT_EQ(next(*stream), -1);
}

TEST_F(StreamStateTest, AFailureComesAfterTheValuesThatCame) {
  const auto stream = make();
  stream->put(small_value(1));
  stream->end(task_failed("first"));
  stream->end(task_failed("second"));
  stream->put(small_value(2));
  EXPECT_EQ(next(*stream), 1);
  EXPECT_EQ(stream->next(Deadline::max()).status(), task_failed("first"));
}

TEST_F(StreamStateTest, MoreThanItsWindowIsAFaultOfTheActor) {
  const auto stream = make(2);
  for (int number = 1; number <= 3; ++number) stream->put(small_value(number));
  EXPECT_EQ(next(*stream), 1);
  EXPECT_EQ(next(*stream), 2);
  EXPECT_EQ(stream->next(Deadline::max()).status().code(), ErrorCode::kInternal);
}

TEST_F(StreamStateTest, NextWaitsForAValue) {
  const auto stream = make();
  support::BlockingThread waiting;
  std::thread actor([&] {
    EXPECT_TRUE(waiting.is_blocked());
    stream->put(small_value(7));
  });
  waiting.begin();
  EXPECT_EQ(next(*stream), 7);
  actor.join();
}

TEST_F(StreamStateTest, AValueThatComesTooLateCanBeAskedForAgain) {
  const auto stream = make();
  EXPECT_EQ(stream->next(deadline_after(5ms)).status().code(), ErrorCode::kDeadlineExceeded);
  stream->put(small_value(7));
  EXPECT_EQ(next(*stream), 7);
}

TEST_F(StreamStateTest, AProcessThatEndsReadsNoMore) {
  const auto stream = make();
  shut_down_ = true;
  EXPECT_EQ(stream->next(deadline_after(1ms)).status().code(), ErrorCode::kCancelled);
}

TEST_F(StreamStateTest, WhatIsAbandonedIsDropped) {
  const auto stream = make();
  const auto loan = std::make_shared<int>();
  const auto put = [&] {
    ObjectValue value = small_value(1);
    value.loan = loan;
    stream->put(std::move(value));
  };
  put();
  EXPECT_EQ(loan.use_count(), 2);
  stream->abandon();
  EXPECT_EQ(loan.use_count(), 1);
  put();
  EXPECT_EQ(loan.use_count(), 1);
}

TEST_F(StreamStateTest, TellsItsActorWhatWasTakenHalfAWindowAtATime) {
  const auto stream = open(4);
  for (int number = 1; number <= 4; ++number) stream->put(small_value(number));
  EXPECT_EQ(next(*stream), 1);
  EXPECT_EQ(next(*stream), 2);
  EXPECT_EQ(next(*stream), 3);
  EXPECT_EQ(next(*stream), 4);
  EXPECT_TRUE(worker_hears([](const CallNotice& notice) {
    return notice.kind == CallNotice::Kind::kStreamTaken && notice.taken == 4;
  }));
  with_worker(0, [](const test::FakeWorker& worker) {
    ASSERT_EQ(worker.notices.size(), 2u);
    EXPECT_EQ(worker.notices[0].taken, 2u);
    EXPECT_EQ(worker.calls[0].request.stream_window, 4u);
  });
  client_.reset();
  with_worker(0, [](test::FakeWorker& worker) { worker.answer(0, 0); });
  EXPECT_EQ(next(*stream), -1);
}

TEST_F(StreamStateTest, AbandoningItCancelsItsCall) {
  const auto stream = open(4);
  stream->abandon();
  EXPECT_TRUE(worker_hears(
      [](const CallNotice& notice) { return notice.kind == CallNotice::Kind::kCancel; }));
  client_.reset();
  with_worker(0, [](test::FakeWorker& worker) { worker.refuse(0, cancelled("as it was asked")); });
  EXPECT_EQ(failure_of(result_).code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace runtime
