#include "runtime/process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/runtime/process/children.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) == 0; }

/// A mask of /proc/PID/status, "SigIgn" for instance.
bool has_signal(const std::string& status, const std::string& name, int number) {
  const std::size_t at = status.find(name + ":");
  if (at == std::string::npos) return false;
  const auto mask = std::stoull(status.substr(at + name.size() + 1), nullptr, 16);
  return (mask >> (number - 1) & 1) != 0;
}

/// How a process looks to itself that is given this.
std::string status_of(const ChildSetup& setup) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("cat /proc/self/status", output);
  const auto mapped = spec.setup.descriptors;
  spec.setup = setup;
  spec.setup.descriptors = mapped;
  spec.program = "cat";
  spec.argv = {"cat", "/proc/self/status"};
  return output_of(std::move(spec), output);
}

TEST(Spawn, AProgramOfThePathRunsWithItsArguments) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("", output);
  spec.argv = {"another name", "-c", "echo \"$0 $1\"", "first", "second one"};
  EXPECT_EQ(output_of(spec, output), "first second one\n");
}

TEST(Spawn, AProgramThatIsNotThereIsNamed) {
  SpawnSpec spec;
  spec.program = "/nowhere/program";
  spec.argv = {"program"};
  const Result<SpawnedProcess> process = spawn_process(spec);
  EXPECT_EQ(process.status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(process.status().message(), "starting /nowhere/program: No such file or directory");
  spec.program = "no-such-program-of-any-path";
  EXPECT_EQ(spawn_process(spec).status().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(has_children()) << "what could not execute it was not reaped";
}

TEST(Spawn, WhatIsNoProgramIsNamed) {
  SpawnSpec spec;
  spec.program = "/etc";
  spec.argv = {"etc"};
  const Status status = spawn_process(spec).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("starting /etc: "), std::string::npos) << status.message();
}

TEST(Spawn, AWorkingFolderIsEnteredOrNamed) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("pwd", output);
  spec.working_dir = "/proc";
  EXPECT_EQ(output_of(spec, output), "/proc\n");
  spec.working_dir = "/no/such/folder";
  spec.setup.descriptors.clear();
  const Status status = spawn_process(spec).status();
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.message().find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(has_children());
}

TEST(Spawn, ArgumentsThatAreTooLargeAreToldSo) {
  SpawnSpec spec;
  spec.program = "true";
  spec.argv = {"true", std::string(1 << 20, 'x')};
  const Status status = spawn_process(spec).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("too large"), std::string::npos) << status.message();
}

TEST(Spawn, TheEnvironmentIsAllThatIsGiven) {
  ::setenv("SPAWN_TEST_HERE", "here", 1);
  for (const auto& [environment, expected] :
       {std::pair<std::vector<std::string>, std::string>{{"ONE=1", "TWO=2 and more"},
                                                         "ONE=1\nTWO=2 and more\n"},
        {{}, ""}}) {
    Pipe output = test_pipe();
    SpawnSpec spec = shell("", output);
    spec.program = "env";
    spec.argv = {"env"};
    spec.environment = environment;
    EXPECT_EQ(output_of(spec, output), expected);
  }
  Pipe output = test_pipe();
  EXPECT_EQ(output_of(shell("echo $SPAWN_TEST_HERE", output), output), "here\n");
  ::unsetenv("SPAWN_TEST_HERE");
}

TEST(Spawn, DescriptorsMayChangePlaces) {
  Pipe output = test_pipe(), first = test_pipe(), second = test_pipe();
  ASSERT_EQ(::write(first.write.get(), "1", 1), 1);
  ASSERT_EQ(::write(second.write.get(), "2", 1), 1);
  first.write.reset();
  second.write.reset();
  const int a = first.read.get(), b = second.read.get();
  const auto from = [](int number) { return "cat <&" + std::to_string(number) + "; echo; "; };
  SpawnSpec spec = shell(from(a) + from(b), output);
  spec.setup.descriptors.insert(spec.setup.descriptors.end(), {{a, b}, {b, a}});
  EXPECT_EQ(output_of(spec, output), "2\n1\n");
}

TEST(Spawn, ADescriptorMayKeepItsNumberAndHaveSeveral) {
  Pipe output = test_pipe();
  const int own = output.write.get();
  SpawnSpec spec = shell("echo a >&" + std::to_string(own) + "; echo b >&2; echo c", output);
  spec.setup.descriptors.insert(spec.setup.descriptors.end(), {{own, own}, {own, 2}});
  EXPECT_EQ(output_of(spec, output), "a\nb\nc\n");
}

TEST(Spawn, ADescriptorThatIsNotOpenIsAnError) {
  SpawnSpec spec;
  spec.program = "true";
  spec.argv = {"true"};
  spec.setup.descriptors = {{-1, 5}};
  const Status status = spawn_process(spec).status();
  EXPECT_EQ(status.message(), "starting true: its descriptors: Bad file descriptor");
  EXPECT_FALSE(has_children());
}

TEST(Spawn, OthersAreClosedOnRequest) {
  const FileDescriptor left(::open("/dev/null", O_RDONLY));  // exec leaves it open
  for (const bool closes : {false, true}) {
    Pipe output = test_pipe();
    const std::string path = "/proc/self/fd/" + std::to_string(left.get());
    SpawnSpec spec = shell("test -e " + path + " && echo open; echo mapped >&9", output);
    spec.setup.descriptors.push_back({output.write.get(), 9});
    spec.setup.closes_others = closes;
    EXPECT_EQ(output_of(spec, output), closes ? "mapped\n" : "open\nmapped\n");
  }
}

TEST(Spawn, IgnoredSignalsAreInheritedOrReset) {
  ::signal(SIGUSR1, SIG_IGN);
  ::signal(SIGUSR2, SIG_DFL);
  ChildSetup setup;
  std::string status = status_of(setup);
  EXPECT_TRUE(has_signal(status, "SigIgn", SIGUSR1));
  EXPECT_FALSE(has_signal(status, "SigIgn", SIGUSR2));
  setup.ignored_signals = {SIGUSR2};
  setup.resets_signals = true;
  status = status_of(setup);
  EXPECT_FALSE(has_signal(status, "SigIgn", SIGUSR1));
  EXPECT_TRUE(has_signal(status, "SigIgn", SIGUSR2));
  ::signal(SIGUSR1, SIG_DFL);
}

TEST(Spawn, TheMaskIsTheThreadsOrAsGiven) {
  sigset_t held, before;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &held, &before);
  ChildSetup setup;
  EXPECT_TRUE(has_signal(status_of(setup), "SigBlk", SIGUSR1));
  EXPECT_FALSE(has_signal(status_of(setup), "SigBlk", SIGUSR2));
  setup.signal_mask = no_signals();
  EXPECT_FALSE(has_signal(status_of(setup), "SigBlk", SIGUSR1));
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, &before, &now);
  EXPECT_TRUE(::sigismember(&now, SIGUSR1)) << "this thread's own changed";
  EXPECT_FALSE(::sigismember(&now, SIGUSR2));
}

TEST(Spawn, AGroupOrASessionIsTheChilds) {
  const std::string script =
      "read -r pid name state parent group session rest < /proc/self/stat; "
      "echo $$ $group $session";
  for (const ProcessGroup group :
       {ProcessGroup::kInherited, ProcessGroup::kOwn, ProcessGroup::kSession}) {
    Pipe output = test_pipe();
    SpawnSpec spec = shell(script, output);
    spec.setup.group = group;
    std::istringstream said(output_of(spec, output));
    pid_t pid = 0, in_group = 0, in_session = 0;
    said >> pid >> in_group >> in_session;
    EXPECT_EQ(in_group, group == ProcessGroup::kInherited ? ::getpgrp() : pid);
    EXPECT_EQ(in_session, group == ProcessGroup::kSession ? pid : ::getsid(0));
  }
}

TEST(Spawn, AChildMayBeAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another";
  const Result<JobUser> nobody = find_user("nobody");
  if (!nobody.ok()) GTEST_SKIP() << nobody.status().message();
  Pipe output = test_pipe();
  SpawnSpec spec = shell("id -u; id -g", output);
  spec.user = *nobody;
  spec.working_dir = "/";
  EXPECT_EQ(output_of(spec, output),
            std::to_string(nobody->uid) + "\n" + std::to_string(nobody->gid) + "\n");
  EXPECT_EQ(::geteuid(), 0u);
}

int forks = 0;

TEST(Spawn, MemoryIsNotCopied) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer makes fork() of vfork()";
#endif
  ASSERT_EQ(::pthread_atfork([] { ++forks; }, nullptr, nullptr), 0);
  Pipe output = test_pipe();
  EXPECT_EQ(output_of(shell("echo yes", output), output), "yes\n");
  EXPECT_EQ(forks, 0);
}

/// In a process that dies at once: starts a child of this kind. Returns when it has.
void start_and_die(const SpawnSpec& spec) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    const Result<SpawnedProcess> process = spawn_process(spec);
    ::kill(process.ok() ? ::getpid() : 0, SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
}

TEST(Spawn, ADeathSignalComesWhenTheParentDies) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("trap 'echo told; exit' TERM; while :; do sleep 0.02; done", output);
  spec.setup.group = ProcessGroup::kOwn;
  spec.setup.death_signal = SIGTERM;
  start_and_die(spec);
  const std::string said = read_to_end(output);
  EXPECT_TRUE(said == "told\n" || said.empty()) << "it came before the trap, at the most: " << said;
}

TEST(Spawn, WhatASupervisedProgramStartedDiesWithTheParent) {
  Pipe output = test_pipe();
  SpawnSpec spec = shell("sleep 300 & setsid sleep 300 & wait", output);
  spec.setup.group = ProcessGroup::kOwn;
  spec.setup.death_signal = SIGKILL;
  spec.supervised = true;
  start_and_die(spec);
  EXPECT_EQ(read_to_end(output), "");
}

TEST(Spawn, ACopyRunsAFunction) {
  Pipe output = test_pipe();
  const FileDescriptor left(::open("/dev/null", O_RDONLY));
  ChildSetup setup;
  setup.group = ProcessGroup::kSession;
  setup.ignored_signals = {SIGUSR2};
  setup.descriptors = {{output.write.get(), 3}};
  setup.closes_others = true;
  Result<SpawnedProcess> process = fork_process(setup, [&] {
    struct sigaction present = {};
    ::sigaction(SIGUSR2, nullptr, &present);
    const bool is_closed = left.get() == 3 || ::fcntl(left.get(), F_GETFD) < 0;
    const bool is_right = ::getsid(0) == ::getpid() && present.sa_handler == SIG_IGN && is_closed;
    return is_right && ::write(3, "done", 4) == 4 ? 7 : 1;
  });
  ASSERT_TRUE(process.ok()) << process.status().message();
  EXPECT_EQ(read_to_end(output), "done");
  EXPECT_EQ(process->reap().exit_code, 7);
}

TEST(Spawn, AProgramTakesThisOnesPlace) {
  Result<SpawnedProcess> process = fork_process({}, [] {
    return replace_program("/bin/sh", {"sh", "-c", "exit 5"}).ok() ? 0 : 1;
  });
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(process->reap().exit_code, 5);
  const Status status = replace_program("/nowhere/program", {"program"});
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(status.message(), "/nowhere/program: No such file or directory");
}

}  // namespace
}  // namespace runtime
