#include "runtime/process/child_process.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "runtime/process/session.h"
#include "tests/support/eventually.h"
#include "tests/support/process_limit.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;

// Less than what the scripts take that no process ends.
constexpr auto kPatience = std::chrono::seconds(60);

struct ShellOptions {
  bool supervised = false;
  std::string end_at = {};  // its end() is called once it has said this; empty: never
  milliseconds grace{0};    // of end()
};

/// Runs a shell script to its end on its own loop.
struct ShellRun {
  explicit ShellRun(std::string script, ShellOptions shell_options = {})
      : over(loop), options(std::move(shell_options)) {
    spec.supervised = options.supervised;
    spec.program = "sh";
    spec.argv = {"sh", "-c", std::move(script)};
    start();
    EXPECT_TRUE(loop.run_until(over, deadline_after(kPatience))) << "it did not end";
  }
  void start() {
    loop.post([this] {
      ProcessHandlers handlers;
      handlers.on_output = [this](bool is_stderr, std::string_view bytes) {
        (is_stderr ? err : out).append(bytes);
        if (options.end_at.empty() || out.find(options.end_at) == out.npos) return;
        options.end_at.clear();
        child->end(options.grace);
      };
      handlers.on_exit = [this](DeathCause end) {
        cause = std::move(end);
        over.set();
      };
      auto started = ChildProcess::start(loop, spec, std::move(handlers));
      ASSERT_TRUE(started.ok()) << started.status().message();
      child = std::move(*started);
    });
  }
  ~ShellRun() {
    Event gone(loop);
    loop.post([&] {
      child.reset();
      gone.set();
    });
    loop.run_until(gone, Deadline::max());
  }

  EventLoop loop;
  Event over;
  ShellOptions options;
  ProcessSpec spec;
  std::unique_ptr<ChildProcess> child;
  std::string out, err;
  DeathCause cause;
};

bool exists(int pid) { return ::kill(pid, 0) == 0; }

TEST(ChildProcess, TellsOutputAndExitCode) {
  ShellRun run("echo out; echo err >&2; exit 3");
  EXPECT_EQ(run.out, "out\n");
  EXPECT_EQ(run.err, "err\n");
  EXPECT_EQ(run.cause.exit_code, 3);
  EXPECT_EQ(run.cause.signal, 0);
  EXPECT_EQ(run.cause.text, "exited with code 3");
  EXPECT_GT(run.cause.pid, 0);
}

TEST(ChildProcess, ReadsAllOfALargeOutput) {
  ShellRun run("head -c 3000000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(run.out.size(), 3000000u);
}

TEST(ChildProcess, NamesTheSignal) {
  ShellRun run("kill -SEGV $$");
  EXPECT_EQ(run.cause.signal, SIGSEGV);
  EXPECT_EQ(run.cause.text, "killed by SIGSEGV");
  EXPECT_EQ(run.cause.exit_code, -1);
}

TEST(ChildProcess, EndsWithTermThenKill) {
  ShellRun gentle("trap 'echo bye; exit 0' TERM; sleep 300 & echo ready; wait",
                  {.end_at = "ready", .grace = milliseconds(5000)});
  EXPECT_EQ(gentle.out, "ready\nbye\n");
  EXPECT_EQ(gentle.cause.exit_code, 0);
  ShellRun stubborn("trap '' TERM; echo ready; while true; do sleep 0.05; done",
                    {.end_at = "ready", .grace = milliseconds(100)});
  EXPECT_EQ(stubborn.cause.signal, SIGKILL);
}

// Cleans up as soon as process $first has ended, be it a zombie.
const std::string kCleanUp =
    "while grep -qs ^State:.[^Z] /proc/$first/status; do sleep 0.01; done; echo cleaned up";

TEST(ChildProcess, WhatItRanHasItsTimeToEndAfterTheFirstProcess) {
  // The shell ends at once; what it runs takes its time, and so does what that starts to clean up.
  ShellRun run("export first=$$; sh -c 'trap \"sh -c \\\"" + kCleanUp +
                   "\\\"; exit 0\" TERM; echo ready; while :; do sleep 0.05; done'; echo never",
               {.supervised = true, .end_at = "ready", .grace = kPatience / 2});
  EXPECT_EQ(run.out, "ready\ncleaned up\n");
  EXPECT_EQ(run.cause.signal, SIGTERM) << "the shell's end counts";
}

TEST(ChildProcess, WhatItRanHasNoTimeAfterTheFirstProcessWhereItIsNotSupervised) {
  ShellRun run("sh -c 'trap \"\" TERM; echo ready; sleep 300'; echo never",
               {.end_at = "ready", .grace = 2 * kPatience});
  EXPECT_EQ(run.out, "ready\n");
  EXPECT_EQ(run.cause.signal, SIGTERM);
}

TEST(ChildProcess, WhatItRanIsKilledWhenItsTimeIsOver) {
  ShellRun run("sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done'; echo never",
               {.supervised = true, .end_at = "\n", .grace = milliseconds(300)});
  const int stubborn = std::stoi(run.out);
  EXPECT_TRUE(support::eventually([&] { return process_start_time(stubborn) == 0; }));
}

TEST(ChildProcess, ASecondEndKillsWhatIsLeft) {
  EventLoop loop;
  Event over(loop);
  std::unique_ptr<ChildProcess> child;
  DeathCause cause;
  asio::steady_timer timer{loop.context()};
  loop.post([&] {
    ProcessSpec spec;
    spec.program = "sh";
    spec.argv = {"sh", "-c", "sh -c 'trap \"\" TERM; echo ready; sleep 300'; echo never"};
    spec.supervised = true;
    ProcessHandlers handlers;
    handlers.on_output = [&](bool, std::string_view) {
      child->end(std::chrono::minutes(5));
      timer.expires_after(milliseconds(200));  // the first has ended by then, or not: either is so
      timer.async_wait([&](boost::system::error_code) { child->end(milliseconds(0)); });
    };
    handlers.on_exit = [&](DeathCause end) {
      cause = std::move(end);
      over.set();
    };
    auto started = ChildProcess::start(loop, spec, std::move(handlers));
    ASSERT_TRUE(started.ok());
    child = std::move(*started);
  });
  EXPECT_TRUE(loop.run_until(over, deadline_after(kPatience)));
  EXPECT_NE(cause.signal, 0);
  Event gone(loop);
  loop.post([&] {
    child.reset();
    gone.set();
  });
  loop.run_until(gone, Deadline::max());
}

TEST(ChildProcess, WhatItLeftBehindIsKilled) {
  ShellRun run("sleep 300 & echo $!");
  int left = std::stoi(run.out);
  // It may linger as a zombie until it is reaped; then it runs no more.
  EXPECT_TRUE(support::eventually([&] { return process_start_time(left) == 0; }));
}

bool ends(int pid) {
  return support::eventually([&] { return process_start_time(pid) == 0; });
}

// In its own session, without a parent, and with nothing in its environment.
constexpr const char* kEscape = "env -i setsid sh -c '(sleep 300 & echo $!)'; ";

TEST(ChildProcess, WhatLeftItsGroupEndsWithItWhereItIsSupervised) {
  ShellRun run(std::string(kEscape) + "exit 7", {.supervised = true});
  EXPECT_EQ(run.cause.exit_code, 7);
  EXPECT_TRUE(ends(std::stoi(run.out))) << run.out;
}

TEST(ChildProcess, WhatLeftItsGroupEndsWhereTheProgramIsKilled) {
  ShellRun run(std::string(kEscape) + "kill -SEGV $$", {.supervised = true});
  EXPECT_EQ(run.cause.signal, SIGSEGV);
  EXPECT_TRUE(ends(std::stoi(run.out))) << run.out;
}

// What it does to its supervisor, and to that one's keeper.
std::string to_supervisor(const std::string& signal) { return "kill -" + signal + " $PPID; "; }
std::string to_keeper(const std::string& signal) {
  return "kill -" + signal + " $(ps -o ppid= -p $PPID); ";
}

// As where this process is number one of a container, which has no init.
TEST(ChildProcess, NoEntryOfItsSupervisorsIsLeft) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  ShellRun("setsid true & exit 0", {.supervised = true});
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(ChildProcess, WhatLeftItsGroupEndsWhereItKillsItsSupervisor) {
  for (const std::string& kill : {to_supervisor("KILL"), to_keeper("KILL")}) {
    ShellRun run(kEscape + kill + "exec sleep 300", {.supervised = true});
    EXPECT_EQ(run.cause.signal, SIGKILL) << kill;
    EXPECT_EQ(process_start_time(std::stoi(run.out)), 0u) << kill << "has ended too early";
  }
}

TEST(ChildProcess, ItsEndIsSeenThoughItStoppedItsSupervisor) {
  for (const std::string& stop :
       {to_supervisor("STOP"), to_keeper("STOP"), to_keeper("STOP") + to_supervisor("STOP")}) {
    ShellRun run(kEscape + stop + "exit 7", {.supervised = true});
    EXPECT_EQ(run.cause.exit_code, 7) << stop;
    EXPECT_TRUE(ends(std::stoi(run.out))) << stop;
  }
}

TEST(ChildProcess, ItIsEndedThoughItStopsItsSupervisorAllTheTime) {
  const std::string script =
      "trap '' TERM; keeper=$(ps -o ppid= -p $PPID); kill -STOP $keeper $PPID; echo stops; "
      "while :; do kill -STOP $keeper $PPID; done";
  ShellRun run(kEscape + script,
               {.supervised = true, .end_at = "stops", .grace = milliseconds(100)});
  EXPECT_EQ(run.cause.signal, SIGKILL);
  EXPECT_TRUE(ends(std::stoi(run.out))) << run.out;
}

TEST(ChildProcess, DestroyingEndsOneThatStoppedItsSupervisors) {
  EventLoop loop;
  Event done(loop);
  std::string out;
  std::unique_ptr<ChildProcess> child;
  loop.post([&] {
    ProcessSpec spec;
    spec.program = "sh";
    spec.argv = {"sh", "-c",
                 to_keeper("STOP") + to_supervisor("STOP") + "setsid sleep 300 & echo $!; wait"};
    spec.supervised = true;
    ProcessHandlers handlers;
    handlers.on_output = [&](bool, std::string_view bytes) {
      out += bytes;
      loop.post([&] {
        child.reset();
        done.set();
      });
    };
    auto started = ChildProcess::start(loop, spec, std::move(handlers));
    ASSERT_TRUE(started.ok());
    child = std::move(*started);
  });
  ASSERT_TRUE(loop.run_until(done, deadline_after(kPatience)));
  EXPECT_TRUE(ends(std::stoi(out))) << out;
}

TEST(ChildProcess, WhatStartsOthersAllTheTimeIsKilled) {
  if (std::system("perl -e 1") != 0) GTEST_SKIP() << "needs perl";
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  ShellRun run("echo $PPID > " + limit.file("cgroup.procs") + "; echo $$ > " +
                   limit.file("cgroup.procs") + "; echo 130 > " + limit.file("pids.max") +
                   "; exec perl -e 'use POSIX; $| = 1; while (1) { my $p = fork; if (!defined $p) "
                   "{ print \"full\\n\" unless $full++; } elsif ($p == 0) { setsid(); %ENV = (); } "
                   "select(undef, undef, undef, 0.002) }'",
               {.supervised = true, .end_at = "full"});
  EXPECT_EQ(run.cause.signal, SIGKILL);
  EXPECT_LE(limit.count(), 1) << "are left, but for a supervisor that is not waited for yet";
  EXPECT_TRUE(support::eventually([&] { return limit.count() == 0; }));
}

TEST(ChildProcess, WhatLeftItsGroupHasItsTimeToEnd) {
  ShellRun run("export first=$$; setsid sh -c 'trap \"" + kCleanUp +
                   "; exit 0\" TERM; echo ready; while :; do sleep 0.05; done' & wait",
               {.supervised = true, .end_at = "ready", .grace = kPatience / 2});
  EXPECT_EQ(run.out, "ready\ncleaned up\n");
  EXPECT_EQ(run.cause.signal, SIGTERM);
  // And not more than that.
  ShellRun stubborn("setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & wait",
                    {.supervised = true, .end_at = "\n", .grace = milliseconds(300)});
  EXPECT_TRUE(ends(std::stoi(stubborn.out))) << stubborn.out;
}

TEST(ChildProcess, IsItsOwnPidAndGroupWhereItIsSupervised) {
  ShellRun run("echo $$; ps -o pgid= -p $$ | tr -d ' '; ls /proc/self/fd | wc -l",
               {.supervised = true});
  std::istringstream lines(run.out);
  int pid = 0, group = 0, descriptors = 0;
  lines >> pid >> group >> descriptors;
  EXPECT_EQ(pid, run.cause.pid);
  EXPECT_EQ(group, pid);
  EXPECT_EQ(descriptors, 4);
}

TEST(ChildProcess, DestroyingKillsTheGroup) {
  EventLoop loop;
  Event done(loop);
  int pid = 0;
  loop.post([&] {
    ProcessSpec spec;
    spec.program = "sleep";
    spec.argv = {"sleep", "300"};
    auto started = ChildProcess::start(loop, spec, {});
    ASSERT_TRUE(started.ok());
    pid = (*started)->pid();
    EXPECT_TRUE(exists(pid));
    started->reset();
    done.set();
  });
  ASSERT_TRUE(loop.run_until(done, deadline_after(kPatience)));
  EXPECT_FALSE(exists(pid));
}

TEST(ChildProcess, SaysWhatCannotBeRun) {
  EventLoop loop;
  Event done(loop);
  loop.post([&] {
    ProcessSpec spec;
    spec.program = "/nowhere/program";
    spec.argv = {"program"};
    auto started = ChildProcess::start(loop, spec, {});
    EXPECT_EQ(started.status().code(), ErrorCode::kNotFound);
    EXPECT_NE(started.status().message().find("/nowhere/program"), std::string::npos);
    spec.program = "true";
    spec.working_dir = "/no/such/folder";
    started = ChildProcess::start(loop, spec, {});
    EXPECT_EQ(started.status().code(), ErrorCode::kNotFound);
    EXPECT_NE(started.status().message().find("/no/such/folder"), std::string::npos);
    done.set();
  });
  ASSERT_TRUE(loop.run_until(done, deadline_after(kPatience)));
}

TEST(ChildProcess, HasACleanStart) {
  // Standard descriptors and the one ls opens, nothing inherited; SIGPIPE at its default; its own
  // process group.
  ::signal(SIGPIPE, SIG_IGN);
  ShellRun run(
      "ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status; ps -o pgid= -p $$ | tr -d ' '; "
      "echo $$");
  std::istringstream lines(run.out);
  std::string fds, ignored, group, pid;
  std::getline(lines, fds);
  std::getline(lines, ignored);
  std::getline(lines, group);
  std::getline(lines, pid);
  EXPECT_EQ(fds, "4");
  // Only this signal's bit: what the C library keeps for itself (32, 33) may be ignored by the
  // tests' parent.
  const auto mask = std::stoull(ignored.substr(ignored.find(':') + 1), nullptr, 16);
  EXPECT_EQ(mask >> (SIGPIPE - 1) & 1, 0u) << ignored;
  EXPECT_EQ(group, pid);
}

}  // namespace
}  // namespace runtime
