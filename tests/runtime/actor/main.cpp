// The test program is also the program that its workers run, and with an argument another driver
// next to the test.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>

#include "runtime/process/worker_environment.h"
#include "test_actors.h"
#include "test_tasks.h"
#include "tests/support/eventually.h"

namespace {

/// As an older version of the test's program might look: the same class name, another signature.
struct OldCounter {
  long add(long n) { return n; }
  int total() const { return -1; }
};

bool is_older_program(int argc, char** argv) {
  return (argc > 1 && std::strcmp(argv[1], "--older-program") == 0) ||
         std::getenv("OLDER_PROGRAM") != nullptr;
}

int run_older_program(int argc, char** argv) {
  runtime::RuntimeOptions shared;
  shared.name_space = "shared";
  runtime::Runtime rt(argc, argv, shared);
  rt.register_actor<OldCounter>("Counter", &OldCounter::add, &OldCounter::total);
  return rt.run([](runtime::Runtime& driver) {
    runtime::ActorOptions options{.name = "old"};
    options.env["OLDER_PROGRAM"] = "1";
    auto actor = driver.spawn<OldCounter>(options);
    if (!actor.ok()) return actor.status();
    std::printf("ready\n");
    std::fflush(stdout);
    ::pause();
    return runtime::Status();
  });
}

bool is_program(int argc, char** argv, const char* name) {
  return argc > 2 && std::strcmp(argv[1], name) == 0;
}

/// Leaves a detached actor behind; argv[2] is its diary.
int run_detached_maker(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  runtime::test::register_test_actors(rt);
  return rt.run([](runtime::Runtime& driver) {
    runtime::ActorOptions options{
        .name = "service", .name_space = "common", .detached = true, .max_restarts = -1};
    return driver.spawn<runtime::test::Phoenix>(options, driver.arguments()[2]).status();
  });
}

/// A parent on the node next to the driver's, its child on the driver's node, and a call at the
/// child that does not end. Also a detached actor on the driver's node.
int run_family(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  runtime::test::register_test_actors(rt);
  return rt.run([](runtime::Runtime& driver) {
    auto state = driver.cluster().state();
    if (!state.ok()) return state.status();
    runtime::ActorOptions elsewhere;
    for (const auto& node : state->nodes) {
      if (node.node != driver.cluster().node_id()) elsewhere.node = node.node;
    }
    auto parent = driver.spawn<runtime::test::Parent>(elsewhere);
    if (!parent.ok()) return parent.status();
    auto child =
        driver.get(parent->call(&runtime::test::Parent::bear, driver.arguments()[2], "", false));
    if (!child.ok()) return child.status();
    auto endless =
        child->call(&runtime::test::Phoenix::note_behind, driver.arguments()[2] + ".gate", "never");
    runtime::ActorOptions lasting{.name = "keeper",
                                  .name_space = "family",
                                  .detached = true,
                                  .node = driver.cluster().node_id()};
    auto keeper = driver.spawn<runtime::test::Phoenix>(lasting, driver.arguments()[2]);
    if (!keeper.ok()) return keeper.status();
    std::printf("ready %d %d %d\n", parent->pid(), child->pid(), keeper->pid());
    std::fflush(stdout);
    ::pause();
    return runtime::Status();
  });
}

/// An actor, and a child that has all that this process has open, as fork() would not let it.
int run_leaves_child(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
  runtime::test::register_test_actors(rt);
  return rt.run([](runtime::Runtime& driver) {
    auto actor = driver.spawn<runtime::test::Counter>(runtime::ActorOptions{}, 1);
    if (!actor.ok()) return actor.status();
    const pid_t child = ::_Fork();
    if (child == 0) ::pause();
    std::printf("ready %d %d\n", actor->pid(), child);
    std::fflush(stdout);
    ::pause();
    return runtime::Status();
  });
}

/// An actor; then, once the file argv[2] is there, the same actor after its process was killed,
/// another one on each node, and a task.
int run_replaced(int argc, char** argv) {
  using runtime::test::Counter;
  runtime::Runtime rt(argc, argv);
  runtime::test::register_test_actors(rt);
  runtime::test::register_test_tasks(rt);
  return rt.run([](runtime::Runtime& driver) {
    auto state = driver.cluster().state();
    if (!state.ok()) return state.status();
    auto first = driver.spawn<Counter>(runtime::ActorOptions{.max_restarts = 1}, 1);
    if (!first.ok()) return first.status();
    std::printf("ready %d\n", first->pid());
    std::fflush(stdout);
    (void)support::eventually([&] { return ::access(driver.arguments()[2].c_str(), F_OK) == 0; },
                              std::chrono::hours(1));
    auto total = driver.get(first->call(&Counter::total));
    (void)support::eventually([&] {
      if (!total.ok()) total = driver.get(first->call(&Counter::total));
      return total.ok();
    });
    if (!total.ok()) return total.status();
    for (const auto& node : state->nodes) {
      auto other = driver.spawn<Counter>(runtime::ActorOptions{.node = node.node}, 2);
      if (!other.ok()) return other.status();
      auto other_total = driver.get(other->call(&Counter::total));
      if (!other_total.ok()) return other_total.status();
    }
    auto sum = driver.get(driver.task(runtime::TaskOptions{}, &runtime::test::twice, 2),
                          std::chrono::seconds(20));
    if (!sum.ok()) return sum.status();
    std::printf("all is well\n");
    return runtime::Status();
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (is_older_program(argc, argv)) return run_older_program(argc, argv);
  if (!runtime::is_worker_process() && is_program(argc, argv, "--detached-maker"))
    return run_detached_maker(argc, argv);
  if (!runtime::is_worker_process() && is_program(argc, argv, "--family"))
    return run_family(argc, argv);
  if (!runtime::is_worker_process() && is_program(argc, argv, "--replaced"))
    return run_replaced(argc, argv);
  if (!runtime::is_worker_process() && is_program(argc, argv, "--leaves-child"))
    return run_leaves_child(argc, argv);
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_test_actors(rt);
    runtime::test::register_test_tasks(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
