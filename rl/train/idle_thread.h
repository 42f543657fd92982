// run_when_idle: work that others must not wait for.
#pragma once

#include <future>

namespace rl {

/// The calling thread gives way to other threads of the machine, for the rest of its life: the way
/// back needs rights that a user has not.
void give_way();

/// What `work` returns, done by a thread that gives way to others while the caller waits.
template <class Work>
auto run_when_idle(Work work) {
  return std::async(std::launch::async,
                    [&work] {
                      give_way();
                      return work();
                    })
      .get();
}

}  // namespace rl
