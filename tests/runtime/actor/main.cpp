// The test program is also the program that its workers run, and with an argument another driver beside the test.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/node/worker_environment.h"
#include "test_actors.h"

namespace {

/// As an older version of the test's program might look: the same class name, another signature.
struct OldCounter {
  long add(long n) { return n; }
  int total() const { return -1; }
};

bool is_older_program(int argc, char** argv) {
  return (argc > 1 && std::strcmp(argv[1], "--older-program") == 0) || std::getenv("OLDER_PROGRAM") != nullptr;
}

int run_older_program(int argc, char** argv) {
  runtime::Runtime rt(argc, argv);
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

}  // namespace

int main(int argc, char** argv) {
  if (is_older_program(argc, argv)) return run_older_program(argc, argv);
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_test_actors(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
