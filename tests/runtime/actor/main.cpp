// The test program is also the program that its workers run.
#include <gtest/gtest.h>

#include "runtime/node/worker_environment.h"
#include "test_actors.h"

int main(int argc, char** argv) {
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_test_actors(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
