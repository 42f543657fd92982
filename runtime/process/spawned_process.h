// SpawnedProcess: the owner of a child process, which signals it and waits for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/clock.h"
#include "runtime/core/result.h"
#include "runtime/process/death_cause.h"
#include "runtime/process/supervisor.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// What stands between this process and a program (SpawnSpec::supervised): its supervisor, and that
/// one's keeper, the child.
struct Supervision {
  pid_t supervisor = 0;   // the keeper's child
  pid_t program = 0;      // the supervisor's child; it leads a group
  FileDescriptor orders;  // all ends when it closes
};

/// A resource: of one child process, that nothing else waits for. The child's number stays taken
/// until reap(). One thread at a time, but await_end(), which others may signal meanwhile.
class SpawnedProcess {
 public:
  /// Owns nothing.
  SpawnedProcess() = default;
  /// Takes over a child of this process. `leads_group`: its number is also that of its group.
  SpawnedProcess(pid_t pid, bool leads_group, Supervision supervision = {});
  /// Takes over a child that another process made for this one (CLONE_PARENT), and has it lead a
  /// group if it still can. Errors: kNotFound, there is no such child.
  static Result<SpawnedProcess> adopt(pid_t pid);
  SpawnedProcess(SpawnedProcess&& other) noexcept;
  SpawnedProcess& operator=(SpawnedProcess&& other) noexcept;
  /// SIGKILL to a child that was not reaped, and to its group if it leads one; reaps it.
  ~SpawnedProcess();

  /// Whether it owns a child, which runs or waits to be reaped.
  explicit operator bool() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }  // 0: owns nothing
  /// The program's process: the child, or the supervisor's.
  pid_t program() const { return supervision_.program > 0 ? supervision_.program : pid_; }
  bool is_supervised() const { return static_cast<bool>(supervision_.orders); }

  /// To the child. None if it owns nothing.
  void signal(int number) const;
  /// To all of the program's group; to the child alone if it leads none.
  void signal_group(int number) const;
  /// To its supervisors, if it has them.
  void order(SupervisorOrder what) const;
  /// Its supervisors, which the program may have stopped, go on.
  void resume_supervisors() const;
  /// Whether a supervisor is left, which ends what the program has started: the child may end
  /// before.
  bool has_supervisor() const;
  /// Does the work of supervisors that do not: kills all below them, and those that do not end
  /// then. Takes a moment.
  void kill_below() const;

  /// A descriptor that is readable once the child has ended. Errors: kResourceExhausted,
  /// kInvalidArgument (the kernel has no such thing).
  Result<FileDescriptor> watch() const;
  /// How it ended, if it has; it still has to be reaped.
  std::optional<DeathCause> ended() const;
  /// Waits until it has ended; false: it has not by then.
  bool await_end(Deadline deadline = Deadline::max()) const;

  /// Waits for its end and frees its number. The group is left alone. Owns nothing afterwards.
  DeathCause reap();
  /// As reap(), if it ends by then; else nothing changes.
  std::optional<DeathCause> reap_until(Deadline deadline);
  /// Gives the child up: it may outlive this process. Returns its number.
  pid_t release();

 private:
  void kill_and_reap();

  pid_t pid_ = 0;
  bool leads_group_ = false;
  Supervision supervision_;
};

/// "SIGSEGV"; "signal 35" for one without a name.
std::string signal_name(int number);
/// How a process ended, from waitpid's status.
DeathCause death_cause(std::int32_t pid, int wait_status);

}  // namespace runtime
