// run_when_idle: work that others must not wait for.
#pragma once

#include <future>

#include "runtime/core/thread.h"

namespace rl {

/// The calling thread gives way to other threads of the machine for the rest of its life. The way
/// back needs rights that a user has not.
void give_way();

/// What `work` returns, done by a thread that gives way to others while the caller waits; by the
/// caller, where no thread can be made.
template <class Work>
auto run_when_idle(Work work) {
  std::packaged_task<decltype(work())()> task([&work] { return work(); });
  auto result = task.get_future();
  auto thread = runtime::Thread::start_real([&task] {
    give_way();
    task();
  });
  if (thread.ok())
    thread->join();
  else
    task();
  return result.get();
}

}  // namespace rl
