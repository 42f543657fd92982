// Plain functions as tasks, on borrowed workers.
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "cluster_fixture.h"
#include "test_tasks.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

class TaskTest : public ClusterTest {
 protected:
  std::string path(const std::string& name) const { return (root_ / name).string(); }
  /// The processes that left a note.
  static std::vector<pid_t> notes(const std::string& file) {
    std::ifstream in(file);
    std::vector<pid_t> pids;
    for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
    return pids;
  }
};

TEST_F(TaskTest, FunctionsRunInOtherProcesses) {
  EXPECT_EQ(get(rt_->task(&twice, 21)), 42);
  EXPECT_NE(get(rt_->task(&process_id)), ::getpid());
  EXPECT_EQ(get(rt_->task(&join_words, std::vector<std::string>{"a", "b"}, "-")), "a-b");
}

TEST_F(TaskTest, ManySmallTasksGiveTheirOwnResults) {
  std::vector<ObjectRef<int>> refs;
  for (int i = 0; i < 5000; ++i) refs.push_back(rt_->task(&twice, i));
  auto values = rt_->objects().gather(refs, 30s);
  ASSERT_TRUE(values.ok()) << values.status().to_string();
  for (int i = 0; i < 5000; ++i) ASSERT_EQ((*values)[static_cast<std::size_t>(i)], 2 * i);
}

TEST_F(TaskTest, LongTasksSpreadOverTheCpus) {
  std::vector<ObjectRef<int>> refs;
  for (int i = 0; i < 4; ++i) refs.push_back(rt_->task(&sleep_and_tell_pid, 700));
  auto pids = rt_->objects().gather(refs, 30s);
  ASSERT_TRUE(pids.ok()) << pids.status().to_string();
  EXPECT_GE(std::set<int>(pids->begin(), pids->end()).size(), 2u);
}

TEST_F(TaskTest, FailuresOfFunctionsAreResultsAndNotTriedAgain) {
  const std::string file = (root_ / "runs").string();
  expect_failure(rt_->get(rt_->task(&note_and_fail, file)).status(), ErrorCode::kInvalidArgument,
                 {"note_and_fail", "not today"});
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "x");
  expect_failure(rt_->get(rt_->task(&throw_text, "the reason")), ErrorCode::kTaskFailed,
                 {"throw_text", "the reason"});
}

TEST_F(TaskTest, ATaskWhoseWorkerDiesRunsOnAnother) {
  const std::string file = (root_ / "runs").string();
  EXPECT_EQ(get(rt_->task(&die_unless_noted, file, 2)), 2);
}

TEST_F(TaskTest, ATaskThatKillsEveryWorkerFailsInTheEnd) {
  const std::string file = (root_ / "runs").string();
  expect_failure(
      rt_->get(rt_->task(TaskOptions{.max_retries = 1}, &die_unless_noted, file, 100), 30s)
          .status(),
      ErrorCode::kActorDied, {"SIGKILL", "2 workers"});
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "xx");
  EXPECT_EQ(get(rt_->task(&twice, 1)), 2) << "others go on";
}

TEST_F(TaskTest, ArgumentsMayBeResultsOfOthers) {
  auto slow = rt_->task(&sleep_and_tell_pid, 200);
  auto sum = rt_->task(&add, rt_->task(&twice, 4), rt_->task(&twice, 5));
  EXPECT_EQ(get(sum), 18);
  EXPECT_GT(get(slow), 0);
}

TEST_F(TaskTest, WhatCannotBeHadSaysWhatIsMissing) {
  const Status status =
      rt_->get(rt_->task(TaskOptions{.gpus = 64, .timeout = 400ms}, &twice, 1), 20s).status();
  EXPECT_TRUE(status.code() == ErrorCode::kResourceExhausted ||
              status.code() == ErrorCode::kDeadlineExceeded)
      << status.to_string();
  EXPECT_NE(status.message().find("GPU"), std::string::npos) << status.message();
}

TEST_F(TaskTest, AmountsThatCannotBeMeantAreRefused) {
  expect_failure(rt_->get(rt_->task(TaskOptions{.cpus = std::nan("")}, &twice, 1)).status(),
                 ErrorCode::kInvalidArgument, {"twice", "cpus", "nan"});
  expect_failure(rt_->get(rt_->task(TaskOptions{.resources = {{"disk", -1}}}, &twice, 1)).status(),
                 ErrorCode::kInvalidArgument, {"disk", "-1"});
}

TEST_F(TaskTest, UnregisteredFunctionsAreExplained) {
  expect_failure(rt_->get(rt_->task(&never_registered, 1)).status(), ErrorCode::kInvalidArgument,
                 {"register_function"});
}

TEST_F(TaskTest, FailuresAreTriedAgainWhenAskedFor) {
  const std::string file = path("runs");
  TaskOptions options{.max_retries = 3};
  options.retry_failures = true;
  EXPECT_EQ(get(rt_->task(options, &fail_unless_noted, file, 3)), 3);
  options.max_retries = 1;
  const std::string other = path("others");
  expect_failure(rt_->get(rt_->task(options, &fail_unless_noted, other, 3)).status(),
                 ErrorCode::kUnavailable, {"only 1 have run"});
  EXPECT_EQ(notes(other).size(), 2u);
}

TEST_F(TaskTest, ATaskThatWaitsIsCancelledAtOnce) {
  const support::Gate gate(path("gate"));
  auto running = rt_->task(TaskOptions{.cpus = 4}, &pass_gate, gate.path());
  auto waiting = rt_->task(TaskOptions{.cpus = 3}, &twice, 1);
  auto unsettled = rt_->task(&sleep_and_tell_pid, running);
  ASSERT_TRUE(rt_->cancel(waiting).ok());
  expect_failure(rt_->get(waiting, 20s).status(), ErrorCode::kCancelled, {"twice"});
  ASSERT_TRUE(rt_->cancel(unsettled).ok());
  expect_failure(rt_->get(unsettled, 20s).status(), ErrorCode::kCancelled, {"sleep_and_tell_pid"});
  gate.open();
  EXPECT_EQ(get(running), 1);
}

TEST_F(TaskTest, ARunningTaskIsTold) {
  const std::string file = path("runs");
  auto running = rt_->task(&wait_for_cancel, file);
  ASSERT_TRUE(eventually([&] { return notes(file).size() == 1; }));
  ASSERT_TRUE(rt_->cancel(running).ok());
  expect_failure(rt_->get(running, 20s).status(), ErrorCode::kCancelled, {"wait_for_cancel"});
  EXPECT_EQ(notes(file).size(), 1u);
}

TEST_F(TaskTest, ForceEndsTheWorkerAndNothingElse) {
  const std::string file = path("runs");
  auto running = rt_->task(&never_end, file);
  ASSERT_TRUE(eventually([&] { return notes(file).size() == 1; }));
  ASSERT_TRUE(rt_->cancel(running, CancelMode::kForce).ok());
  expect_failure(rt_->get(running, 20s), ErrorCode::kCancelled, {"never_end"});
  EXPECT_TRUE(eventually([&] { return ::kill(notes(file)[0], 0) != 0; }));
  EXPECT_EQ(get(rt_->task(&twice, 4)), 8);
  EXPECT_EQ(notes(file).size(), 1u) << "it is not tried again";
}

TEST_F(TaskTest, ADeadlineEndsTheWait) {
  const std::string file = path("runs");
  auto late = rt_->task(TaskOptions{.timeout = 300ms}, &wait_for_cancel, file);
  EXPECT_EQ(rt_->get(late, 20s).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(get(rt_->task(&twice, 4)), 8);
}

TEST_F(TaskTest, ActorsRunTasksToo) {
  auto alone = rt_->spawn<Delegator>({});
  auto shared = rt_->spawn<Delegator>({.isolation = Isolation::kShared});
  ASSERT_TRUE(alone.ok() && shared.ok());
  EXPECT_EQ(get(alone->call(&Delegator::twice_all, 100)), 9900);
  EXPECT_EQ(get(shared->call(&Delegator::twice_all, 100)), 9900);
  const std::string file = path("runs");
  auto made = get(alone->call(&Delegator::make, file, 100'000, 0.5f));
  EXPECT_EQ(get(rt_->task(&sum_floats, made)), 50'000.0);
}

TEST_F(TaskTest, AWorkerIsUsedAgain) {
  const int first = get(rt_->task(&process_id));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(rt_->task(&process_id)), first);
}

TEST_F(TaskTest, AnIdleWorkerStaysForTheResultsThatItHoldsWithoutItsResources) {
  const std::string file = path("runs");
  TaskOptions whole{.cpus = 4};
  auto numbers = rt_->task(whole, &make_noted, file, 100'000, 0.5f);
  ASSERT_EQ(rt_->wait(std::vector{numbers}, 1, 20s).ready.size(), 1u);
  const pid_t worker = notes(file).at(0);
  auto all = rt_->spawn<Counter>({.cpus = 4, .create_timeout = 20s}, 0);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_EQ(get(numbers).size(), 100'000u);
  EXPECT_EQ(notes(file).size(), 1u) << "the result was there";
  EXPECT_EQ(::kill(worker, 0), 0);
  numbers = {};
  EXPECT_TRUE(eventually([&] { return ::kill(worker, 0) != 0; })) << "it is not needed any more";
}

TEST_F(TaskTest, TasksThatWaitForTasksLendThemTheirResources) {
  EXPECT_EQ(get(rt_->task(&nest, 10)), 10) << "on 4 CPUs";
}

TEST_F(TaskTest, IdleWorkersGiveTheirResourcesBack) {
  ASSERT_EQ(get(rt_->task(TaskOptions{.cpus = 4}, &twice, 1)), 2);
  auto all = rt_->spawn<Counter>({.cpus = 4, .create_timeout = 10s}, 0);
  ASSERT_TRUE(all.ok()) << all.status().to_string();
}

}  // namespace
}  // namespace runtime::test
