#include "runtime/process/daemon.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "runtime/core/printable_text.h"
#include "runtime/process/pipe.h"
#include "runtime/process/spawn.h"

namespace runtime {

namespace {

// The report on the pipe begins with one of these.
constexpr char kUp = '+';
constexpr char kFailed = '-';
constexpr int kReportDescriptor = 3;  // in the background process

void write_answer(int fd, const std::string& answer) {
  const std::string text = terminal_text(fd, answer);
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t put = ::write(fd, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    done += static_cast<std::size_t>(put);
  }
}

std::string read_all(int fd) {
  std::string text;
  char block[4096];
  while (true) {
    ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

int print_failure(const Status& status) {
  std::fprintf(stderr, "error: %s\n", printable_text(status.message()).c_str());
  return 1;
}

}  // namespace

void StartReport::up(const std::string& text) {
  write_answer(background_ ? pipe_.get() : 1, (background_ ? std::string(1, kUp) : "") + text);
  pipe_.reset();
}

void StartReport::failed(const Status& why) {
  std::string text = "error: " + why.message() + "\n";
  write_answer(background_ ? pipe_.get() : 2, (background_ ? std::string(1, kFailed) : "") + text);
  pipe_.reset();
}

int run_in_background(const std::function<int(StartReport& report)>& body) {
  Result<Pipe> pipe = make_pipe();
  if (!pipe.ok()) return print_failure(pipe.status());
  // What waits for an inherited pipe to close must not wait for the daemon's end: only 0 to 2 and
  // the report stay.
  ChildSetup setup;
  setup.group = ProcessGroup::kSession;
  setup.ignored_signals = {SIGHUP};
  setup.descriptors = {{pipe->write.get(), kReportDescriptor}};
  setup.closes_others = true;
  Result<SpawnedProcess> child = fork_process(setup, [&] {
    pipe->read.release();
    pipe->write.release();
    ::fcntl(kReportDescriptor, F_SETFD, FD_CLOEXEC);
    StartReport report{FileDescriptor(kReportDescriptor)};
    return body(report);
  });
  if (!child.ok()) return print_failure(child.status());
  pipe->write.reset();
  std::string report = read_all(pipe->read.get());
  if (!report.empty() && report[0] == kUp) {
    const std::string text = terminal_text(STDOUT_FILENO, report.substr(1));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    child->release();
    return 0;
  }
  const DeathCause cause = child->reap();
  if (report.empty())
    report = "-error: the background process " + cause.text + " before it was up\n";
  const std::string text = terminal_text(STDERR_FILENO, report.substr(1));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return 1;
}

int run_below_init(const std::function<int()>& body) {
  // Those that process 1 neither handles nor blocks do not reach it.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  ChildSetup setup;
  setup.signal_mask = before;
  Result<SpawnedProcess> started = fork_process(setup, body);
  if (!started.ok()) return print_failure(started.status());
  const pid_t child = started->release();
  for (;;) {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    siginfo_t told{};
    // A terminal sends its signals to both.
    if (::sigwaitinfo(&all, &told) > 0 && told.si_signo != SIGCHLD && told.si_code <= 0)
      ::kill(child, told.si_signo);
  }
}

Status redirect_output(const std::string& file) {
  FileDescriptor log(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return errno_status(errno, "opening log " + file);
  FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return errno_status(errno, "/dev/null");
  std::fflush(nullptr);
  ::dup2(null.get(), 0);
  ::dup2(log.get(), 1);
  ::dup2(log.get(), 2);
  return {};
}

}  // namespace runtime
