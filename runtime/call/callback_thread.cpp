#include "runtime/call/callback_thread.h"

#include <exception>
#include <utility>

#include "runtime/call/thrown.h"
#include "runtime/core/log.h"

namespace runtime {

Status CallbackThread::start() {
  std::lock_guard lock(mutex_);
  if (stopping_ || thread_.joinable()) return {};
  auto thread = Thread::start_real([this] { serve(); });
  if (thread.ok()) thread_ = *std::move(thread);
  return thread.status();
}

void CallbackThread::run(std::function<void()> callback) {
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  waiting_.push_back(std::move(callback));
  changed_.notify_one();
}

void CallbackThread::stop() {
  Thread ended;
  std::deque<std::function<void()>> dropped;  // destroyed outside of the lock
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
    changed_.notify_one();
    if (!thread_.is_current())
      std::swap(ended,
                thread_);  // else a callback stops its own runtime, and no thread waits for it here
  }
  if (ended.joinable()) ended.join();
}

void CallbackThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::function<void()> callback = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      callback();
    } catch (...) {
      LOG(error, "a callback {}", status_of(std::current_exception()).message());
    }
    callback = nullptr;
    lock.lock();
  }
}

}  // namespace runtime
