#include "runtime/core/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "runtime/core/check.h"

namespace runtime {

namespace {

constexpr int kWordBits = 64;
constexpr int kDescriptorsMax = 1 << 20;  // the kernel's default for a hard limit
/// A bit for each descriptor: the child's handler may neither lock nor allocate.
std::array<std::atomic<std::uint64_t>, kDescriptorsMax / kWordBits> owned_descriptors{};
std::atomic<int> owned_words{0};  // those before it may have bits
std::once_flag forks_watched;

/// In the child, whose one thread this is.
void on_forked() {
  fork_detail::generation.fetch_add(1, std::memory_order_relaxed);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int word = 0; word < owned_words.load(std::memory_order_relaxed); ++word) {
    std::uint64_t bits = owned_descriptors[word].exchange(0, std::memory_order_relaxed);
    for (int bit = 0; bits != 0; ++bit, bits >>= 1) {
      const int descriptor = word * kWordBits + bit;
      if ((bits & 1) == 0 || descriptor == null) continue;
      if (null >= 0)
        ::dup3(null, descriptor, O_CLOEXEC);
      else
        ::close(descriptor);
    }
  }
  if (null >= 0) ::close(null);
}

bool is_counted(int descriptor) { return descriptor >= 0 && descriptor < kDescriptorsMax; }

}  // namespace

void watch_forks() {
  std::call_once(forks_watched, [] { CHECK(::pthread_atfork(nullptr, nullptr, &on_forked) == 0); });
}

void close_in_child(int descriptor) {
  if (!is_counted(descriptor)) return;
  const int word = descriptor / kWordBits;
  owned_descriptors[word].fetch_or(std::uint64_t{1} << (descriptor % kWordBits));
  int words = owned_words.load();
  while (words <= word && !owned_words.compare_exchange_weak(words, word + 1)) {
  }
}

void keep_in_child(int descriptor) {
  if (is_counted(descriptor))
    owned_descriptors[descriptor / kWordBits].fetch_and(
        ~(std::uint64_t{1} << (descriptor % kWordBits)));
}

Status forked_status() {
  return invalid_argument(
      "a Runtime belongs to the process that started it, and fork() made this process its child. "
      "Here, exec a program or start a Runtime for this process");
}

}  // namespace runtime
