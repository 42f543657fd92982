#include "runtime/actor/call_context.h"

#include <condition_variable>
#include <mutex>

namespace runtime {

Status CallContext::status() const { return cancelled() ? runtime::cancelled("the call was cancelled while it ran") : Status(); }

bool CallContext::sleep_for(std::chrono::steady_clock::duration duration) const {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_for(lock, token_, duration, [] { return false; });
  return !cancelled();
}

}  // namespace runtime
