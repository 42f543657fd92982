#include "runtime/process/orphan_keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "runtime/process/process_tree.h"

namespace runtime {

namespace {

constexpr unsigned kKillPauseUs = 1000;

/// Kills all below this process, of which those of one that dies become its children.
void end_children() {
  ProcessTree tree(::getpid());
  while (tree.kill_round() && !tree.is_stuck()) {
    ::usleep(kKillPauseUs);
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
