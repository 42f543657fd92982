// Runs programs for tests.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace runtime::test {

struct CommandResult {
  int exit_code = -1;  // -1: died of a signal
  std::string output;  // stdout and stderr
};

/// A program that runs next to the test, with its output in a file. Killed at the latest when this
/// goes.
class Command {
 public:
  explicit Command(std::vector<std::string> argv) {
    int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    std::vector<char*> arguments;
    for (std::string& argument : argv) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(fd, STDOUT_FILENO);
      ::dup2(fd, STDERR_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(fd);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }

  pid_t pid() const { return pid_; }
  std::string output() const {
    std::ifstream file(path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void signal(int number) { ::kill(pid_, number); }

  CommandResult wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output()};
  }

 private:
  support::TemporaryFolder folder_;
  std::string path_ = folder_.file("output");
  pid_t pid_ = 0;
};

inline CommandResult run(std::vector<std::string> argv) { return Command(std::move(argv)).wait(); }

}  // namespace runtime::test
