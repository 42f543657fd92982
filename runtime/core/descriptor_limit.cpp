#include "runtime/core/descriptor_limit.h"

#include <sys/resource.h>

#include <atomic>

namespace runtime {

namespace {
std::atomic<rlim_t> soft_limit_before{0};  // 0: it was not raised
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) soft_limit_before = before;
}

void restore_descriptor_limit() {
  const rlim_t before = soft_limit_before;
  rlimit limit{};
  if (before == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace runtime
