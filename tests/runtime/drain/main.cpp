// The test program is also the program that its workers run, and with an argument a driver next to
// the test.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "drain_actors.h"
#include "runtime/process/worker_environment.h"
#include "tests/support/eventually.h"

namespace {

/// A driver that says when it is told to end.
int run_driver(int argc, char** argv) {
  static volatile std::sig_atomic_t signalled = 0;
  std::signal(SIGTERM, [](int number) { signalled = number; });
  runtime::Runtime rt(argc, argv);
  runtime::test::register_drain_actors(rt);
  return rt.run([](runtime::Runtime&) {
    std::printf("ready\n");
    std::fflush(stdout);
    (void)support::eventually([&] { return signalled != 0; }, std::chrono::hours(1));
    std::printf("told by SIGTERM\n");
    std::fflush(stdout);
    return 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_drain_actors(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  if (argc > 1 && std::strcmp(argv[1], "--driver") == 0) return run_driver(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
