#include "runtime/process/process_tree.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "tests/runtime/process/children.h"

namespace runtime {
namespace {

/// What a copy of this process returns.
int in_copy(const std::function<int()>& body) {
  const pid_t copy = ::fork();
  if (copy == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(copy, &status, 0), copy);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A process that has started another, in its own session, which has started a third.
struct Started {
  Started() {
    process =
        spawned(shell("setsid sh -c 'sleep 300 & echo ready; wait' & wait; sleep 300 & "
                      "echo waited; wait",
                      output));
    EXPECT_EQ(read_line(output), "ready");
  }
  Pipe output = test_pipe();
  SpawnedProcess process;
};

TEST(ProcessTree, KillsAllBelowAndNotTheRoot) {
  Started started;
  started.process.signal(SIGSTOP);
  EXPECT_TRUE(ProcessTree(started.process.pid()).kill_all());
  EXPECT_FALSE(started.process.ended());
  started.process.signal(SIGCONT);
  EXPECT_EQ(read_line(started.output), "waited");
  EXPECT_TRUE(ProcessTree(started.process.pid()).kill_all());
  started.process.signal(SIGKILL);
  EXPECT_EQ(read_to_end(started.output), "");
}

TEST(ProcessTree, GivesUpWhatItMayNotSignal) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another";
  Started started;
  const pid_t root = started.process.pid();
  EXPECT_EQ(in_copy([root] {
              if (::setresuid(65534, 65534, 65534) != 0) return 2;
              return ProcessTree(root).kill_all() ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(ProcessTree(root).kill_all());
}

// Numbers of another PID namespace name other processes here.
TEST(ProcessTree, FindsNothingWhereProcIsOfAnotherPidNamespace) {
  EXPECT_TRUE(is_own_proc());
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  const int result = in_copy([] {
    if (::unshare(CLONE_NEWPID) != 0) return 77;
    return in_copy([] {
      const pid_t child = ::fork();
      if (child == 0) {
        ::pause();
        ::_exit(0);
      }
      const bool is_right = !is_own_proc() && !ProcessTree(::getpid()).kill_round();
      const bool lives = ::waitpid(child, nullptr, WNOHANG) == 0;
      ::kill(child, SIGKILL);
      return is_right && lives ? 0 : 1;
    });
  });
  if (result == 77) GTEST_SKIP() << "no PID namespace can be made";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace runtime
