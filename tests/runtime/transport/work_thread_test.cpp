#include "runtime/transport/work_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "tests/support/eventually.h"

namespace runtime {
namespace {

TEST(WorkThread, RunsOneAfterAnother) {
  WorkThread thread;
  ASSERT_TRUE(thread.start().ok());
  ASSERT_TRUE(thread.start().ok());
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) thread.post([&order, i] { order.push_back(i); });
  thread.finish();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  thread.finish();
}

TEST(WorkThread, StopDropsWhatWaits) {
  auto dropped = std::make_shared<int>(0);
  std::promise<void> begun, may_end;
  std::atomic<int> ran{0};
  WorkThread thread;
  ASSERT_TRUE(thread.start().ok());
  thread.post([&] {
    begun.set_value();
    may_end.get_future().wait();
    ++ran;
  });
  thread.post([&ran, dropped] { ++ran; });
  begun.get_future().wait();
  auto stopping = std::async(std::launch::async, [&] { thread.stop(); });
  EXPECT_TRUE(support::eventually([&] { return dropped.use_count() == 1; })) << "stop() drops it";
  may_end.set_value();
  stopping.get();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace runtime
