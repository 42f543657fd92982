// ProcessTree: the processes below a process, which are stopped and killed together.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace runtime {

/// Looks into /proc of this process's PID namespace; where there is none it finds nothing.
/// Allocates nothing but pages and takes no locks: it may be used after fork(). Needs the C library
/// alone: small programs compile it in.
class ProcessTree {
 public:
  explicit ProcessTree(pid_t root);
  ProcessTree(const ProcessTree&) = delete;
  ProcessTree& operator=(const ProcessTree&) = delete;
  ~ProcessTree();

  /// Stops all that `root` has started, directly or not, until no new one appears, and kills them.
  /// A process that is stopped starts no others. Not `root`. False: none is left.
  bool kill_round();
  /// Whether the last rounds, for two seconds, found the same ones: they are in the kernel, or
  /// another user's whom this process may not signal.
  bool is_stuck() const;

  /// Rounds until none is left, while others reap them. False: some are stuck.
  bool kill_all();

 private:
  struct Process {
    pid_t pid;
    pid_t parent;
    char state;
    bool has_ended;
    bool is_below;
  };

  /// Finds those below `root` that have not ended. False: one ended meanwhile, and may have started
  /// another, which this look has missed.
  bool look();
  /// A look that stops them. Whether it found all, and all were stopped before.
  bool stop_all(bool is_patient);
  void mark_below();
  /// Keeps those below that have not ended. False: one has that had not at the last look.
  bool drop_others();
  const Process* find(pid_t pid) const;

  const pid_t root_;
  Process* processes_ = nullptr;  // by rising number; after a look only those below
  std::size_t room_ = 0;
  std::size_t count_ = 0;
  std::uint64_t ended_ = 0;    // which ones below the last look found ended, as a number
  std::uint64_t seen_ = 0;     // what the last round found, as a number
  std::int64_t since_ms_ = 0;  // when it first found that
};

/// Whether /proc shows this process under the number that it has for itself: else the numbers there
/// are those of another PID namespace.
bool is_own_proc();

}  // namespace runtime
