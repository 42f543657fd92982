#include "runtime/process/spawned_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "runtime/core/clock.h"
#include "runtime/core/thread.h"
#include "tests/runtime/process/children.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SpawnedProcess sleeper() {
  SpawnSpec spec;
  spec.program = "sleep";
  spec.argv = {"sleep", "300"};
  return spawned(spec);
}

bool is_unknown(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

TEST(SpawnedProcess, SaysHowItEnded) {
  Pipe output = test_pipe();
  SpawnedProcess process = spawned(shell("exit 3", output));
  const pid_t pid = process.pid();
  const DeathCause exited = process.reap();
  EXPECT_EQ(exited, (DeathCause{"exited with code 3", pid, 3, 0, ""}));
  EXPECT_FALSE(process);

  process = spawned(shell("kill -SEGV $$", output));
  const DeathCause killed = process.reap();
  EXPECT_EQ(killed.text, "killed by SIGSEGV");
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_EQ(killed.exit_code, -1);
}

TEST(SpawnedProcess, TheNumberStaysTakenUntilItIsReaped) {
  SpawnedProcess process = sleeper();
  const pid_t pid = process.pid();
  EXPECT_FALSE(process.ended());
  process.signal(SIGKILL);
  EXPECT_TRUE(process.await_end());
  const auto cause = process.ended();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->signal, SIGKILL);
  EXPECT_FALSE(is_unknown(pid));
  EXPECT_EQ(process.reap(), *cause);
  EXPECT_TRUE(is_unknown(pid));
}

TEST(SpawnedProcess, AWaitEndsAtItsDeadline) {
  SpawnedProcess process = sleeper();
  EXPECT_FALSE(process.reap_until(deadline_after(milliseconds(30))));
  ASSERT_TRUE(process) << "it runs on";
  process.signal(SIGTERM);
  const auto cause = process.reap_until(deadline_after(seconds(10)));
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->signal, SIGTERM);
  EXPECT_FALSE(process);
}

TEST(SpawnedProcess, ADescriptorTellsOfTheEnd) {
  SpawnedProcess process = sleeper();
  const Result<FileDescriptor> end = process.watch();
  ASSERT_TRUE(end.ok()) << end.status().message();
  pollfd ready{end->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  process.signal(SIGKILL);
  EXPECT_EQ(::poll(&ready, 1, 10'000), 1);
}

TEST(SpawnedProcess, AnotherThreadMaySignalWhileOneWaits) {
  SpawnedProcess process = sleeper();
  auto waiter = Thread::start([&process] { process.await_end(); });
  ASSERT_TRUE(waiter.ok());
  process.signal(SIGTERM);
  waiter->join();
  EXPECT_EQ(process.reap().signal, SIGTERM);
}

TEST(SpawnedProcess, ASignalReachesTheWholeGroup) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("sleep 300 & sleep 300 & echo ready; wait", output);
  spec.setup.group = ProcessGroup::kOwn;
  SpawnedProcess process = spawned(spec);
  EXPECT_EQ(read_line(output), "ready");
  process.signal_group(SIGTERM);
  EXPECT_EQ(read_to_end(output), "");
  EXPECT_EQ(process.reap().signal, SIGTERM);
}

TEST(SpawnedProcess, WithoutAGroupOfItsOwnItAloneIsSignalled) {
  SpawnedProcess process = sleeper(), other = sleeper();
  process.signal_group(SIGKILL);
  EXPECT_EQ(process.reap().signal, SIGKILL);
  EXPECT_FALSE(other.ended());
}

TEST(SpawnedProcess, ItsEndKillsTheGroup) {
  Pipe output = test_pipe();
  pid_t pid = 0;
  {
    SpawnSpec spec = shell("sleep 300 & echo ready; wait", output);
    spec.setup.group = ProcessGroup::kOwn;
    const SpawnedProcess process = spawned(spec);
    pid = process.pid();
    EXPECT_EQ(read_line(output), "ready");
  }
  EXPECT_EQ(read_to_end(output), "");
  EXPECT_TRUE(is_unknown(pid));
}

TEST(SpawnedProcess, AssigningKillsTheOneBefore) {
  SpawnedProcess process = sleeper();
  const pid_t first = process.pid();
  process = sleeper();
  EXPECT_TRUE(is_unknown(first));
  EXPECT_FALSE(process.ended());
}

TEST(SpawnedProcess, OneThatIsReleasedGoesOn) {
  pid_t pid = 0;
  {
    SpawnedProcess process = sleeper();
    pid = process.release();
  }
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it runs";
  Result<SpawnedProcess> again = SpawnedProcess::adopt(pid);
  ASSERT_TRUE(again.ok()) << again.status().message();
  again->signal_group(SIGTERM);  // it leads none, as it runs a program already
  EXPECT_EQ(again->reap().signal, SIGTERM);
}

TEST(SpawnedProcess, ACopyThatIsAdoptedLeadsAGroup) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  Result<SpawnedProcess> process = SpawnedProcess::adopt(pid);
  ASSERT_TRUE(process.ok()) << process.status().message();
  EXPECT_EQ(::getpgid(pid), pid);
  process->signal_group(SIGTERM);
  EXPECT_EQ(process->reap().signal, SIGTERM);
}

TEST(SpawnedProcess, OnlyAChildIsAdopted) {
  EXPECT_EQ(SpawnedProcess::adopt(::getpid()).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(SpawnedProcess::adopt(0).status().code(), ErrorCode::kNotFound);
}

TEST(SpawnedProcess, NothingIsSignalledByAnEmptyOne) {
  const SpawnedProcess none;
  none.signal(SIGKILL);
  none.signal_group(SIGKILL);
  EXPECT_FALSE(none);
}

}  // namespace
}  // namespace runtime
