#include "runtime/process/daemon.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "runtime/core/printable_text.h"
#include "runtime/process/child_process.h"

namespace runtime {

namespace {

// The report on the pipe begins with one of these.
constexpr char kUp = '+';
constexpr char kFailed = '-';

void write_answer(int fd, const std::string& text) {
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
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "error: %s\n", errno_status(errno, "making a pipe").message().c_str());
    return 1;
  }
  FileDescriptor read_end(fds[0]), write_end(fds[1]);
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child < 0) {
    std::fprintf(stderr, "error: %s\n",
                 errno_status(errno, "starting a process").message().c_str());
    return 1;
  }
  if (child == 0) {
    ::setsid();
    ::signal(SIGHUP, SIG_IGN);
    // Whoever waits for an inherited pipe to close must not wait for the daemon's end: only 0 to 2
    // and the report stay.
    int report_fd = write_end.release();
    if (report_fd != 3) {
      ::dup3(report_fd, 3, O_CLOEXEC);
      report_fd = 3;
    }
    read_end.release();
    ::syscall(SYS_close_range, 4u, ~0u, 0u);
    StartReport report{FileDescriptor(report_fd)};
    int code = body(report);
    std::fflush(nullptr);
    std::_Exit(code);
  }
  write_end.reset();
  std::string report = read_all(read_end.get());
  if (!report.empty() && report[0] == kUp) {
    const std::string text = terminal_text(STDOUT_FILENO, report.substr(1));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return 0;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (report.empty())
    report =
        "-error: the background process " + death_cause(child, status).text + " before it was up\n";
  const std::string text = terminal_text(STDERR_FILENO, report.substr(1));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return 1;
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
