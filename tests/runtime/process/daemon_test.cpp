#include "runtime/process/daemon.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "runtime/process/spawned_process.h"

namespace runtime {
namespace {

TEST(Daemon, WhatIsUpGoesOnInASessionOfItsOwn) {
  ::testing::internal::CaptureStdout();
  const int code = run_in_background([&](StartReport& report) {
    report.up("at " + std::to_string(::getpid()) + "\n");
    return ::getsid(0) == ::getpid() && report.background() ? 0 : 1;
  });
  const std::string said = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  ASSERT_EQ(said.rfind("at ", 0), 0u) << said;
  Result<SpawnedProcess> process = SpawnedProcess::adopt(std::stoi(said.substr(3)));
  ASSERT_TRUE(process.ok()) << "it was not left to itself";
  EXPECT_EQ(process->reap().exit_code, 0);
}

TEST(Daemon, AFailureIsToldAndAnEndBeforeTheReportToo) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_in_background([](StartReport& report) {
              report.failed(unavailable("no port"));
              return 3;
            }),
            1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: no port\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_in_background([](StartReport&) { return ::kill(::getpid(), SIGKILL); }), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "error: the background process killed by SIGKILL before it was up\n");
}

}  // namespace
}  // namespace runtime
