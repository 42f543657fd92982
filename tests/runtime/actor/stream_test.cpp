// Calls that yield many values.
#include <numeric>

#include "cluster_fixture.h"
#include "tests/support/blocking_thread.h"
#include "tests/support/pauses.h"

namespace runtime::test {

/// Yields, and remembers how far it came.
class Feed {
 public:
  explicit Feed(Runtime& runtime) : runtime_(runtime) {}
  Status numbers(StreamWriter<int>& out, int count) {
    writer_.begin();
    for (int i = 0; i < count; ++i) {
      if (Status status = out.write(i); !status.ok()) {
        end_ = status.to_string();
        return status;
      }
      written_ = i + 1;
    }
    end_ = "ok";
    return {};
  }
  Status numbers_then_fail(const CallContext& call, StreamWriter<int>& out, int count) {
    if (Status status = numbers(out, count); !status.ok()) return status;
    return call.cancelled() ? call.status() : resource_exhausted("no more of them");
  }
  void arrays(StreamWriter<std::vector<float>>& out, int count, std::uint64_t size) {
    for (int i = 0; i < count; ++i)
      (void)out.write(std::vector<float>(size, static_cast<float>(i)));
  }
  Status refs(StreamWriter<ObjectRef<std::vector<float>>>& out, int count) {
    for (int i = 0; i < count; ++i) {
      auto object = runtime_.put(std::vector<float>(100'000, static_cast<float>(i)));
      if (!object.ok()) return object.status();
      if (Status status = out.write(*object); !status.ok()) return status;
    }
    return {};
  }
  Status trickle(StreamWriter<int>& out, int ms) {
    for (int i = 0;; ++i) {
      if (Status status = out.write(i); !status.ok()) return status;
      support::pace(std::chrono::milliseconds(ms));
    }
  }
  int written() const { return written_; }
  /// Waits until the thread that writes the numbers waits.
  bool waits() const { return writer_.is_blocked(); }
  std::string ended() const {
    std::lock_guard lock(end_.mutex);
    return end_.text;
  }

 private:
  struct End {
    void operator=(std::string value) {
      std::lock_guard lock(mutex);
      text = std::move(value);
    }
    mutable std::mutex mutex;
    std::string text;
  };
  Runtime& runtime_;
  std::atomic<int> written_{0};
  support::BlockingThread writer_;
  End end_;
};

void register_stream_actors(Runtime& rt) {
  rt.register_actor<Feed>("Feed", &Feed::numbers, &Feed::numbers_then_fail, &Feed::arrays,
                          &Feed::refs, &Feed::trickle,
                          method(&Feed::written, {.concurrency_group = "ask"}),
                          method(&Feed::waits, {.concurrency_group = "ask"}),
                          method(&Feed::ended, {.concurrency_group = "ask"}));
}

namespace {

class StreamTest : public ClusterTest {
 protected:
  ActorHandle<Feed> feed() {
    ActorOptions options;
    options.concurrency_groups = {{"ask", 1}};
    auto made = rt_->spawn<Feed>(options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Feed>());
  }
};

TEST_F(StreamTest, ValuesComeInOrderAndEnd) {
  auto actor = feed();
  Stream<int> numbers = actor.call(&Feed::numbers, 1000);
  int expected = 0;
  for (int number : numbers) ASSERT_EQ(number, expected++);
  EXPECT_EQ(expected, 1000);
  EXPECT_TRUE(numbers.status().ok()) << numbers.status().to_string();
  EXPECT_TRUE(numbers.done());
  EXPECT_TRUE(rt_->get(numbers.result(), 20s).ok());
  EXPECT_EQ(get(actor.call(&Feed::ended)), "ok");
  Stream<int> none = actor.call(&Feed::numbers, 0);
  EXPECT_FALSE((*none.next()).has_value());
}

TEST_F(StreamTest, TheMethodsStatusComesAfterItsValues) {
  auto actor = feed();
  Stream<int> numbers = actor.call(&Feed::numbers_then_fail, 3);
  int count = 0;
  for (int number : numbers) count += number + 1;
  EXPECT_EQ(count, 6);
  expect_failure(numbers.status(), ErrorCode::kResourceExhausted, {"Feed", "no more of them"});
}

TEST_F(StreamTest, TheProducerIsAtMostAWindowAhead) {
  auto actor = feed();
  Stream<int> numbers = actor.call(CallOptions{.stream_window = 10}, &Feed::numbers, 1000);
  ASSERT_EQ(**numbers.next(5s), 0);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Feed::written)) >= 10; }));
  ASSERT_TRUE(get(actor.call(&Feed::waits)));
  EXPECT_LE(get(actor.call(&Feed::written)), 11);
  int count = 1;
  for (int number : numbers) count += number >= 0 ? 1 : 0;
  EXPECT_EQ(count, 1000) << numbers.status().to_string();
}

TEST_F(StreamTest, AWindowOfOneWorks) {
  auto actor = feed();
  Stream<int> numbers = actor.call(CallOptions{.stream_window = 1}, &Feed::numbers, 200);
  int count = 0;
  for (int number : numbers) ASSERT_EQ(number, count++);
  EXPECT_EQ(count, 200) << numbers.status().to_string();
  Stream<int> nothing = actor.call(CallOptions{.stream_window = 0}, &Feed::numbers, 1);
  expect_failure(nothing.next().status(), ErrorCode::kInvalidArgument, {"stream_window"});
}

TEST_F(StreamTest, DroppingTheStreamStopsTheProducer) {
  auto actor = feed();
  {
    Stream<int> numbers = actor.call(CallOptions{.stream_window = 4}, &Feed::numbers, 1'000'000);
    ASSERT_EQ(**numbers.next(5s), 0);
  }
  ASSERT_TRUE(eventually(
      [&] { return get(actor.call(&Feed::ended)).find("cancelled") != std::string::npos; }));
  EXPECT_LT(get(actor.call(&Feed::written)), 20);
  Stream<int> again = actor.call(&Feed::numbers, 5);
  int sum = 0;
  for (int number : again) sum += number;
  EXPECT_EQ(sum, 10) << "the actor goes on";
}

TEST_F(StreamTest, NextHasADeadlineOfItsOwn) {
  auto actor = feed();
  Stream<int> numbers = actor.call(&Feed::trickle, 1500);
  ASSERT_EQ(**numbers.next(5s), 0);
  EXPECT_EQ(numbers.next(20ms).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(numbers.done());
  EXPECT_EQ(**numbers.next(10s), 1) << "and then it goes on";
}

TEST_F(StreamTest, TheCallsDeadlineEndsTheStream) {
  auto actor = feed();
  Stream<int> numbers = actor.call(CallOptions{.timeout = 300ms}, &Feed::trickle, 20);
  int count = 0;
  for (int number : numbers) count += number >= 0 ? 1 : 0;
  EXPECT_GE(count, 1);
  expect_failure(numbers.status(), ErrorCode::kDeadlineExceeded, {"trickle"});
}

TEST_F(StreamTest, TheProducersDeathEndsTheStream) {
  auto actor = feed();
  Stream<int> numbers = actor.call(CallOptions{.stream_window = 2}, &Feed::numbers, 1'000'000);
  ASSERT_EQ(**numbers.next(5s), 0);
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  int more = 0;
  for (int number : numbers) more += number > 0 ? 1 : 0;
  EXPECT_LE(more, 10);
  expect_failure(numbers.status(), ErrorCode::kActorDied, {"SIGKILL"});
}

TEST_F(StreamTest, LargeValuesAndReferencesTravel) {
  auto actor = feed();
  // 80 x 8 MB would not fit at once in a store of half a gigabyte.
  Stream<std::vector<float>> arrays =
      actor.call(CallOptions{.stream_window = 4}, &Feed::arrays, 80, std::uint64_t{2'000'000});
  float expected = 0;
  for (const auto& values : arrays) {
    ASSERT_EQ(values.size(), 2'000'000u);
    ASSERT_EQ(values.back(), expected++);
  }
  EXPECT_EQ(expected, 80) << arrays.status().to_string();
  Stream<ObjectRef<std::vector<float>>> refs = actor.call(&Feed::refs, 5);
  std::vector<ObjectRef<std::vector<float>>> kept;
  for (const auto& ref : refs) kept.push_back(ref);
  ASSERT_EQ(kept.size(), 5u) << refs.status().to_string();
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(get(kept[i]).back(), static_cast<float>(i));
}

TEST_F(StreamTest, AStreamOfNoCallFails) {
  Stream<int> empty;
  EXPECT_EQ(empty.next().status().code(), ErrorCode::kInvalidArgument);
  Stream<int> no_actor = ActorHandle<Feed>().call(&Feed::numbers, 1);
  expect_failure(no_actor.next().status(), ErrorCode::kInvalidArgument, {"no actor"});
}

/// Nothing moves to disk, so that a store that is full stays full.
class FullStoreStream : public StreamTest {
 protected:
  void SetUp() override { start({"--object-store-memory", "67108864", "--spill-limit", "0"}); }
};

TEST_F(FullStoreStream, AValueWaitsForRoomAsLongAsItsCallHas) {
  auto actor = feed();
  std::vector<ObjectRef<std::vector<float>>> held;
  for (;;) {
    auto ref = rt_->put(std::vector<float>(1 << 20, 1), 200ms);
    if (!ref.ok()) break;
    held.push_back(*ref);
  }
  const auto start = std::chrono::steady_clock::now();
  Stream<std::vector<float>> late =
      actor.call(CallOptions{.timeout = 500ms}, &Feed::arrays, 1, std::uint64_t{1 << 20});
  auto none = late.next();
  EXPECT_FALSE(none.ok() && none->has_value());
  Stream<std::vector<float>> small = actor.call(&Feed::arrays, 1, std::uint64_t{10});
  auto some = small.next();
  EXPECT_TRUE(some.ok() && some->has_value()) << "the actor goes on";
  EXPECT_LT(std::chrono::steady_clock::now() - start, 25s)
      << "far less than the wait of a stream that ignores its call's own time";
}

}  // namespace
}  // namespace runtime::test
