// A driver in the test's process, with a cluster for it alone, of one node and no workers.
#pragma once

#include <gtest/gtest.h>

#include "runtime/runtime.h"
#include "tests/support/temporary_folder.h"

namespace rl {

class StartedRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const runtime::Status started = runtime_.start();
    ASSERT_TRUE(started.ok()) << started.to_string();
  }

  static runtime::RuntimeOptions options() {
    runtime::RuntimeOptions options;
    options.start_arguments = {"--num-cpus", "1"};
    return options;
  }

  const support::TemporaryFolder folder_;
  const support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  const support::ScopedVariable program_{"STARLING_PROGRAM", STARLING_BIN_DIR "/starling"};
  const support::ScopedVariable sessions_{"STARLING_SESSION_ROOT", folder_.path().c_str()};
  char name_[5] = "test";
  char* arguments_[2] = {name_, nullptr};
  runtime::Runtime runtime_{1, arguments_, options()};
};

}  // namespace rl
