// Backward passes on the kernels' threads instead of OpenMP's. OpenMP's threads spin while they
// wait, so a core taken by another process stalls the whole team (measured: ten times slower on a
// busy machine). The sizes of the problem alone decide how the work is cut here. Gradients thus
// have the same bits on any number of threads.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/ParallelGuard.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "rl/kernel/thread_pool.h"

namespace rl {

/// One stretch of rows [first, first + count).
struct Block {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Cuts `total` into at most eight blocks of about equal size, none below `least` except the last.
/// On another device than the CPU one block: its kernels are parallel by themselves, and each block
/// costs launches. Depends on nothing else.
std::vector<Block> cut(std::int64_t total, std::int64_t least, const c10::Device& device);

/// Runs the tasks on the pool's threads, each once and without a graph; ATen's operators inside a
/// task use its thread alone. Tasks of another device than the CPU run one after the other on the
/// caller's thread. Each thread that multiplies there takes a workspace of the device's memory.
/// Tasks must not depend on each other's results.
void run_tasks(kernel::ThreadPool& pool, const std::vector<std::function<void()>>& tasks,
               const c10::Device& device);

/// run_tasks of body(block) for each block.
void for_blocks(kernel::ThreadPool& pool, const std::vector<Block>& blocks,
                const c10::Device& device, const std::function<void(const Block&)>& body);

/// While it lives, ATen's operators on this thread do not wake OpenMP's.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  c10::ParallelGuard in_parallel_{true};
  int mkl_threads_ = 0;
};

}  // namespace rl
