// Runnable: the interface of a line of jobs to which an ActorExecutor gives turns.
#pragma once

#include <cstddef>

namespace runtime {

/// A line of jobs, as of one actor. Each post() to the executor is its own turn: what was
/// posted twice may be run by two threads at once.
class Runnable {
 public:
  virtual ~Runnable() = default;
  /// One turn, of at most N jobs. Whether it wants another.
  virtual bool run(std::size_t jobs_max) = 0;
};

}  // namespace runtime
