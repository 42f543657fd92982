#include "runtime/call/callback_thread.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

/// A callback that runs until the test lets it end.
class HeldCallback {
 public:
  std::function<void()> function() {
    return [this] {
      running_.set_value();
      end_.get_future().wait();
    };
  }
  void await_start() { running_.get_future().wait(); }
  void end() { end_.set_value(); }

 private:
  std::promise<void> running_, end_;
};

TEST(CallbackThread, RunsOneAfterAnotherInTheirOrder) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  ASSERT_TRUE(thread.start().ok()) << "there is one";
  std::vector<int> ran;
  std::promise<std::thread::id> last;
  for (int i = 0; i < 100; ++i) thread.run([&, i] { ran.push_back(i); });
  thread.run([&] { last.set_value(std::this_thread::get_id()); });
  EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
  ASSERT_EQ(ran.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
}

TEST(CallbackThread, OneThatThrowsHoldsUpNoOther) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  std::promise<void> next;
  ::testing::internal::CaptureStderr();  // where the log goes
  thread.run([] { throw std::runtime_error("the user's fault"); });
  thread.run([&] { next.set_value(); });
  next.get_future().wait();
  thread.stop();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the user's fault"), std::string::npos);
}

TEST(CallbackThread, LetsGoOfACallbackBeforeTheNextAndWithoutALock) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  std::promise<void> asked;
  bool is_gone = false;
  // Its end asks for another callback.
  std::shared_ptr<void> held(nullptr, [&](void*) {
    is_gone = true;
    thread.run([&] { asked.set_value(); });
  });
  thread.run([held = std::move(held)] {});
  thread.run([&] { EXPECT_TRUE(is_gone); });
  asked.get_future().wait();
}

TEST(CallbackThread, StopWaitsForTheOneThatRunsAndDropsTheOthers) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  HeldCallback held;
  thread.run(held.function());
  held.await_start();
  auto kept = std::make_shared<int>();
  const std::weak_ptr<int> watched = kept;
  thread.run([kept = std::move(kept)] { ADD_FAILURE() << "it runs after stop()"; });
  support::BlockingThread stopping;
  std::thread stopper([&] {
    stopping.begin();
    thread.stop();
  });
  EXPECT_TRUE(stopping.is_blocked());
  thread.run([] { ADD_FAILURE() << "it comes after stop()"; });
  held.end();
  stopper.join();
  EXPECT_TRUE(watched.expired());
  thread.stop();
  EXPECT_TRUE(thread.start().ok());
  thread.run([] { ADD_FAILURE() << "it is stopped for good"; });
}

TEST(CallbackThread, ACallbackMayStopIt) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  std::promise<void> stopped;
  thread.run([&] {
    thread.stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

TEST(CallbackThread, ACallbackThatIsDroppedMayAskForAnother) {
  CallbackThread thread;
  ASSERT_TRUE(thread.start().ok());
  HeldCallback held;
  thread.run(held.function());
  held.await_start();
  std::weak_ptr<void> watched;
  {
    // Its end calls the thread, which must hold no lock then.
    const std::shared_ptr<void> asks(nullptr, [&](void*) { thread.run([] {}); });
    watched = asks;
    thread.run([asks] {});
  }
  support::BlockingThread stopping;
  std::thread stopper([&] {
    stopping.begin();
    thread.stop();
  });
  EXPECT_TRUE(stopping.is_blocked());
  held.end();
  stopper.join();
  EXPECT_TRUE(watched.expired());
}

TEST(CallbackThread, WithoutAThreadItEndsToo) {
  CallbackThread thread;
  thread.run([] { ADD_FAILURE(); });
}

}  // namespace
}  // namespace runtime
