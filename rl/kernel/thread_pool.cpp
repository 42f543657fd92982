#include "rl/kernel/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/cpu_limit.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

namespace rl::kernel {
namespace {

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Polls before going to sleep: about 30 us. That is longer than the gap between two kernels of one
// forward step and shorter than what a waking thread costs.
constexpr int kPollsBeforeSleep = 1000;
constexpr int kPollsBeforeYield = 2000;

}  // namespace

// A loop is open while `ticket_` is odd. A worker enters by counting itself in `inside_` and then
// looking at the ticket again. The caller closes the loop (ticket even) and waits for `inside_` to
// fall to zero. Both sides use sequentially consistent operations, so a worker either is seen
// inside or sees the loop closed. A worker that wakes late costs its caller nothing.
class ThreadPool::Impl {
 public:
  explicit Impl(int threads) {
    for (int i = 1; i < threads; ++i) {
      auto worker = runtime::Thread::start_real([this] { work(); });
      if (!worker.ok()) {  // slower, but right
        LOG(warn, "computing on {} instead of {} threads: {}", i, threads,
            worker.status().message());
        break;
      }
      workers_.push_back(*std::move(worker));
    }
  }

  ~Impl() {
    CHECK(inside_.load() == 0);
    stopping_.store(true);
    ticket_.fetch_add(2);
    ticket_.notify_all();
    for (runtime::Thread& worker : workers_) worker.join();
  }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  void run(std::int64_t count, std::int64_t grain, Call call, void* context) {
    if (count <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    const bool alone =
        workers_.empty() || count <= grain || busy_.test_and_set(std::memory_order_acquire);
    if (alone) {
      for (std::int64_t begin = 0; begin < count; begin += grain)
        call(context, begin, std::min(count, begin + grain));
      return;
    }
    count_ = count;
    grain_ = grain;
    call_ = call;
    context_ = context;
    next_.store(0, std::memory_order_relaxed);
    ticket_.fetch_add(1);
    if (asleep_.load() > 0) ticket_.notify_all();
    take_ranges();
    ticket_.fetch_add(1);
    for (int polls = 0; inside_.load() != 0; ++polls) {
      if (polls < kPollsBeforeYield)
        pause_briefly();
      else
        std::this_thread::yield();
    }
    busy_.clear(std::memory_order_release);
  }

 private:
  void take_ranges() {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= count_) return;
      call_(context_, begin, std::min(count_, begin + grain_));
    }
  }

  void work() {
    std::uint32_t seen = 0;
    for (;;) {
      const std::uint32_t ticket = wait_for_change(seen);
      seen = ticket;
      if (stopping_.load()) return;
      if (ticket % 2 == 0) continue;
      inside_.fetch_add(1);
      if (ticket_.load() == ticket) take_ranges();
      inside_.fetch_sub(1);
    }
  }

  std::uint32_t wait_for_change(std::uint32_t seen) {
    for (int polls = 0; polls < kPollsBeforeSleep; ++polls) {
      const std::uint32_t ticket = ticket_.load();
      if (ticket != seen) return ticket;
      pause_briefly();
    }
    asleep_.fetch_add(1);
    ticket_.wait(seen);
    asleep_.fetch_sub(1);
    return ticket_.load();
  }

  alignas(64) std::atomic<std::uint32_t> ticket_{0};
  std::atomic<int> asleep_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> inside_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  // Written by the caller while no worker is inside.
  std::int64_t count_ = 0;
  std::int64_t grain_ = 1;
  Call call_ = nullptr;
  void* context_ = nullptr;

  std::atomic_flag busy_;
  std::vector<runtime::Thread> workers_;
};

ThreadPool::ThreadPool(int threads)
    : impl_(std::make_unique<Impl>(threads > 0 ? threads : usable_cores())) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return impl_->threads(); }

void ThreadPool::set_threads(int threads) {
  const int wanted = threads > 0 ? threads : usable_cores();
  if (wanted != impl_->threads()) impl_ = std::make_unique<Impl>(wanted);
}

void ThreadPool::run(std::int64_t count, std::int64_t grain, Call call, void* context) {
  impl_->run(count, grain, call, context);
}

int usable_cores() { return runtime::cpu_threads(); }

}  // namespace rl::kernel
