// Execution of an actor's calls: at once or one by one, in groups, cancelled, pinned.
#include "cluster_fixture.h"

#include "tests/support/gate.h"

namespace runtime::test {
namespace {

class ExecutionTest : public ClusterTest {
 protected:
  static ActorOptions with_groups(ConcurrencyGroups groups) {
    ActorOptions options;
    options.concurrency_groups = std::move(groups);
    return options;
  }
};

TEST_F(ExecutionTest, OneCallAtATimeUnlessAskedFor) {
  auto actor = make<Busy>();
  std::vector<ObjectRef<void>> refs;
  for (int i = 0; i < 8; ++i) refs.push_back(actor.call(&Busy::work, 10));
  ASSERT_TRUE(rt_->objects().gather(refs, 20s).ok());
  EXPECT_EQ(get(actor.call(&Busy::peak, "work")), 1);
}

class ConcurrencyTest : public ClusterTest, public ::testing::WithParamInterface<Isolation> {};
INSTANTIATE_TEST_SUITE_P(Isolations, ConcurrencyTest,
                         ::testing::Values(Isolation::kProcess, Isolation::kShared),
                         [](const auto& test) {
                           return test.param == Isolation::kShared ? "Shared" : "Process";
                         });

TEST_P(ConcurrencyTest, MaxConcurrencyRunsThatManyAtOnce) {
  ActorOptions options;
  options.max_concurrency = 4;
  options.isolation = GetParam();
  auto actor = make<Busy>(options);
  std::vector<ObjectRef<void>> refs;
  for (int i = 0; i < 4; ++i) refs.push_back(actor.call(&Busy::meet, "a", 4));
  Status status = rt_->objects().gather(refs, 20s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  refs.clear();
  for (int i = 0; i < 40; ++i) refs.push_back(actor.call(&Busy::work, 5));
  EXPECT_TRUE(rt_->objects().gather(refs, 20s).ok());
  EXPECT_LE(get(actor.call(&Busy::peak, "work")), 4);
  EXPECT_GE(get(actor.call(&Busy::peak, "work")), 2);
}

TEST_F(ExecutionTest, ManyCallsOverManyThreadsAllRunOnce) {
  ActorOptions options;
  options.max_concurrency = 8;
  auto actor = make<Busy>(options);
  std::vector<ObjectRef<int>> refs;
  for (int i = 0; i < 20'000; ++i) refs.push_back(actor.call(&Busy::add, 1));
  ASSERT_TRUE(rt_->objects().gather(refs, 60s).ok());
  EXPECT_EQ(get(actor.call(&Busy::total)), 20'000);
}

TEST_F(ExecutionTest, GroupsDoNotWaitForEachOther) {
  auto actor = make<Busy>(with_groups({{"io", 3}, {"compute", 1}}));
  auto busy = actor.call(&Busy::work, 1500);
  std::vector<ObjectRef<void>> refs;
  for (int i = 0; i < 3; ++i) refs.push_back(actor.call(&Busy::io, 3));
  for (int i = 0; i < 4; ++i) refs.push_back(actor.call(&Busy::compute, 1));
  Status status = rt_->objects().gather(refs, 20s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(get(actor.call(&Busy::total)), 0) << "total is in io too";
  EXPECT_FALSE(busy.is_ready()) << "the default group was at work all the time";
  EXPECT_EQ(get(actor.call(&Busy::peak, "compute")), 1);
}

TEST_F(ExecutionTest, WrongConcurrencyIsExplained) {
  const auto refused = [&](const ActorOptions& options) {
    return rt_->spawn<Busy>(options).status();
  };
  ActorOptions none;
  none.max_concurrency = 0;
  expect_failure(refused(none), ErrorCode::kInvalidArgument, {"max_concurrency", "0"});
  ActorOptions many;
  many.max_concurrency = 5000;
  expect_failure(refused(many), ErrorCode::kInvalidArgument, {"5000"});
  expect_failure(refused(with_groups({{"oi", 1}})), ErrorCode::kInvalidArgument, {"oi", "Busy"});
  expect_failure(refused(with_groups({{"io", 0}})), ErrorCode::kInvalidArgument, {"io"});
}

TEST_F(ExecutionTest, AnActorIsPinnedToItsCores) {
  const int all = get(make<Busy>().call(&Busy::cores));
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  std::uint32_t core = 0;
  while (!CPU_ISSET(core, &mine)) ++core;
  ActorOptions options;
  options.cpu_affinity = {core};
  options.max_concurrency = 2;
  EXPECT_EQ(get(make<Busy>(options).call(&Busy::cores)), 1);
  EXPECT_EQ(all, CPU_COUNT(&mine));
  options.cpu_affinity = {1000};
  expect_failure(rt_->spawn<Busy>(options).status(), ErrorCode::kInvalidArgument, {"cpu_affinity"});
}

TEST_F(ExecutionTest, ACancelledCallInLineNeverRuns) {
  auto actor = make<Patient>(with_groups({{"ask", 1}}));
  auto first = actor.call(&Patient::block, 300);
  auto second = actor.call(&Patient::block, 1);
  auto third = actor.call(&Patient::block, 1);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Patient::started)) == 1; }));
  ASSERT_TRUE(rt_->cancel(second).ok());
  expect_failure(rt_->get(second, 10s).status(), ErrorCode::kCancelled,
                 {"Patient", "block", "before it ran"});
  EXPECT_FALSE(first.is_ready()) << "it is answered at once";
  EXPECT_EQ(get(third), 1);
  EXPECT_EQ(get(actor.call(&Patient::started)), 2);
}

TEST_F(ExecutionTest, ACancelledCallThatWaitsForItsArgumentLetsTheNextGo) {
  auto slow = make<Patient>();
  auto actor = make<Patient>();
  const support::Gate gate(folder_.file("gate"));
  auto argument = slow.call(&Patient::pass, gate.path());
  auto stuck = actor.call(&Patient::block, argument);
  auto next = actor.call(&Patient::block, 1);
  ASSERT_TRUE(rt_->cancel(stuck).ok());
  expect_failure(rt_->get(stuck, 10s).status(), ErrorCode::kCancelled, {"before it was sent"});
  EXPECT_EQ(get(next), 1);
  EXPECT_FALSE(argument.is_ready());
  gate.open();
}

TEST_F(ExecutionTest, ARunningCallIsNotifiedOfItsCancellation) {
  auto actor = make<Patient>(with_groups({{"ask", 1}}));
  auto call = actor.call(&Patient::wait, 30'000);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Patient::started)) == 1; }));
  ASSERT_TRUE(rt_->cancel(call).ok());
  expect_failure(rt_->get(call, 20s).status(), ErrorCode::kCancelled, {"wait", "while it ran"});
  // A method that goes on gives its result.
  auto stubborn = actor.call(&Patient::ignore, 30'000);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Patient::started)) == 2; }));
  ASSERT_TRUE(rt_->cancel(stubborn).ok());
  EXPECT_EQ(get(stubborn), -1);
  EXPECT_TRUE(rt_->cancel(stubborn).ok()) << "nothing happens to what is settled";
}

TEST_F(ExecutionTest, ACallKnowsItsDeadlineAndIsNotifiedOfItsEnd) {
  auto actor = make<Patient>(with_groups({{"ask", 1}}));
  auto left = get(actor.call(CallOptions{.timeout = 5s}, &Patient::time_left_ms));
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 5000);
  auto late = actor.call(CallOptions{.timeout = 300ms}, &Patient::wait, 60'000);
  expect_failure(rt_->get(late).status(), ErrorCode::kDeadlineExceeded, {"wait"});
  EXPECT_TRUE(eventually([&] { return get(actor.call(&Patient::interrupted)) == 1; }))
      << "the method was told";
}

TEST_F(ExecutionTest, AForcedCancellationEndsTheProcess) {
  auto actor = make<Patient>(with_groups({{"ask", 1}}));
  const int pid = get(actor.call(&Patient::pid));
  auto behind = actor.call(&Patient::block, 60'000);
  auto queued = actor.call(&Patient::block, 1);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Patient::started)) == 1; }));
  ASSERT_TRUE(rt_->cancel(queued, CancelMode::kForce).ok());
  EXPECT_EQ(rt_->get(queued, 10s).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(get(actor.call(&Patient::started)), 1) << "a call in line ends without its actor";
  auto other = actor.call(&Patient::block, 1);
  ASSERT_TRUE(rt_->cancel(behind, CancelMode::kForce).ok());
  expect_failure(rt_->get(behind, 10s).status(), ErrorCode::kCancelled, {"by force"});
  EXPECT_EQ(rt_->get(other, 10s).status().code(), ErrorCode::kActorDied);
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST_F(ExecutionTest, OnlyCallsCanBeCancelled) {
  EXPECT_EQ(rt_->cancel(ObjectRef<int>()).code(), ErrorCode::kInvalidArgument);
  auto actor = make<Patient>();
  auto all = rt_->objects().when_all(std::vector{actor.call(&Patient::block, 300)});
  EXPECT_EQ(rt_->cancel(all).code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(rt_->cancel(*rt_->put(1)).ok());
}

TEST_F(ExecutionTest, TheEndOfAnActorIsToldToItsCalls) {
  auto actor = make<Patient>(with_groups({{"ask", 1}}));
  auto call = actor.call(&Patient::wait, 60'000);
  ASSERT_TRUE(eventually([&] { return get(actor.call(&Patient::started)) == 1; }));
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_EQ(rt_->get(call, 20s).status().code(), ErrorCode::kActorDied);
}

}  // namespace
}  // namespace runtime::test
