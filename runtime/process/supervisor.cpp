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

#include "runtime/process/process_tree.h"

namespace runtime {

namespace {

// Descriptors of the supervisor.
constexpr int kOrders = 0;
constexpr int kSignals = 1;

// Between two looks for what is left, should a change between them have been missed.
constexpr int kLookMs = 100;
constexpr int kRoundPauseMs = 5;

// A supervisor that was told to kill everything has so long before its keeper does it.
constexpr int kSupervisorLooks = 200;
constexpr int kSupervisorLookMs = 10;

/// Calls `visit` for each of this process's children, of which new ones may come meanwhile.
template <class Visit>
void for_each_child(Visit visit) {
  if (!is_own_proc()) return;
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

/// Of the program, or of the program's supervisor: its keeper then.
class Supervisor {
 public:
  /// `keeper`: this process's parent; 0: this is the keeper. Without signals it looks for ends from
  /// time to time.
  Supervisor(pid_t child, pid_t keeper, bool has_signals)
      : child_(child), keeper_(keeper), has_signals_(has_signals) {}

  [[noreturn]] void run() {
    for (;;) {
      reap();
      take_orders();
      if (has_ended_ && (!waits_ || !has_others())) end();
      wait();
    }
  }

 private:
  bool is_keeper() const { return keeper_ == 0; }

  /// But for the child itself: its group's number stays taken.
  void reap() {
    siginfo_t ended{};
    if (!has_ended_) {
      const int failed =
          ::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT);
      has_ended_ = failed != 0 ? errno == ECHILD : ended.si_pid == child_;
      code_ = failed != 0 ? CLD_EXITED : ended.si_code;
      status_ = failed != 0 ? 127 : ended.si_status;
    }
    // The program may have stopped its supervisor, which tells this process by SIGCHLD.
    if (is_keeper() && !has_ended_) ::kill(child_, SIGCONT);
    for_each_child([this](pid_t child) {
      if (child != child_) ::waitpid(child, nullptr, WNOHANG);
    });
  }

  bool has_others() const {
    bool any = false;
    for_each_child([&](pid_t child) { any |= child != child_; });
    return any;
  }

  void wait() {
    // An order to wait stays in the socket, for the other process to read.
    const auto awaited = static_cast<short>(waits_ ? POLLRDHUP : POLLIN | POLLRDHUP);
    std::array<pollfd, 2> sources{
        {{kOrders, awaited, 0}, {has_signals_ ? kSignals : -1, POLLIN, 0}}};
    const bool looks = has_ended_ || waits_ || !has_signals_;
    if (::poll(sources.data(), sources.size(), looks ? kLookMs : -1) < 0) return;
    if (signalfd_siginfo told; sources[1].revents & POLLIN)
      (void)!::read(kSignals, &told, sizeof told);
  }

  /// What the node has said by now; it does so before it sends a signal.
  void take_orders() {
    pollfd node{kOrders, POLLRDHUP, 0};
    if (::poll(&node, 1, 0) > 0) end();
    if (!is_keeper() && ::getppid() != keeper_) end();
    std::array<char, 16> said;
    const ssize_t count = ::recv(kOrders, said.data(), said.size(), MSG_DONTWAIT | MSG_PEEK);
    for (ssize_t i = 0; i < count; ++i) {
      if (said[static_cast<std::size_t>(i)] != static_cast<char>(SupervisorOrder::kWait)) end();
      waits_ = true;
    }
  }

  /// The supervisor kills all below it, and knows how the program has ended.
  void await_supervisor() {
    for (int look = 0; look < kSupervisorLooks && !has_ended_; ++look) {
      ::poll(nullptr, 0, kSupervisorLookMs);
      reap();
    }
  }

  // A killed process leaves its children to this process.
  void kill_all() {
    reap();
    if (has_ended_ && !has_others()) return;
    ProcessTree tree(::getpid());
    while (tree.kill_round() && !tree.is_stuck()) {
      reap();
      ::poll(nullptr, 0, kRoundPauseMs);
    }
    reap();
  }

  [[noreturn]] void end() {
    if (is_keeper())
      await_supervisor();
    else
      ::kill(-child_, SIGKILL);
    kill_all();
    // Where no init reaps what is left to it, in a container say, each job would leave an entry.
    if (is_keeper()) ::waitpid(child_, nullptr, WNOHANG);
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

  const pid_t child_;
  const pid_t keeper_;
  const bool has_signals_;
  bool has_ended_ = false;
  bool waits_ = false;
  int code_ = 0;    // how it ended: CLD_EXITED or another
  int status_ = 0;  // its exit code, or the signal
};

/// `child`, `keeper`: as Supervisor's.
[[noreturn]] void run_supervisor(pid_t child, pid_t keeper, int orders) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::dup2(orders, kOrders);
  ::syscall(SYS_close_range, 1u, ~0u, 0u);  // first: there may be no descriptor left
  sigset_t of_children;
  ::sigemptyset(&of_children);
  ::sigaddset(&of_children, SIGCHLD);
  // The keeper's end is told in the same way.
  if (keeper != 0) ::prctl(PR_SET_PDEATHSIG, SIGCHLD, 0, 0, 0);
  Supervisor(child, keeper, ::signalfd(-1, &of_children, 0) == kSignals).run();
}

}  // namespace

void adopt_orphans() {
  ::signal(SIGCHLD, SIG_DFL);  // children that no thread waits for would be gone with SIG_IGN
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void supervise(pid_t program, pid_t keeper, int orders) { run_supervisor(program, keeper, orders); }

void keep_supervisor(pid_t supervisor, int orders) { run_supervisor(supervisor, 0, orders); }

}  // namespace runtime
