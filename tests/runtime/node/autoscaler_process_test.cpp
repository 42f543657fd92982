#include "runtime/node/autoscaler_process.h"

#include <gtest/gtest.h>

#include "runtime/transport/blocking.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using std::chrono::seconds;

/// What is left when a shell with that program has been told to end. It is to make "$4.ready" once
/// it can be; "$4" is where it writes what it leaves.
std::string left_by(const std::string& script) {
  support::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "logs");
  EventLoop loop;
  AutoscalerProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script, "sh"};
  options.address = "h:1";
  options.session_dir = folder.path();
  options.stop_time = seconds(20);
  auto process = on_loop(loop, [&] { return std::make_unique<AutoscalerProcess>(loop, options); });
  EXPECT_TRUE(on_loop(loop, [&] { return process->start(); }).ok());
  EXPECT_TRUE(support::eventually(
      [&] { return std::filesystem::exists(folder.path() / "logs" / "autoscaler-left.ready"); }));
  Event ended(loop);
  std::string left;
  on_loop(loop, [&] {
    process->end([&](std::string text) {
      left = std::move(text);
      ended.set();
    });
    return 0;
  });
  EXPECT_TRUE(process->is_ending());
  EXPECT_TRUE(loop.run_until(ended, deadline_after(seconds(30))));
  on_loop(loop, [&] {
    process.reset();
    return 0;
  });
  return left;
}

TEST(AutoscalerProcess, LeavesNothing) {
  EXPECT_EQ(left_by("trap 'exit 0' TERM; : > \"$4.ready\"; while :; do sleep 0.02; done"), "");
}

TEST(AutoscalerProcess, SaysWhatItLeaves) {
  const std::string left = left_by(
      "trap 'printf \"node 7\" > \"$4\"; exit 0' TERM; : > \"$4.ready\"; while :; do sleep 0.02; "
      "done");
  EXPECT_TRUE(left.starts_with("node 7\n  see ")) << left;
}

}  // namespace
}  // namespace runtime
