// The test program is also the program that its workers run.
#include <gtest/gtest.h>

#include "actors.h"
#include "runtime/process/worker_environment.h"

int main(int argc, char** argv) {
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    rl::testing::register_test_actors(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
