#include "runtime/transport/work_thread.h"

#include <utility>

#include "runtime/core/check.h"

namespace runtime {

Status WorkThread::start() {
  std::lock_guard lock(mutex_);
  if (thread_.joinable()) return {};
  CHECK(!ending_);
  auto thread = Thread::start_real([this] { serve(); });
  if (thread.ok()) thread_ = *std::move(thread);
  return thread.status();
}

void WorkThread::post(UniqueFunction<void()> work) {
  std::lock_guard lock(mutex_);
  CHECK(thread_.joinable());
  waiting_.push_back(std::move(work));
  changed_.notify_one();
}

void WorkThread::finish() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  join();
}

void WorkThread::stop() {
  std::deque<UniqueFunction<void()>> dropped;  // destroyed outside of the lock
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    dropped.swap(waiting_);
    changed_.notify_one();
  }
  dropped.clear();
  join();
}

void WorkThread::join() {
  Thread ended;
  {
    std::lock_guard lock(mutex_);
    std::swap(ended, thread_);
  }
  if (ended.joinable()) ended.join();
}

void WorkThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    UniqueFunction<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace runtime
