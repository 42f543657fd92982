#include "runtime/call/call_context.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace runtime {

Status CallContext::status() const {
  return cancelled() ? runtime::cancelled("the call was cancelled while it ran") : Status();
}

std::chrono::steady_clock::duration CallContext::remaining() const {
  if (deadline_ == Deadline::max()) return std::chrono::steady_clock::duration::max();
  return std::max(deadline_ - steady_now(), std::chrono::steady_clock::duration::zero());
}

bool CallContext::sleep_for(std::chrono::steady_clock::duration duration) const {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, token_, duration, [] { return false; });
  return !cancelled();
}

}  // namespace runtime
