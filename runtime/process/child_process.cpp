#include "runtime/process/child_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "runtime/core/descriptor_limit.h"
#include "runtime/core/simulation.h"
#include "runtime/core/timer.h"
#include "runtime/process/process_info.h"
#include "runtime/process/supervisor.h"
#include "runtime/transport/file_descriptor.h"

extern char** environ;

namespace runtime {

namespace {

// How long after the end of a process its pipes may still be held open by others before they are
// given up.
constexpr auto kDrainMax = std::chrono::milliseconds(200);

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Status open_pipe(Pipe& pipe) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return errno_status(errno, "making a pipe");
  pipe.read.reset(fds[0]);
  pipe.write.reset(fds[1]);
  return {};
}

/// The node's way to a supervisor.
Status open_orders(Pipe& pipe) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return errno_status(errno, "making a socket");
  pipe.read.reset(fds[0]);
  pipe.write.reset(fds[1]);
  return {};
}

/// A file in memory, so that nobody has to feed a pipe.
Result<FileDescriptor> open_input(const std::string& bytes) {
  if (bytes.empty()) {
    FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return errno_status(errno, "/dev/null");
    return null;
  }
  FileDescriptor file(::memfd_create("stdin", MFD_CLOEXEC));
  if (!file) return errno_status(errno, "making its stdin");
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errno_status(errno, "filling its stdin");
    done += static_cast<std::size_t>(put);
  }
  return file;
}

/// This process's environment, or that of a user who has just logged in, with `additions` over it.
std::vector<std::string> merged_environment(const std::vector<std::string>& additions,
                                            const std::optional<JobUser>& user) {
  std::map<std::string, std::string> variables;
  auto add = [&](const std::string& line) {
    std::size_t equals = line.find('=');
    if (equals != std::string::npos && equals > 0) variables[line.substr(0, equals)] = line;
  };
  if (user) {
    for (const char* line :
         {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=", "USER=", "LOGNAME=", "SHELL="})
      add(line);
    variables["HOME"] += user->home;
    variables["USER"] += user->name;
    variables["LOGNAME"] += user->name;
    variables["SHELL"] += user->shell;
  } else {
    for (char** line = environ; line && *line; ++line) add(*line);
  }
  for (const std::string& line : additions) add(line);
  std::vector<std::string> merged;
  for (auto& [name, line] : variables) merged.push_back(std::move(line));
  return merged;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// What the child tells its parent: the program's process, and why it cannot run the program.
struct ChildReport {
  enum class What { kStarted, kProgram, kWorkingDir, kUser };
  What what = What::kProgram;
  int value = 0;  // the program's pid; else errno
};

void report(int fd, ChildReport::What what, int value) {
  const ChildReport told{what, value};
  if (::write(fd, &told, sizeof told) != sizeof told) ::_exit(126);
}

/// The child's side of fork: nothing here may allocate or take a lock, since another thread may
/// have held one.
[[noreturn]] void run_child(const char* program, char* const* argv, char* const* env,
                            const char* working_dir, int in, int out, int err, int report_fd,
                            int orders, pid_t parent, const JobUser* user) {
  auto fail = [&](ChildReport::What what) {
    report(report_fd, what, errno);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  if (orders >= 0) {  // the supervisor is whoever may kill all of them
    adopt_orphans();
    parent = ::getpid();
    const pid_t program_pid = ::_Fork();
    if (program_pid < 0) fail(ChildReport::What::kProgram);
    if (program_pid > 0) {
      ::setpgid(program_pid, program_pid);
      report(report_fd, ChildReport::What::kStarted, program_pid);
      supervise(program_pid, orders);
    }
    ::setpgid(0, 0);
  }
  if (user && (::setgroups(user->groups.size(), user->groups.data()) != 0 ||
               ::setresgid(user->gid, user->gid, user->gid) != 0 ||
               ::setresuid(user->uid, user->uid, user->uid) != 0)) {
    fail(ChildReport::What::kUser);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);       // after the change of user, which undoes it
  if (::getppid() != parent) ::_exit(126);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  restore_descriptor_limit();  // Starling's own programs raise it again
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  if (working_dir && ::chdir(working_dir) != 0) fail(ChildReport::What::kWorkingDir);
  ::execvpe(program, argv, env);
  fail(ChildReport::What::kProgram);
  ::_exit(126);
}

}  // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

DeathCause death_cause(std::int32_t pid, int wait_status) {
  DeathCause cause;
  cause.pid = pid;
  if (WIFSIGNALED(wait_status)) {
    cause.signal = WTERMSIG(wait_status);
    cause.text = "killed by " + signal_name(cause.signal);
  } else {
    cause.exit_code = WEXITSTATUS(wait_status);
    cause.text = "exited with code " + std::to_string(cause.exit_code);
  }
  return cause;
}

namespace {

/// Shared by the handlers in flight; ends when the process is reaped and its pipes are at their
/// end.
struct ChildState : std::enable_shared_from_this<ChildState> {
  struct Stream {
    Stream(asio::io_context& context, FileDescriptor fd) : pipe(context, fd.release()) {}
    asio::posix::stream_descriptor pipe;
    std::array<char, 16384> block;
    bool open = true;
    bool reading = false;
  };

  ChildState(EventLoop& event_loop, pid_t process, FileDescriptor pidfd, FileDescriptor out,
             FileDescriptor err, ProcessHandlers process_handlers)
      : loop(event_loop),
        pid(process),
        exit_watch(loop.context(), pidfd.release()),
        timer(loop.context()),
        streams{Stream(loop.context(), std::move(out)), Stream(loop.context(), std::move(err))},
        handlers(std::move(process_handlers)) {}

  void watch() {
    for (int i = 0; i < 2; ++i) read(i);
    exit_watch.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](boost::system::error_code ec) {
                            if (!ec) self->reap();
                          });
  }

  void end(std::chrono::milliseconds grace) {
    if (grace.count() <= 0) return kill_now();
    if (supervisor_orders) {
      order(SupervisorOrder::kWait);
      ::kill(-program, SIGTERM);
      for (const pid_t started : processes_below(pid))
        if (::getpgid(started) != program) ::kill(started, SIGTERM);
    } else {
      ::kill(-program, SIGTERM);
    }
    timer.expires_after(grace);
    timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (!ec && !self->ended) self->kill_now();
    });
  }

  void kill_now() {
    ::kill(-program, SIGKILL);
    if (supervisor_orders) order(SupervisorOrder::kKill);
  }

  void order(SupervisorOrder what) const {
    const char byte = static_cast<char>(what);
    (void)!::send(supervisor_orders.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void read(int index) {
    Stream& stream = streams[index];
    if (paused || stream.reading || !stream.open) return;
    stream.reading = true;
    stream.pipe.async_read_some(
        asio::buffer(stream.block),
        [self = shared_from_this(), index](boost::system::error_code ec, std::size_t bytes) {
          self->on_read(index, ec, bytes);
        });
  }

  void on_read(int index, boost::system::error_code ec, std::size_t bytes) {
    Stream& stream = streams[index];
    stream.reading = false;
    if (abandoned) return;
    if (bytes > 0 && handlers.on_output)
      handlers.on_output(index == 1, std::string_view(stream.block.data(), bytes));
    if (ec) {
      stream.open = false;
      maybe_finish();
    } else {
      read(index);
    }
  }

  void reap() {
    if (ended) return;
    // What it left behind in its group; before it is reaped, while the number is surely its own.
    if (!supervisor_orders) ::kill(-pid, SIGKILL);
    int status = 0;
    pid_t reaped;
    do {
      reaped = ::waitpid(pid, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    ended = true;
    cause = reaped == pid ? death_cause(program, status)
                          : DeathCause{"ended unseen", program, -1, 0, ""};
    if (abandoned) return;
    // What is left fits the pipes; a reader that is slow, or hangs, must not keep the end from
    // being known.
    paused = false;
    for (int i = 0; i < 2; ++i) read(i);
    arm_drain();
    maybe_finish();
  }

  void arm_drain() {
    timer.expires_after(kDrainMax);
    timer.async_wait([self = shared_from_this()](boost::system::error_code ec) {
      if (ec) return;
      for (Stream& stream : self->streams) stream.open = false;
      self->maybe_finish();
    });
  }

  void maybe_finish() {
    if (!ended || finished || abandoned || streams[0].open || streams[1].open) return;
    finished = true;
    close_all();
    auto on_exit = std::move(handlers.on_exit);
    handlers = {};
    if (on_exit) on_exit(std::move(cause));
  }

  void close_all() {
    boost::system::error_code ignored;
    timer.cancel();
    for (Stream& stream : streams) stream.pipe.close(ignored);
    exit_watch.close(ignored);
  }

  EventLoop& loop;
  const pid_t pid;                   // this process's child: the program, or its supervisor
  pid_t program = pid;               // and its group
  FileDescriptor supervisor_orders;  // none: it has no supervisor
  asio::posix::stream_descriptor exit_watch;
  Timer timer;  // first the grace of end(), then the draining
  std::array<Stream, 2> streams;
  ProcessHandlers handlers;
  DeathCause cause;
  bool ended = false;      // reaped: the pid must not be used any more
  bool finished = false;   // on_exit ran
  bool abandoned = false;  // the owner is gone
  bool paused = false;
};

class ForkedProcess final : public ChildProcess {
 public:
  explicit ForkedProcess(std::shared_ptr<ChildState> state) : state_(std::move(state)) {}
  ~ForkedProcess() override;

  std::int32_t pid() const override { return state_->program; }
  bool running() const override { return !state_->ended; }
  void signal(int number) override;
  void end(std::chrono::milliseconds grace) override;
  void pause_output(bool paused) override;

 private:
  const std::shared_ptr<ChildState> state_;
};

ForkedProcess::~ForkedProcess() {
  state_->abandoned = true;
  state_->handlers = {};
  if (!state_->ended) {
    state_->kill_now();
    int status;
    while (::waitpid(state_->pid, &status, 0) < 0 && errno == EINTR) {
    }
    state_->ended = true;
  }
  state_->close_all();
}

void ForkedProcess::signal(int number) {
  if (!state_->ended) ::kill(-state_->program, number);
}

void ForkedProcess::end(std::chrono::milliseconds grace) {
  if (!state_->ended) state_->end(grace);
}

void ForkedProcess::pause_output(bool paused) {
  if (state_->ended) return;
  state_->paused = paused;
  if (!paused) {
    for (int i = 0; i < 2; ++i) state_->read(i);
  }
}

}  // namespace

namespace {

struct ChildReports {
  pid_t program = 0;  // under a supervisor
  std::optional<ChildReport> failure;
};

ChildReports read_reports(int fd) {
  ChildReports told;
  for (ChildReport report;;) {
    const ssize_t got = ::read(fd, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof report) return told;  // end of file: exec closed it
    if (report.what == ChildReport::What::kStarted)
      told.program = report.value;
    else
      told.failure = report;
  }
}

/// Of fork() and execve(): EAGAIN is a limit of processes there.
Status start_failure(int error, const ProcessSpec& spec) {
  const bool is_held = spec.program.starts_with("/proc/self/fd/") && !spec.argv.empty();
  const Status status =
      errno_status(error, "starting " + (is_held ? spec.argv.front() : spec.program));
  if (error != EAGAIN) return status;
  return resource_exhausted(status.message() +
                            " (no more processes may be started: ulimit -u, or the cgroup's "
                            "pids.max)");
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(EventLoop& loop, const ProcessSpec& spec,
                                                          ProcessHandlers handlers) {
  if (Simulation* simulated = simulation())
    return simulated->start_process(loop, spec, std::move(handlers));
  Pipe out, err, reports;
  for (Pipe* pipe : {&out, &err, &reports}) {
    if (Status status = open_pipe(*pipe); !status.ok())
      return status.with_context("starting " + spec.program);
  }
  Pipe orders;
  if (spec.supervised) {
    if (Status status = open_orders(orders); !status.ok())
      return status.with_context("starting " + spec.program);
  }
  auto input = open_input(spec.input);
  if (!input.ok()) return input.status().with_context("starting " + spec.program);
  std::vector<std::string> env = merged_environment(spec.env, spec.user);
  std::vector<char*> env_pointers = pointers(env);
  std::vector<char*> argv_pointers = pointers(spec.argv);
  const char* working_dir = spec.working_dir.empty() ? nullptr : spec.working_dir.c_str();
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return start_failure(errno, spec);
  if (pid == 0) {
    run_child(spec.program.c_str(), argv_pointers.data(), env_pointers.data(), working_dir,
              input->get(), out.write.get(), err.write.get(), reports.write.get(),
              orders.read ? orders.read.get() : -1, parent, spec.user ? &*spec.user : nullptr);
  }
  ::setpgid(pid, pid);  // both sides do it, so that it is done whoever runs first
  out.write.reset();
  err.write.reset();
  reports.write.reset();
  const ChildReports told = read_reports(reports.read.get());
  if (told.failure) {
    const ChildReport& why = *told.failure;
    ::waitpid(pid, nullptr, 0);
    if (why.value == E2BIG)
      return invalid_argument("starting " + spec.program +
                              ": its arguments or environment are too large: Linux takes up to 128 "
                              "KiB for each variable");
    if (why.what == ChildReport::What::kUser)
      return errno_status(why.value, "becoming user " + spec.user->name);
    return why.what == ChildReport::What::kWorkingDir
               ? errno_status(why.value, "working folder " + spec.working_dir)
               : start_failure(why.value, spec);
  }
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    Status status = errno_status(errno, "watching process " + std::to_string(pid));
    orders.write.reset();  // a supervisor ends by that
    if (!spec.supervised) ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return status;
  }
  auto state = std::make_shared<ChildState>(loop, pid, std::move(pidfd), std::move(out.read),
                                            std::move(err.read), std::move(handlers));
  state->supervisor_orders = std::move(orders.write);
  if (told.program != 0) state->program = told.program;
  state->watch();
  return std::unique_ptr<ChildProcess>(std::make_unique<ForkedProcess>(std::move(state)));
}

}  // namespace runtime
