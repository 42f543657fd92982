// GroupWatch: the end of all processes of a process group.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/process/process_watch.h"

namespace runtime {

/// Looks for the group's processes, waits until those have ended, and looks again, since they may
/// have started others meanwhile. On the loop.
class GroupWatch {
 public:
  /// `ended` runs once, on the loop, when no process of `group` but `except` runs; not after this
  /// object's end.
  GroupWatch(EventLoop& loop, pid_t group, pid_t except, std::function<void()> ended);
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

 private:
  void look();
  void look_soon();

  EventLoop& loop_;
  const pid_t group_;
  const pid_t except_;
  std::function<void()> ended_;
  std::vector<std::shared_ptr<ProcessWatch>> members_;
  std::size_t running_ = 0;  // of the members
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace runtime
