#include <gtest/gtest.h>

#include <cstring>

#include "runtime/process/worker_environment.h"
#include "tests/runtime/node/program.h"

int main(int argc, char** argv) {
  if (runtime::is_worker_process()) return runtime::serve_as_worker();
  if (argc > 1 && std::strcmp(argv[1], "driver") == 0)
    return runtime::run_as_driver(argc - 2, argv + 2);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
