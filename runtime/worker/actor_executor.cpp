#include "runtime/worker/actor_executor.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"

namespace runtime {

/// A thread's place; lives on its stack.
struct ActorExecutor::Seat {
  explicit Seat(EventLoop& loop) : wake(loop) {}
  Event wake;
};

namespace {
thread_local ActorExecutor::Current current;
}  // namespace

ActorExecutor::Current ActorExecutor::exchange_current(Current next) {
  (void)ThreadServer::exchange_current(next.executor);
  return std::exchange(current, next);
}

ActorExecutor::Blocked::Blocked() : executor_(current.blocked++ == 0 ? current.executor : nullptr) {
  if (!executor_) return;
  std::lock_guard lock(executor_->mutex_);
  ++executor_->blocked_;
  if (!executor_->ready_.empty()) executor_->dispatch();
}

ActorExecutor::Blocked::~Blocked() {
  --current.blocked;
  if (!executor_) return;
  std::lock_guard lock(executor_->mutex_);
  --executor_->blocked_;
}

void ActorExecutor::set_on_long_wait(std::function<void()> waits_long) {
  std::lock_guard lock(mutex_);
  on_long_wait_ = std::move(waits_long);
  tells_long_waits_ = true;
}

bool ActorExecutor::block_until(EventLoop& loop, Event& event, Deadline deadline) {
  Blocked blocked;
  if (tells_long_waits_.load(std::memory_order_relaxed)) {
    const Deadline long_wait = deadline_after(kLongWait);
    if (long_wait < deadline) {
      if (loop.run_until(event, long_wait)) return true;
      std::function<void()> tell;
      {
        std::lock_guard lock(mutex_);
        tell = std::exchange(on_long_wait_, nullptr);
        tells_long_waits_ = false;
      }
      if (tell) tell();
    }
  }
  return loop.run_until(event, deadline);
}

ActorExecutor::ActorExecutor(EventLoop& loop, ActorExecutorOptions options)
    : loop_(loop), options_(options) {}

ActorExecutor::~ActorExecutor() {
  stop();
  std::list<Thread> threads;
  {
    std::lock_guard lock(mutex_);
    threads.splice(threads.end(), retired_);
  }
  for (Thread& thread : threads) thread.join();
  CHECK(threads_.empty());
}

void ActorExecutor::run() {
  Seat seat(loop_);
  serve(seat, true);
  // Every thread moves itself to the retired ones when it leaves.
  for (;;) {
    std::list<Thread> leaving;
    {
      std::lock_guard lock(mutex_);
      leaving.splice(leaving.end(), retired_);
      leaving.splice(leaving.end(), threads_);
    }
    if (leaving.empty()) break;
    for (Thread& thread : leaving) thread.join();
  }
  std::lock_guard lock(mutex_);
  ready_.clear();
}

void ActorExecutor::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  for (Seat* seat : std::exchange(idle_, {})) seat->wake.set();
}

void ActorExecutor::want_threads(std::size_t count) {
  std::lock_guard lock(mutex_);
  wanted_ = std::max(wanted_, std::min(count, options_.threads_max));
  for (std::size_t i = 0; i < ready_.size(); ++i) dispatch();
}

void ActorExecutor::post(std::shared_ptr<Runnable> line) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(line));
  dispatch();
}

void ActorExecutor::dispatch() {
  if (stopping_) return;
  if (!idle_.empty()) {
    // The thread that is here itself, in a handler of the loop that it drives, needs no wake-up.
    auto own = loop_.in_loop() ? std::find(idle_.begin(), idle_.end(), current.seat) : idle_.end();
    auto chosen = own != idle_.end() ? own : std::prev(idle_.end());
    Seat* seat = *chosen;
    idle_.erase(chosen);
    seat->wake.set();
    return;
  }
  const std::size_t running = 1 + threads_.size() - std::min(blocked_, threads_.size() + 1);
  if (running < wanted_) start_thread();
}

void ActorExecutor::start_thread() {
  for (Thread& thread : std::exchange(retired_, {})) {
    thread.join();  // has left the lock for good: at most a moment
  }
  if (threads_.size() >= options_.threads_max) {
    LOG(warn,
        "{} threads wait inside of methods of actors of this process; the others wait until one "
        "returns",
        threads_.size());
    return;
  }
  auto self = threads_.emplace(threads_.end());
  auto started = Thread::start([this, self] {
    if (!simulation()) pthread_setname_np(pthread_self(), "actors");
    Seat seat(loop_);
    serve(seat, false);
    std::lock_guard lock(mutex_);
    // stop() or run() may have taken it out of the list to join it. splice() works on any list, but
    // then it must stay where it is.
    if (!stopping_) retired_.splice(retired_.end(), threads_, self);
  });
  if (started.ok()) {
    *self = *std::move(started);  // the new thread needs the lock before it looks at itself
    return;
  }
  threads_.erase(self);
  if (!std::exchange(lacks_threads_, true))
    LOG(warn, "calls wait for the thread of another, since {}", started.status().message());
}

bool ActorExecutor::surplus() const {
  return threads_.size() + 1 > wanted_ + blocked_ + options_.spare_threads;
}

void ActorExecutor::serve(Seat& seat, bool is_main) {
  (void)exchange_current({this, &seat, 0});
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!ready_.empty()) {
      std::shared_ptr<Runnable> line = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      const bool more = line->run(options_.calls_per_turn);
      if (!more) line.reset();
      lock.lock();
      if (more) ready_.push_back(std::move(line));
      continue;
    }
    if (!is_main && surplus()) break;
    seat.wake.reset();
    idle_.push_back(&seat);
    lock.unlock();
    const bool woken = loop_.run_until(seat.wake, Deadline::max());
    lock.lock();
    if (!woken) {  // the loop was stopped
      std::erase(idle_, &seat);
      break;
    }
  }
  (void)exchange_current({});
}

}  // namespace runtime
