#include "runtime/process/spawned_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

#include "runtime/process/process_tree.h"

namespace runtime {

namespace {

// Between two looks at a child for which no descriptor was left to wait with.
constexpr std::chrono::milliseconds kChildLook{5};

// Supervisors that were told to kill everything, and how long they have for it.
constexpr std::chrono::milliseconds kSupervisorLook{50};
constexpr std::chrono::seconds kSupervisorsEnd{5};

DeathCause ended_unseen(pid_t pid) { return {"ended unseen", pid, -1, 0, ""}; }

/// How the child ended, without reaping it; none while it runs. `options`: WNOHANG or 0.
std::optional<DeathCause> peek(pid_t pid, int options) {
  siginfo_t info{};
  int failed;
  do {
    failed = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | options);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) return ended_unseen(pid);  // another part of the program has reaped it
  if (info.si_pid != pid) return std::nullopt;
  const bool exited = info.si_code == CLD_EXITED;
  return death_cause(pid, exited ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status));
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

SpawnedProcess::SpawnedProcess(pid_t pid, bool leads_group, Supervision supervision)
    : pid_(pid), leads_group_(leads_group), supervision_(std::move(supervision)) {}

Result<SpawnedProcess> SpawnedProcess::adopt(pid_t pid) {
  siginfo_t info{};
  if (pid <= 1 || ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return not_found("process " + std::to_string(pid) + " is not a child of this process");
  ::setpgid(pid, pid);  // it may do so too, and has to once it has executed a program
  return SpawnedProcess(pid, /*leads_group=*/::getpgid(pid) == pid);
}

SpawnedProcess::SpawnedProcess(SpawnedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      leads_group_(other.leads_group_),
      supervision_(std::move(other.supervision_)) {}

SpawnedProcess& SpawnedProcess::operator=(SpawnedProcess&& other) noexcept {
  if (this == &other) return *this;
  kill_and_reap();
  pid_ = std::exchange(other.pid_, 0);
  leads_group_ = other.leads_group_;
  supervision_ = std::move(other.supervision_);
  return *this;
}

SpawnedProcess::~SpawnedProcess() { kill_and_reap(); }

void SpawnedProcess::kill_and_reap() {
  if (pid_ <= 0) return;
  signal_group(SIGKILL);
  order(SupervisorOrder::kKill);
  Deadline patience = deadline_after(kSupervisorsEnd);
  while (is_supervised() && !(await_end(deadline_after(kSupervisorLook)) && !has_supervisor())) {
    resume_supervisors();
    if (steady_now() < patience) continue;
    kill_below();
    patience = deadline_after(kSupervisorsEnd);
  }
  reap();
}

void SpawnedProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void SpawnedProcess::signal_group(int number) const {
  if (pid_ > 0) ::kill(leads_group_ ? -program() : pid_, number);
}

void SpawnedProcess::order(SupervisorOrder what) const {
  const char byte = static_cast<char>(what);
  if (is_supervised())
    (void)!::send(supervision_.orders.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void SpawnedProcess::resume_supervisors() const {
  if (!is_supervised()) return;
  signal(SIGCONT);
  if (has_supervisor()) ::kill(supervision_.supervisor, SIGCONT);
}

// They alone have the other end.
bool SpawnedProcess::has_supervisor() const {
  pollfd other{supervision_.orders.get(), POLLRDHUP, 0};
  return is_supervised() && ::poll(&other, 1, 0) == 0;
}

void SpawnedProcess::kill_below() const {
  // Of a keeper that was killed its supervisor has taken all over.
  const bool has_keeper = !ended();
  if (!has_keeper && !has_supervisor()) return;
  const pid_t last = has_keeper ? pid_ : supervision_.supervisor;
  if (ProcessTree(last).kill_all()) ::kill(last, SIGKILL);
}

Result<FileDescriptor> SpawnedProcess::watch() const {
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd) return errno_status(errno, "watching process " + std::to_string(pid_));
  return pidfd;
}

std::optional<DeathCause> SpawnedProcess::ended() const { return peek(pid_, WNOHANG); }

bool SpawnedProcess::await_end(Deadline deadline) const {
  if (deadline == Deadline::max()) return peek(pid_, 0).has_value();
  const Result<FileDescriptor> pidfd = watch();
  while (!ended()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now());
    if (left.count() <= 0) return false;
    pollfd end{pidfd.ok() ? pidfd->get() : -1, POLLIN, 0};
    const auto wait = pidfd.ok() ? left : std::min(left, kChildLook);
    ::poll(&end, 1, static_cast<int>(std::min<std::int64_t>(wait.count(), INT_MAX)));
  }
  return true;
}

DeathCause SpawnedProcess::reap() {
  const pid_t shown = program();
  const pid_t pid = std::exchange(pid_, 0);
  int status = 0;
  pid_t reaped;
  do {
    reaped = ::waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  return reaped == pid ? death_cause(shown, status) : ended_unseen(shown);
}

std::optional<DeathCause> SpawnedProcess::reap_until(Deadline deadline) {
  if (!await_end(deadline)) return std::nullopt;
  return reap();
}

pid_t SpawnedProcess::release() { return std::exchange(pid_, 0); }

}  // namespace runtime
