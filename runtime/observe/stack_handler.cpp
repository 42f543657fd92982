#include "runtime/observe/stack_handler.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace runtime {

using namespace activity;

namespace {

std::atomic<Layout*> page_of_process{nullptr};

// Allocates nothing and takes no lock: the thread may have been in malloc. backtrace() was called
// before, so that its library is there.
void write_stack(int, siginfo_t* info, void*) {
  const int saved = errno;
  Layout* layout = page_of_process.load(std::memory_order_acquire);
  const auto order = reinterpret_cast<std::uint64_t>(info->si_value.sival_ptr);
  const std::size_t slot = order & 0xff;
  if (layout && info->si_code == SI_QUEUE && slot < kStacksMax) {
    void* frames[kFramesMax + 2];
    const int count = ::backtrace(frames, kFramesMax + 2);
    StackSlot& to = layout->stacks[slot];
    to.request.store(0, std::memory_order_release);
    // The first two are this handler and the kernel's frame.
    const int skip = std::min(count, 2);
    for (int i = skip; i < count; ++i)
      to.addresses[i - skip] = reinterpret_cast<std::uint64_t>(frames[i]);
    to.frames = static_cast<std::uint32_t>(count - skip);
    to.tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    to.request.store(order >> 8, std::memory_order_release);
  }
  errno = saved;
}

}  // namespace

void install_stack_handler(std::shared_ptr<ActivityPage> page) {
  const int signal = SIGRTMIN + 6;
  struct sigaction present {};
  if (::sigaction(signal, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
  void* warm_up[2];
  ::backtrace(warm_up, 2);
  // Kept for the life of the process: a signal may come at any moment.
  static std::shared_ptr<ActivityPage> kept;
  kept = std::move(page);
  page_of_process.store(&kept->layout(), std::memory_order_release);
  struct sigaction action {};
  action.sa_sigaction = write_stack;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0)
    kept->layout().stack_signal.store(static_cast<std::uint32_t>(signal),
                                      std::memory_order_release);
}

}  // namespace runtime
