#include "rl/model/parallel.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <mutex>

// LibTorch's MKL: the number of threads for this thread's calls, 0 for the process's. Absent where
// LibTorch has another BLAS.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace rl {

std::vector<Block> cut(std::int64_t total, std::int64_t least, const c10::Device& device) {
  if (!device.is_cpu() && total > 0) return {{0, total}};
  constexpr std::int64_t kBlocksMax = 8;
  constexpr std::int64_t kMultiple = 16;  // matrix products work on tiles of about this many rows
  const std::int64_t size = std::max(
      least, ((total + kBlocksMax - 1) / kBlocksMax + kMultiple - 1) / kMultiple * kMultiple);
  std::vector<Block> blocks;
  for (std::int64_t first = 0; first < total; first += size)
    blocks.push_back({first, std::min(size, total - first)});
  return blocks;
}

void run_tasks(kernel::ThreadPool& pool, const std::vector<std::function<void()>>& tasks,
               const c10::Device& device) {
  if (!device.is_cpu()) {
    const c10::AutoGradMode off(false);
    for (const std::function<void()>& task : tasks) task();
    return;
  }
  std::mutex mutex;
  std::exception_ptr first_error;  // out of memory, say: must reach autograd's caller
  pool.parallel_for(static_cast<std::int64_t>(tasks.size()), 1,
                    [&](std::int64_t begin, std::int64_t end) {
                      const SingleThreaded alone;
                      const c10::AutoGradMode off(false);
                      for (std::int64_t i = begin; i < end; ++i) {
                        try {
                          tasks[static_cast<std::size_t>(i)]();
                        } catch (...) {
                          std::lock_guard lock(mutex);
                          if (!first_error) first_error = std::current_exception();
                        }
                      }
                    });
  if (first_error) std::rethrow_exception(first_error);
}

void for_blocks(kernel::ThreadPool& pool, const std::vector<Block>& blocks,
                const c10::Device& device, const std::function<void(const Block&)>& body) {
  std::vector<std::function<void()>> tasks;
  tasks.reserve(blocks.size());
  for (const Block& block : blocks) tasks.emplace_back([&body, &block] { body(block); });
  run_tasks(pool, tasks, device);
}

// A thread's first operator gives MKL the number of threads that ATen has, and would undo what is
// set here. Products of that one task would then be cut between threads, and have other bits.
SingleThreaded::SingleThreaded() {
  at::get_num_threads();
  if (MKL_Set_Num_Threads_Local) mkl_threads_ = MKL_Set_Num_Threads_Local(1);
}

SingleThreaded::~SingleThreaded() {
  if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(mkl_threads_);
}

}  // namespace rl
