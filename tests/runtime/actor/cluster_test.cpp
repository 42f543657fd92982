// The public API against a real cluster on one node.
#include <fstream>
#include <numeric>

#include "cluster_fixture.h"
#include "tests/support/gate.h"

namespace runtime::test {
namespace {

class ClusterTiming : public ClusterTest {};

TEST_F(ClusterTest, CallsRunInAnotherProcessInOrder) {
  auto actor = counter(10);
  EXPECT_NE(get(actor.call(&Counter::pid)), ::getpid());
  EXPECT_EQ(get(actor.call(&Counter::pid)), actor.pid());
  std::vector<ObjectRef<int>> refs;
  for (int i = 0; i < 1000; ++i) refs.push_back(actor.call(&Counter::add, 1));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(get(refs[static_cast<std::size_t>(i)]), 11 + i);
}

TEST_F(ClusterTest, StructsContainersAndTextTravel) {
  auto actor = broker("a name from a std::string");
  EXPECT_EQ(get(actor.call(&Broker::name)), "a name from a std::string");
  Report report{"t", {{"x", {1, 2}}}};
  Report expected{"t", {{"x", {1, 2}}, {"y", {3.5}}}};
  EXPECT_EQ(get(actor.call(&Broker::extend, report, "y", std::vector<double>{3.5})), expected);
}

TEST_F(ClusterTest, FailuresOfMethodsArriveWithTheirText) {
  auto actor = counter();
  expect_failure(rt_->get(actor.call(&Counter::fail, "the reason")), ErrorCode::kTaskFailed,
                 {"Counter", "fail", "the reason"});
  expect_failure(rt_->get(actor.call(&Counter::fail_oddly)), ErrorCode::kTaskFailed, {"Counter"});
  expect_failure(rt_->get(actor.call(&Counter::throw_text, true)), ErrorCode::kTaskFailed,
                 {"threw: plain words"});
  expect_failure(rt_->get(actor.call(&Counter::throw_text, false)), ErrorCode::kTaskFailed,
                 {"threw: words in a string"});
  expect_failure(rt_->get(actor.call(&Counter::throw_status, "no more")),
                 ErrorCode::kResourceExhausted, {"throw_status", "no more"});
  expect_failure(rt_->get(actor.call(&Counter::throw_silence)), ErrorCode::kTaskFailed,
                 {"does not say what"});
  expect_failure(rt_->get(actor.call(&Counter::refuse, "full")), ErrorCode::kResourceExhausted,
                 {"full"});
  EXPECT_EQ(get(actor.call(&Counter::add, 1)), 1) << "the actor goes on after a failed call";
}

TEST_F(ClusterTest, ConstructorsCanFail) {
  EXPECT_EQ(get(rt_->spawn<Picky>({}, 3)->call(&Picky::value)), 3);
  expect_failure(rt_->spawn<Picky>({}, -1).status(), ErrorCode::kInvalidArgument,
                 {"-1 is below zero"});
  expect_failure(rt_->spawn<Picky>({}, 0).status(), ErrorCode::kTaskFailed,
                 {"not even refused politely"});
  expect_failure(rt_->spawn<Picky>({}, 13).status(), ErrorCode::kTaskFailed,
                 {"Picky", "create() has returned a null pointer"});
  expect_failure(rt_->spawn<NeverRegistered>({}).status(), ErrorCode::kInvalidArgument,
                 {"NeverRegistered", "register_actor"});
}

TEST_F(ClusterTest, KilledWorkerGivesActorDied) {
  auto actor = counter();
  ASSERT_EQ(get(actor.call(&Counter::add, 1)), 1);
  const support::Gate gate(folder_.file("gate"));
  auto pending = actor.call(&Counter::pass, gate.path());
  auto waiting = actor.call(&Counter::add, 1);
  ASSERT_TRUE(gate.is_reached());
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  Status status = rt_->get(pending).status();
  expect_failure(status, ErrorCode::kActorDied,
                 {"Counter", actor.id().short_hex(), "SIGKILL", std::to_string(actor.pid())});
  expect_failure(rt_->get(waiting).status(), ErrorCode::kActorDied, {"SIGKILL"});
  expect_failure(rt_->get(actor.call(&Counter::total)).status(), ErrorCode::kActorDied,
                 {"SIGKILL"});
}

TEST_F(ClusterTiming, AKilledWorkersCallsFailWithinASecond) {
  auto actor = counter();
  const support::Gate gate(folder_.file("gate"));
  auto pending = actor.call(&Counter::pass, gate.path());
  ASSERT_TRUE(gate.is_reached());
  auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(::kill(actor.pid(), SIGKILL), 0);
  EXPECT_EQ(rt_->get(pending).status().code(), ErrorCode::kActorDied);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
}

TEST_F(ClusterTest, CrashesCarryABacktrace) {
  auto actor = counter();
  expect_failure(rt_->get(actor.call(&Counter::crash_here)), ErrorCode::kActorDied,
                 {"SIGSEGV", "crash_here"});
  auto other = counter();
  expect_failure(rt_->get(other.call(&Counter::abort_here)), ErrorCode::kActorDied,
                 {"SIGABRT", "abort_here"});
}

TEST_F(ClusterTest, CallsEndAtTheirDeadline) {
  auto actor = counter();
  const support::Gate first(folder_.file("first")), second(folder_.file("second"));
  auto running = actor.call(&Counter::pass, first.path());
  ASSERT_TRUE(first.is_reached());
  auto behind = actor.call(CallOptions{.timeout = 200ms}, &Counter::add, 1);
  expect_failure(rt_->get(behind).status(), ErrorCode::kDeadlineExceeded, {"add"});
  // The worker hears of that before it gets these: both are in line once that call is not.
  auto total = actor.call(&Counter::total);
  auto total_again = actor.call(&Counter::total);
  ASSERT_TRUE(has_in_line("Counter", 2));
  first.open();
  EXPECT_EQ(get(running), 1);
  EXPECT_EQ(get(total), 0) << "a call whose time is up in line does not run";
  EXPECT_EQ(get(total_again), 0);
  auto slow = actor.call(CallOptions{.timeout = 200ms}, &Counter::pass, second.path());
  expect_failure(rt_->get(slow).status(), ErrorCode::kDeadlineExceeded, {"pass"});
  auto late = actor.call(&Counter::pass, second.path());
  EXPECT_EQ(rt_->get(late, 50ms).status().code(), ErrorCode::kDeadlineExceeded)
      << "get has its own deadline";
  second.open();
  EXPECT_EQ(get(late), 1);
}

TEST_F(ClusterTest, NamedActors) {
  counter(5, {.name = "the one"});
  auto found = rt_->get_actor<Counter>("the one");
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(get(found->call(&Counter::total)), 5);
  expect_failure(rt_->get_actor<Broker>("the one").status(), ErrorCode::kInvalidArgument,
                 {"the one", "Counter", "Broker"});
  expect_failure(rt_->get_actor<Counter>("nobody", 1s).status(), ErrorCode::kNotFound, {"nobody"});
  expect_failure(rt_->spawn<Counter>({.name = "the one"}).status(), ErrorCode::kInvalidArgument,
                 {"the one"});
  expect_failure(rt_->spawn<Counter>({.cpus = -1}).status(), ErrorCode::kInvalidArgument, {"CPU"});
  ASSERT_TRUE(rt_->kill(*found).ok());
  EXPECT_TRUE(rt_->spawn<Counter>({.name = "the one"}).ok()) << "the name is free again";
}

TEST_F(ClusterTest, HandlesAndRefsAreArguments) {
  auto one = counter(100);
  auto first = broker("first");
  auto second = broker("second");
  EXPECT_EQ(get(first.call(&Broker::add_through, one, 5)), 105);
  auto passed = get(second.call(&Broker::pass_on, one));
  EXPECT_EQ(passed, one);
  EXPECT_EQ(get(passed.call(&Counter::add, 1)), 106);
  // A result as argument of the next call, which may not be there yet.
  auto slow = one.call(&Counter::sleep_ms, 100);
  auto after = counter();
  EXPECT_EQ(get(after.call(&Counter::add, slow)), 100);
}

TEST_F(ClusterTest, CallsKeepTheirOrderBehindOneThatWaitsForItsArgument) {
  auto slow = counter();
  auto actor = counter();
  auto late = actor.call(&Counter::add, slow.call(&Counter::sleep_ms, 200));
  auto next = actor.call(&Counter::add, 1);
  EXPECT_EQ(get(next), 201);
  EXPECT_EQ(get(late), 200);
}

TEST_F(ClusterTest, ACallWhoseTimeIsUpInLineLetsTheNextOnesGo) {
  auto slow = counter();
  auto actor = counter();
  const support::Gate never(folder_.file("never")), soon(folder_.file("soon"));
  auto argument = slow.call(&Counter::pass, never.path());
  auto expired = actor.call(CallOptions{.timeout = 100ms}, &Counter::add, argument);
  auto waits =
      actor.call(&Counter::add, rt_->spawn<Counter>({}, 0)->call(&Counter::pass, soon.path()));
  expect_failure(rt_->get(expired).status(), ErrorCode::kDeadlineExceeded, {"add"});
  soon.open();
  EXPECT_EQ(get(waits), 1);
  EXPECT_FALSE(argument.is_ready()) << "it waited for the argument of a call that has ended";
  never.open();
}

TEST_F(ClusterTest, FailedArgumentsFailTheCallThatNeedsThem) {
  auto actor = counter();
  auto picky = rt_->spawn<Member>({}, 1, "m");
  auto failed = picky->call(&Member::fail_on, 1);
  expect_failure(rt_->get(actor.call(&Counter::add, failed)).status(), ErrorCode::kInvalidArgument,
                 {"argument", "not with me"});
  expect_failure(rt_->get(actor.call(&Counter::add, ObjectRef<int>())).status(),
                 ErrorCode::kInvalidArgument, {"refers to nothing"});
}

TEST_F(ClusterTest, LargeResultsAreReadInPlace) {
  auto actor = broker("maker");
  constexpr std::uint64_t kCount = 25'000'000;  // 100 MB
  auto ref = actor.call(&Broker::make, kCount, 1.0F);
  auto view = rt_->objects().view(ref);
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  ASSERT_EQ(view->size(), kCount);
  EXPECT_EQ(std::accumulate(view->begin(), view->end(), 0.0), static_cast<double>(kCount));
  // The pages are the store's: shared memory, not this process's own.
  std::ifstream maps("/proc/self/smaps");
  auto address = reinterpret_cast<std::uintptr_t>(view->data());
  bool shared = false, inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t start = 0, end = 0;
    char flags[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &start, &end, flags) == 3)
      inside = start <= address && address < end;
    if (inside && flags[3] == 's') shared = true;
  }
  EXPECT_TRUE(shared);
  auto again = rt_->objects().view(ref);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->data(), view->data()) << "a second view is of the same memory";
}

TEST_F(ClusterTest, LargeArgumentsAndPutObjects) {
  auto actor = broker("summer");
  std::vector<float> values(1'000'000, 0.5F);
  EXPECT_EQ(get(actor.call(&Broker::sum, values)), 500'000);
  EXPECT_EQ(get(actor.call(&Broker::sum_view, values)), 500'000);
  auto put = rt_->put(values);
  ASSERT_TRUE(put.ok()) << put.status().to_string();
  EXPECT_EQ(get(actor.call(&Broker::sum, *put)), 500'000) << "a ref for a value";
  EXPECT_EQ(get(actor.call(&Broker::sum_ref, *put)), 500'000) << "a ref as a ref";
  EXPECT_EQ(get(*put), values);
  auto small = rt_->put(std::vector<float>{1, 2, 3});
  EXPECT_EQ(get(actor.call(&Broker::sum_ref, *small)), 6);
}

TEST_F(ClusterTest, ObjectsGoFromActorToActorAndLiveWhileTheyAreHeld) {
  auto maker = broker("maker");
  auto keeper = broker("keeper");
  {
    auto made = maker.call(&Broker::make, 1'000'000ul, 2.0F);
    ASSERT_TRUE(rt_->get(keeper.call(&Broker::keep, made)).ok());
    auto inner = get(maker.call(&Broker::put, 500'000ul, 1.0F));
    EXPECT_EQ(get(keeper.call(&Broker::sum_ref, inner)), 500'000);
  }
  // The driver's own references are gone; the keeper still has its argument's.
  EXPECT_EQ(get(keeper.call(&Broker::sum_kept)), 2'000'000);
  auto kept = get(keeper.call(&Broker::kept));
  EXPECT_EQ(get(maker.call(&Broker::sum_ref, kept)), 2'000'000);
}

TEST_F(ClusterTest, ObjectsAreLostWithTheirOwner) {
  auto maker = broker("maker");
  auto ref = maker.call(&Broker::make, 1'000'000ul, 2.0F);
  rt_->wait(std::vector{ref}, 1);
  ASSERT_TRUE(rt_->kill(maker).ok());
  auto lost = rt_->get(ref, 20s);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.status().code(), ErrorCode::kObjectLost) << lost.status().to_string();
}

TEST_F(ClusterTest, StoreIsEmptyAgainAfterObjectsAreDropped) {
  auto actor = broker("worker");
  // 100 x 8 MB would not fit at once in a store of half a gigabyte.
  for (int i = 0; i < 100; ++i) {
    auto put = rt_->put(std::vector<float>(1'000'000, 1.0F));
    ASSERT_TRUE(put.ok()) << put.status().to_string();
    auto made = actor.call(&Broker::make, 1'000'000ul, 1.0F);
    ASSERT_EQ(get(actor.call(&Broker::sum_view, *put)), 1'000'000);
    ASSERT_TRUE(rt_->objects().view(made).ok());
  }
}

TEST_F(ClusterTest, WaitReturnsWhatIsThere) {
  auto fast = counter();
  auto slow = counter();
  const support::Gate gate(folder_.file("gate"));
  std::vector<ObjectRef<int>> refs{slow.call(&Counter::pass, gate.path()),
                                   fast.call(&Counter::sleep_ms, 1),
                                   fast.call(&Counter::sleep_ms, 2)};
  auto two = rt_->wait(refs, 2, 20s);
  EXPECT_EQ(two.ready.size(), 2u);
  ASSERT_EQ(two.pending.size(), 1u);
  EXPECT_EQ(two.pending[0], refs[0]);
  auto none = rt_->wait(two.pending, 1, 10ms);
  EXPECT_TRUE(none.ready.empty());
  gate.open();
}

TEST_F(ClusterTest, GroupsAreCalledAsOne) {
  auto group = rt_->spawn_group<Member>(3, {.name = "team"}, split(std::vector<int>{0, 1, 2}), "m");
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  EXPECT_EQ(*rt_->objects().gather(group->call(&Member::who)),
            (std::vector<std::string>{"m0", "m1", "m2"}));
  EXPECT_EQ(*rt_->objects().gather(group->call(&Member::times, 10)), (std::vector<int>{0, 10, 20}));
  EXPECT_EQ(*rt_->objects().gather(group->call(&Member::times, split(std::vector<int>{1, 2, 3}))),
            (std::vector<int>{0, 2, 6}));
  EXPECT_EQ(*rt_->objects().gather(group->slice(1, 2).call(&Member::times, 1)),
            (std::vector<int>{1, 2}));
  expect_failure(
      rt_->objects().gather(group->call(&Member::times, split(std::vector<int>{1}))).status(),
      ErrorCode::kInvalidArgument, {"split", "3"});
  expect_failure(rt_->objects().gather(group->call(&Member::fail_on, 1)).status(),
                 ErrorCode::kInvalidArgument, {"rank 1", "not with me"});
  auto second = rt_->get_actor<Member>("team-1");
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(get(second->call(&Member::who)), "m1");
  auto bad = rt_->spawn_group<Picky>(2, {}, split(std::vector<int>{1, -5}));
  expect_failure(bad.status(), ErrorCode::kInvalidArgument, {"rank 1", "-5"});
}

TEST_F(ClusterTest, ActorsUseTheRuntimeToo) {
  auto one = broker("one");
  auto two = broker("two");
  EXPECT_EQ(get(one.call(&Broker::spawn_and_add, 40, 2)), 42);
  auto waits = one.call(&Broker::meet, "place", "");
  auto tells = two.call(&Broker::meet, "place", "here");
  EXPECT_EQ(get(waits), "here");
  EXPECT_EQ(get(tells), "here");
  EXPECT_EQ(*rt_->kv().add("n", 5), 5);
  EXPECT_EQ(*rt_->kv().add("n", -2), 3);
  EXPECT_EQ(rt_->kv().try_get("absent").status().code(), ErrorCode::kNotFound);
}

TEST_F(ClusterTest, OptionsReachTheWorker) {
  ActorOptions options;
  options.env["COLOUR"] = "green";
  options.threads = 3;
  auto actor = counter(0, options);
  EXPECT_EQ(get(actor.call(&Counter::variable, "COLOUR")), "green");
  EXPECT_EQ(get(actor.call(&Counter::variable, "OMP_NUM_THREADS")), "3");
  auto huge = rt_->spawn<Counter>({.cpus = 1000, .create_timeout = 500ms});
  expect_failure(huge.status(), ErrorCode::kResourceExhausted, {"CPU"});
}

TEST_F(ClusterTest, OutputOfWorkersArrivesWithAPrefix) {
  ::testing::internal::CaptureStdout();
  auto actor = counter();
  ASSERT_TRUE(rt_->get(actor.call(&Counter::print, "hello from afar")).ok());
  std::string text = "(Counter pid=" + std::to_string(actor.pid()) +
                     ", node=" + rt_->cluster().node_id().short_hex() + ") hello from afar\n";
  rt_->stop();
  EXPECT_NE(::testing::internal::GetCapturedStdout().find(text), std::string::npos);
}

TEST_F(ClusterTest, KilledActorIsGone) {
  auto actor = counter();
  pid_t pid = actor.pid();
  ASSERT_TRUE(rt_->kill(actor).ok());
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_EQ(rt_->get(actor.call(&Counter::total)).status().code(), ErrorCode::kActorDied);
  EXPECT_TRUE(rt_->kill(actor).ok()) << "killing a dead actor is no error";
}

TEST_F(ClusterTest, EverythingFailsAfterStopInsteadOfHanging) {
  auto actor = counter();
  auto pending = actor.call(&Counter::sleep_ms, 30'000);
  auto view = rt_->objects().view(broker("b").call(&Broker::make, 1'000'000ul, 3.0F));
  ASSERT_TRUE(view.ok());
  rt_->stop();
  EXPECT_EQ(rt_->get(pending).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(rt_->get(actor.call(&Counter::total)).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(rt_->put(1).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ((*view)[999'999], 3.0F) << "a view outlives the runtime";
}

TEST_F(ClusterTest, ManyCallsFromSeveralThreads) {
  auto actor = counter();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (!rt_->get(actor.call(&Counter::add, 1)).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(get(actor.call(&Counter::total)), 2000);
}

}  // namespace
}  // namespace runtime::test
