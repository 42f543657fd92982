#include "runtime/process/orphan_keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace runtime {

namespace {

/// Kills the children of this process until it has none: those of one that dies become this one's.
void end_children() {
  while (true) {
    std::error_code error;
    for (auto entry = std::filesystem::directory_iterator("/proc", error);
         !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const pid_t process = std::atoi(entry->path().filename().c_str());
      std::ifstream file(entry->path() / "stat");
      std::string stat;
      if (process <= 0 || !std::getline(file, stat)) continue;
      const std::size_t end = stat.rfind(')');  // "PID (NAME) STATE PARENT ..."
      if (end != std::string::npos && end + 4 < stat.size() &&
          std::atoi(stat.c_str() + end + 4) == ::getpid())
        ::kill(process, SIGKILL);
    }
    if (::waitpid(-1, nullptr, 0) < 0) return;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}

}  // namespace

void continue_in_child(int connection) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return;
  const pid_t child = ::fork();
  if (child <= 0) return;
  for (const int number : {SIGIO, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2})
    ::signal(number, SIG_IGN);
  ::close(connection);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int descriptor : {1, 2}) ::dup2(nowhere, descriptor);
  int status = 0;
  for (pid_t ended = 0; ended != child; ended = ::waitpid(-1, &status, 0)) {
  }
  end_children();
  if (WIFSIGNALED(status)) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(WTERMSIG(status), SIG_DFL);
    ::kill(::getpid(), WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

}  // namespace runtime
