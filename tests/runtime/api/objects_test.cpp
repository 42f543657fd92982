// Several objects at once: which failure counts, and what is not waited for.
#include "runtime/api/objects.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/call/process.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/support/blocking_thread.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

/// Objects of a process that no node knows.
class ObjectApiTest : public ::testing::Test {
 protected:
  ObjectApiTest() {
    auto registry = std::make_shared<Registry>();
    registry->seal();
    connection_.process = Process::make(registry);
    for (int i = 0; i < 3; ++i)
      objects_.push_back(std::make_shared<ObjectState>(connection_.process->object_context()));
  }
  std::vector<ObjectRef<int>> refs() const {
    return std::vector<ObjectRef<int>>(objects_.begin(), objects_.end());
  }
  void settle(std::size_t at, int value) { objects_[at]->fulfil(test::small_value(value)); }
  void fail(std::size_t at, Status why) { objects_[at]->fail(std::move(why)); }

  Connection connection_;
  std::vector<ObjectStatePtr> objects_;
  ObjectApi api_{connection_};
};

TEST_F(ObjectApiTest, GathersValuesInTheOrderOfTheRefs) {
  settle(2, 30);
  settle(0, 10);
  support::BlockingThread waiting;
  std::thread other([&] {
    EXPECT_TRUE(waiting.is_blocked());
    settle(1, 20);
  });
  waiting.begin();
  const Result<std::vector<int>> values = api_.gather(refs());
  other.join();
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  EXPECT_EQ(*values, (std::vector<int>{10, 20, 30}));
  EXPECT_TRUE(api_.gather(std::vector<ObjectRef<int>>()).ok());
}

TEST_F(ObjectApiTest, AFailureEndsTheWaitForTheOthers) {
  fail(1, task_failed("too hot"));
  EXPECT_EQ(api_.gather(refs()).status(), task_failed("rank 1: too hot"));
}

TEST_F(ObjectApiTest, OfSeveralFailuresTheCauseCounts) {
  fail(0, cancelled("told to stop"));
  fail(1, unavailable("rank 2 is gone"));
  fail(2, task_failed("too hot"));
  EXPECT_EQ(api_.gather(refs()).status(), task_failed("rank 2: too hot"));
}

TEST_F(ObjectApiTest, OfSeveralCausesTheFirstByPosition) {
  fail(2, task_failed("c"));
  fail(1, task_failed("b"));
  EXPECT_EQ(api_.gather(refs()).status(), task_failed("rank 1: b"));
}

TEST_F(ObjectApiTest, TheFirstThatIsMissingIsNamed) {
  settle(0, 1);
  expect_failure(api_.gather(refs(), 1ms).status(), ErrorCode::kDeadlineExceeded, {"rank 1: "});
}

TEST_F(ObjectApiTest, ARefToNothingIsNotWaitedFor) {
  std::vector<ObjectRef<int>> some = refs();
  some.push_back({});
  expect_failure(api_.gather(some).status(), ErrorCode::kInvalidArgument, {"rank 3: "});
  expect_failure(api_.when_all(some).state()->failure(), ErrorCode::kInvalidArgument,
                 {"rank 3: ", "refers to nothing"});
}

TEST_F(ObjectApiTest, GathersEachWhateverBecomesOfTheOthers) {
  settle(0, 10);
  fail(1, task_failed("too hot"));
  settle(2, 30);
  const std::vector<Result<int>> results = api_.gather_each(refs());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(*results[0], 10);
  EXPECT_EQ(results[1].status(), task_failed("too hot")) << "without a rank: the place says it";
  EXPECT_EQ(*results[2], 30);
}

TEST_F(ObjectApiTest, MergesWhatIsGathered) {
  for (std::size_t i = 0; i < 3; ++i) settle(i, 1);
  const Result<std::size_t> count =
      api_.collect(refs(), [](const std::vector<int>& values) { return values.size(); });
  EXPECT_EQ(*count, 3u);
  const Result<int> refused = api_.collect(
      refs(), [](const std::vector<int>&) { return Result<int>(task_failed("uneven")); });
  EXPECT_EQ(refused.status(), task_failed("uneven"));
}

TEST_F(ObjectApiTest, NothingIsMergedAfterAFailure) {
  fail(0, task_failed("too hot"));
  const Result<int> merged = api_.collect(refs(), [](const std::vector<int>&) {
    ADD_FAILURE() << "there are not all values";
    return 1;
  });
  EXPECT_EQ(merged.status(), task_failed("rank 0: too hot"));
}

TEST_F(ObjectApiTest, ObjectsOfSeveralTypesMayBeWaitedForTogether) {
  const ObjectRef<void> all =
      api_.when_all(ObjectRef<int>(objects_[0]), ObjectRef<std::string>(objects_[1]));
  settle(0, 1);
  EXPECT_FALSE(all.is_ready());
  settle(1, 1);
  EXPECT_TRUE(all.is_ready());
}

TEST(Connection, IsThereBetweenItsStartAndItsEnd) {
  Connection connection;
  EXPECT_EQ(connection.require_started().code(), ErrorCode::kUnavailable);
  connection.process = Process::make(std::make_shared<Registry>());
  EXPECT_TRUE(connection.require_started().ok());
  connection.stopped = true;
  EXPECT_EQ(connection.require_started().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace runtime
