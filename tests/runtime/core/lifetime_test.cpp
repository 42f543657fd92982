#include "runtime/core/lifetime.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/unique_function.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

struct Counter {
  int calls = 0;
  std::string last;
  Lifetime lifetime;
};

TEST(Lifetime, GuardedCallbacksRunWhileTheObjectLives) {
  Counter counter;
  std::function<void(int, const std::string&)> callback =
      counter.lifetime.guard([&counter](int times, const std::string& text) {
        counter.calls += times;
        counter.last = text;
      });
  const auto copy = callback;
  callback(2, "a");
  copy(3, "b");
  EXPECT_EQ(counter.calls, 5);
  EXPECT_EQ(counter.last, "b");
}

TEST(Lifetime, GuardedCallbacksDoNothingAfterTheObject) {
  std::function<void()> callback;
  int outside = 0;
  {
    Counter counter;
    callback = counter.lifetime.guard([&counter, &outside] {
      ++counter.calls;
      ++outside;
    });
    callback();
  }
  callback();
  EXPECT_EQ(outside, 1);
}

TEST(Lifetime, MayEndBeforeTheObject) {
  Counter counter;
  const auto alive = counter.lifetime.alive();
  UniqueFunction<void()> callback = counter.lifetime.guard([&counter] { ++counter.calls; });
  EXPECT_TRUE(*alive);
  counter.lifetime.end();
  EXPECT_FALSE(*alive);
  callback();
  EXPECT_EQ(counter.calls, 0);
}

TEST(Lifetime, MovesArgumentsThroughAndOwnsMoveOnlyCallbacks) {
  Lifetime lifetime;
  std::unique_ptr<int> got;
  UniqueFunction<void(std::unique_ptr<int>)> callback =
      lifetime.guard([&got, owned = std::make_unique<int>(1)](std::unique_ptr<int> value) {
        *value += *owned;
        got = std::move(value);
      });
  callback(std::make_unique<int>(2));
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, 3);
}

TEST(Lifetime, EndsBeforeTheThreadThatRunsItsCallbacksIsJoined) {
  std::atomic<bool> asked{false};
  std::atomic<int> runs{0};
  std::optional<Lifetime> lifetime(std::in_place);
  std::thread other([&runs, &asked, callback = lifetime->guard([&runs] { ++runs; }),
                     alive = lifetime->alive()]() mutable {
    callback();
    asked = true;
    // Without a pause, so that the callback comes while the lifetime ends.
    EXPECT_TRUE(support::eventually([&] { return !*alive; }, std::chrono::seconds(20),
                                    std::chrono::milliseconds(0)));
    callback();
  });
  EXPECT_TRUE(support::eventually([&] { return asked.load(); }));
  lifetime.reset();
  other.join();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace runtime
