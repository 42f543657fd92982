#include "runtime/process/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/descriptor_limit.h"
#include "runtime/process/pipe.h"
#include "runtime/process/supervisor.h"

extern char** environ;

namespace runtime {

namespace {

/// For execve(): the strings have to stay.
std::vector<char*> string_pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Of this thread, while a child starts: a handler of this process must not run in the child.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

/// What the child tells its parent: the program's process, and why it cannot run the program.
struct ChildReport {
  enum class What { kSupervisor, kStarted, kDescriptors, kProgram, kWorkingDir, kUser };
  What what = What::kProgram;
  int value = 0;  // the pid of that process; else errno
};

struct ChildReports {
  pid_t supervisor = 0;
  pid_t program = 0;  // under a supervisor
  std::optional<ChildReport> failure;
};

/// All that the child reads, made before it is.
struct SpawnPlan {
  const SpawnSpec& spec;
  std::vector<char*> argv;
  std::vector<char*> environment;
  PreparedChild child;
  int report = -1;
  int orders = -1;  // what the supervisor reads; -1: none
};

void report(const SpawnPlan& plan, ChildReport::What what, int value) {
  const ChildReport told{what, value};
  if (::write(plan.report, &told, sizeof told) != sizeof told) ::_exit(126);
}

[[noreturn]] void fail(const SpawnPlan& plan, ChildReport::What what) {
  report(plan, what, errno);
  ::_exit(127);
}

/// Returns in the program's process. This one becomes the keeper of its supervisor. Nothing of the
/// program runs before both have closed what the parent reads: it could stop them before.
void continue_under_supervisor(SpawnPlan& plan) {
  std::array<int, 2> ready;
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) fail(plan, ChildReport::What::kDescriptors);
  adopt_orphans();
  const pid_t keeper = ::getpid();
  const pid_t supervisor = ::_Fork();
  if (supervisor < 0) fail(plan, ChildReport::What::kProgram);
  if (supervisor > 0) keep_supervisor(supervisor, plan.orders);
  ::setpgid(0, 0);
  adopt_orphans();
  report(plan, ChildReport::What::kSupervisor, ::getpid());
  plan.child.set_parent(::getpid());
  const pid_t program = ::_Fork();
  if (program < 0) fail(plan, ChildReport::What::kProgram);
  if (program > 0) supervise(program, keeper, plan.orders);
  plan.child.join_group();
  report(plan, ChildReport::What::kStarted, ::getpid());
  ::close(ready[1]);
  for (char none = 0; ::read(ready[0], &none, 1) < 0 && errno == EINTR;) {
  }
  ::close(ready[0]);
}

/// The child's side. Nothing here may allocate or take a lock, since another thread may have held
/// one. Nor may it change what the parent still reads, since its memory may be shared.
[[noreturn, gnu::noinline]] void run_child(SpawnPlan& plan) {
  const SpawnSpec& spec = plan.spec;
  plan.child.join_group();
  if (plan.orders >= 0) continue_under_supervisor(plan);  // which may kill all of them
  if (spec.user && (::setgroups(spec.user->groups.size(), spec.user->groups.data()) != 0 ||
                    ::setresgid(spec.user->gid, spec.user->gid, spec.user->gid) != 0 ||
                    ::setresuid(spec.user->uid, spec.user->uid, spec.user->uid) != 0)) {
    fail(plan, ChildReport::What::kUser);
  }
  plan.child.ask_for_death_signal();
  plan.child.set_signals(/*for_program=*/true);
  plan.child.set_mask();
  if (spec.restores_descriptor_limit) restore_descriptor_limit();
  if (!plan.child.map_descriptors(plan.report)) fail(plan, ChildReport::What::kDescriptors);
  plan.child.close_others(/*at_exec=*/true);
  if (!spec.working_dir.empty() && ::chdir(spec.working_dir.c_str()) != 0)
    fail(plan, ChildReport::What::kWorkingDir);
  ::execvpe(spec.program.c_str(), plan.argv.data(), plan.environment.data());
  fail(plan, ChildReport::What::kProgram);
}

/// vfork(): the child has the parent's memory, and this thread waits, until it executes a program.
/// Not for a child that becomes another user. The kernel would take that for a change of this
/// process, whose memory it protects from then on. Nor under a supervisor, which stays a copy. Its
/// own frame, and one for run_child(): the child may write to nothing that is live here.
[[gnu::noinline]] pid_t start_child(SpawnPlan& plan) {
  const bool copies_memory = plan.spec.user.has_value() || plan.orders >= 0;
  const pid_t pid = copies_memory ? ::fork() : ::vfork();
  if (pid == 0) run_child(plan);
  return pid;
}

ChildReports read_reports(int fd) {
  ChildReports told;
  for (ChildReport report;;) {
    const ssize_t got = ::read(fd, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof report) return told;  // end of file: exec closed it
    switch (report.what) {
      case ChildReport::What::kSupervisor: told.supervisor = report.value; break;
      case ChildReport::What::kStarted: told.program = report.value; break;
      default: told.failure = report;
    }
  }
}

/// By the name that people know, if the program is an open file.
const std::string& shown_program(const SpawnSpec& spec) {
  const bool is_held = spec.program.starts_with("/proc/self/fd/") && !spec.argv.empty();
  return is_held ? spec.argv.front() : spec.program;
}

/// Of fork() and execve(): EAGAIN is a limit of processes there.
Status start_failure(int error, const std::string& what) {
  const Status status = errno_status(error, "starting " + what);
  if (error != EAGAIN) return status;
  return resource_exhausted(status.message() +
                            " (no more processes may be started: ulimit -u, or the cgroup's "
                            "pids.max)");
}

Status start_failure(int error, const SpawnSpec& spec) {
  if (error == E2BIG)
    return invalid_argument("starting " + spec.program +
                            ": its arguments or environment are too large: Linux takes up to 128 "
                            "KiB for each variable");
  return start_failure(error, shown_program(spec));
}

Status working_folder_failure(int error, const SpawnSpec& spec) {
  const Status status = errno_status(error, "working folder " + spec.working_dir);
  if (error != EACCES || !spec.user) return status;
  return Status(status.code(), status.message() + " (user " + spec.user->name +
                                   " may not enter it, or a folder above it: chmod o+x)");
}

Status report_failure(const ChildReport& why, const SpawnSpec& spec) {
  switch (why.what) {
    case ChildReport::What::kUser:
      return errno_status(why.value, "becoming user " + spec.user->name);
    case ChildReport::What::kWorkingDir: return working_folder_failure(why.value, spec);
    case ChildReport::What::kDescriptors:
      return errno_status(why.value, "starting " + shown_program(spec) + ": its descriptors");
    case ChildReport::What::kSupervisor:
    case ChildReport::What::kStarted:
    case ChildReport::What::kProgram: break;
  }
  return start_failure(why.value, spec);
}

}  // namespace

Result<SpawnedProcess> spawn_process(const SpawnSpec& spec) {
  CHECK(!spec.supervised || spec.setup.group == ProcessGroup::kOwn);
  Result<Pipe> reports = make_pipe();
  Result<SocketPair> orders = spec.supervised && reports.ok() ? make_socket_pair() : SocketPair{};
  for (const Status& status : {reports.status(), orders.status()}) {
    if (!status.ok()) return status.with_context("starting " + shown_program(spec));
  }
  pid_t pid;
  int error;
  {
    const SignalsHeld held;
    SpawnPlan plan{
        .spec = spec,
        .argv = string_pointers(spec.argv),
        .environment = spec.environment ? string_pointers(*spec.environment) : std::vector<char*>(),
        .child = PreparedChild(spec.setup, held.before()),
        .report = reports->write.get(),
        .orders = spec.supervised ? orders->theirs.get() : -1};
    if (!spec.environment) {
      for (char** line = environ; line != nullptr && *line != nullptr; ++line)
        plan.environment.push_back(*line);
      plan.environment.push_back(nullptr);
    }
    pid = start_child(plan);
    error = errno;
  }
  if (pid < 0) return start_failure(error, spec);
  const bool leads_group = spec.setup.group != ProcessGroup::kInherited;
  // Both sides do it, so that it is done whichever runs first.
  if (spec.setup.group == ProcessGroup::kOwn) ::setpgid(pid, pid);
  reports->write.reset();
  const ChildReports told = read_reports(reports->read.get());
  SpawnedProcess process(pid, leads_group,
                         Supervision{told.supervisor, told.program, std::move(orders->ours)});
  if (!told.failure) return process;
  process.reap();
  return report_failure(*told.failure, spec);
}

Result<SpawnedProcess> fork_process(const ChildSetup& setup, const std::function<int()>& body) {
  std::fflush(nullptr);  // else both would write it
  pid_t pid;
  int error;
  {
    const SignalsHeld held;
    PreparedChild child(setup, held.before());
    pid = ::fork();
    error = errno;
    if (pid == 0) {
      int none = -1;
      child.join_group();
      child.ask_for_death_signal();
      child.set_signals(/*for_program=*/false);
      if (!child.map_descriptors(none)) ::_exit(126);
      child.close_others(/*at_exec=*/false);
      child.set_mask();
      const int code = body();
      std::fflush(nullptr);
      std::_Exit(code);
    }
  }
  if (pid < 0) return start_failure(error, "a process");
  if (setup.group == ProcessGroup::kOwn) ::setpgid(pid, pid);
  return SpawnedProcess(pid, setup.group != ProcessGroup::kInherited);
}

Status replace_program(const std::string& program, const std::vector<std::string>& argv) {
  std::vector<char*> pointers = string_pointers(argv);
  std::fflush(nullptr);
  ::execv(program.c_str(), pointers.data());
  return errno_status(errno, program);
}

}  // namespace runtime
