// The setup of a child process before its program begins.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <vector>

namespace runtime {

/// Of this process's descriptors, under which number the child has it.
struct MappedDescriptor {
  int ours = -1;
  int theirs = -1;
};

enum class ProcessGroup {
  kInherited,
  kOwn,     // the child leads it
  kSession  // and a session, without a terminal
};

/// A value. What it does not name is as in this process.
struct ChildSetup {
  ProcessGroup group = ProcessGroup::kInherited;
  int death_signal = 0;  // that the child gets when the thread which starts it ends; 0: none
  std::vector<MappedDescriptor> descriptors;
  bool closes_others = false;  // of the descriptors above 2; else those stay that exec leaves open
  std::optional<sigset_t> signal_mask;  // none: the calling thread's
  std::vector<int> ignored_signals;     // besides those that this process ignores
  bool resets_signals = false;          // those that this process ignores are not ignored there
};

/// The mask that blocks no signal.
sigset_t no_signals();

/// What a new process needs to put a ChildSetup into effect. Made before fork(), since the child
/// may neither allocate nor take a lock: another thread may hold one. The child's functions are
/// async-signal-safe.
class PreparedChild {
 public:
  /// `mask`: the calling thread's, while no signal may interrupt the start.
  PreparedChild(const ChildSetup& setup, const sigset_t& mask);

  /// In the child, first: its group or session.
  void join_group() const;
  /// In a child of the child: whose death is waited for from here.
  void set_parent(pid_t parent) { parent_ = parent; }
  /// In the child, with the credentials that it keeps, which undo the request when they change.
  /// Ends it if this process has died meanwhile.
  void ask_for_death_signal() const;
  /// In the child: ignores what is to be ignored. `for_program`: handlers, which no program takes
  /// over, give way to the default.
  void set_signals(bool for_program) const;
  /// In the child, after that: signals may come from here.
  void set_mask() const;
  /// In the child: moves `reserved` out of the way, if it is in it, and maps the descriptors.
  /// False: errno says why.
  bool map_descriptors(int& reserved);
  /// In the child: closes the others now, or at exec.
  void close_others(bool at_exec) const;

 private:
  ProcessGroup group_;
  int death_signal_;
  pid_t parent_;
  std::vector<MappedDescriptor> descriptors_;
  std::vector<int> kept_;  // above 2, ascending
  bool closes_others_;
  sigset_t mask_;
  std::vector<int> ignored_signals_;
  bool resets_signals_;
};

}  // namespace runtime
