#include "runtime/process/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>

namespace runtime {

namespace {

// Descriptors of the supervisor.
constexpr int kOrders = 0;
constexpr int kSignals = 1;

// Between two looks for what is left, should a change between them have been missed.
constexpr int kLookMs = 100;

// What ignores SIGKILL for longer, in the kernel or as another user, is given up.
constexpr int kKillRounds = 200;
constexpr int kKillPauseMs = 10;

/// Calls `visit` for each of this process's children, of which new ones may come meanwhile.
template <class Visit>
void for_each_child(Visit visit) {
  // It has one thread.
  const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 4096> text;
  std::size_t held = 0;
  for (;;) {
    const ssize_t got = ::read(file, text.data() + held, text.size() - held);
    if (got <= 0) break;
    const std::string_view read(text.data(), held + static_cast<std::size_t>(got));
    std::size_t at = 0;
    for (std::size_t space; (space = read.find(' ', at)) != read.npos; at = space + 1) {
      pid_t child = 0;
      std::from_chars(read.data() + at, read.data() + space, child);
      if (child > 0) visit(child);
    }
    held = read.size() - at;
    for (std::size_t i = 0; i < held; ++i) text[i] = text[at + i];
  }
  ::close(file);
}

class Supervisor {
 public:
  /// Without signals it looks for ends from time to time.
  Supervisor(pid_t program, bool has_signals) : program_(program), has_signals_(has_signals) {}

  [[noreturn]] void run() {
    for (;;) {
      reap();
      take_orders();
      if (has_ended_ && (!waits_ || !has_others())) end();
      wait();
    }
  }

 private:
  /// But for the program itself: its group's number stays taken.
  void reap() {
    siginfo_t ended{};
    if (!has_ended_) {
      const int failed =
          ::waitid(P_PID, static_cast<id_t>(program_), &ended, WEXITED | WNOHANG | WNOWAIT);
      has_ended_ = failed != 0 ? errno == ECHILD : ended.si_pid == program_;
      code_ = failed != 0 ? CLD_EXITED : ended.si_code;
      status_ = failed != 0 ? 127 : ended.si_status;
    }
    for_each_child([this](pid_t child) {
      if (child != program_) ::waitpid(child, nullptr, WNOHANG);
    });
  }

  bool has_others() const {
    bool any = false;
    for_each_child([&](pid_t child) { any |= child != program_; });
    return any;
  }

  void wait() {
    std::array<pollfd, 2> sources{
        {{kOrders, POLLIN, 0}, {has_signals_ ? kSignals : -1, POLLIN, 0}}};
    const bool looks = has_ended_ || !has_signals_;
    if (::poll(sources.data(), sources.size(), looks ? kLookMs : -1) < 0) return;
    if (signalfd_siginfo told; sources[1].revents & POLLIN)
      (void)!::read(kSignals, &told, sizeof told);
  }

  /// What the node has said by now; it does so before it sends a signal.
  void take_orders() {
    char order = 0;
    for (;;) {
      const ssize_t got = ::recv(kOrders, &order, 1, MSG_DONTWAIT);
      if (got < 0) return;
      if (got == 0 || order != static_cast<char>(SupervisorOrder::kWait)) end();
      waits_ = true;
    }
  }

  // Whoever is killed leaves its children to this process, which kills them in the next round.
  void kill_all() {
    for (int round = 0; round < kKillRounds; ++round) {
      bool any = false;
      for_each_child([&](pid_t child) {
        if (child == program_ && has_ended_) return;
        any = true;
        ::kill(child, SIGKILL);
      });
      reap();
      if (!any) return;
      if (round > 0) ::poll(nullptr, 0, kKillPauseMs);
    }
  }

  [[noreturn]] void end() {
    ::kill(-program_, SIGKILL);
    kill_all();
    if (code_ == CLD_EXITED) ::_exit(status_);
    const int number = status_ != 0 ? status_ : SIGKILL;
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no core of this process
    ::signal(number, SIG_DFL);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, number);
    ::kill(::getpid(), number);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::_exit(128 + number);
  }

  const pid_t program_;
  const bool has_signals_;
  bool has_ended_ = false;
  bool waits_ = false;
  int code_ = 0;    // how it ended: CLD_EXITED or another
  int status_ = 0;  // its exit code, or the signal
};

}  // namespace

void adopt_orphans() {
  ::signal(SIGCHLD, SIG_DFL);  // children that nobody waits for would be gone with SIG_IGN
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void supervise(pid_t program, int orders) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::dup2(orders, kOrders);
  ::syscall(SYS_close_range, 1u, ~0u, 0u);  // first: there may be no descriptor left
  sigset_t of_children;
  ::sigemptyset(&of_children);
  ::sigaddset(&of_children, SIGCHLD);
  Supervisor(program, ::signalfd(-1, &of_children, 0) == kSignals).run();
}

}  // namespace runtime
