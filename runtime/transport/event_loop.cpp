#include "runtime/transport/event_loop.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/transport/simulated_network.h"

namespace runtime {

/// A thread in run_until (or the background thread) and what it waits for. Lives on that thread's
/// stack.
struct EventLoop::Waiter {
  const EventLoop* loop = nullptr;
  const LoopSignal* signal = nullptr;  // null for the background thread
  std::condition_variable wake{};      // used while a follower
  std::atomic<bool> yield{false};      // the background thread is asked for the seat
  Waiter* previous = nullptr;          // among the followers
  Waiter* next = nullptr;
};

namespace {

// The waiter of this thread while it drives a loop. One level is enough: a handler never drives
// another loop.
thread_local void* driving = nullptr;

// How long the seat may stay free before the background thread takes it. Long enough for a caller
// in a tight loop of synchronous calls to come back, so that such a loop never fights over the
// seat. Short enough not to matter to anyone else.
constexpr std::chrono::milliseconds kVacancy{1};
// How many posted handlers a leaving thread runs at most.
constexpr int kLastHandlersMax = 64;
// What a waiting thread spends looking before it sleeps. Waking an idle core takes as long as a
// whole call between two that are awake.
constexpr std::chrono::microseconds kLeaderLook{50};
// Waits between two that look, once looking has been in vain again and again.
constexpr int kSkippedMax = 256;
// After this many ticks under the same driver the background thread sleeps until that driver
// leaves.
constexpr int kIdleTicks = 8;

/// Whether looking is worth it for this thread. It is as long as the last look found something.
/// Each look in vain halves how often it is tried.
class Outlook {
 public:
  bool worth_looking() {
    static const bool several_cores = std::thread::hardware_concurrency() > 1;
    if (!several_cores) return false;
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void looked(bool found) {
    skipped_ = found ? 0 : std::min(kSkippedMax, 2 * skipped_ + 1);
    left_ = skipped_;
  }

 private:
  int skipped_ = 0;  // waits after the last look
  int left_ = 0;
};
thread_local Outlook outlook;

/// Handlers return failures; one that throws has a bug, but the other connections need not suffer
/// for it.
template <class Run>
std::size_t guarded(Run&& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    LOG(error, "event loop: a handler threw: {}", error.what());
    return 1;
  }
}

}  // namespace

void EventLoop::set(LoopSignal& signal) {
  if (is_forked()) return signal.is_set.store(true, std::memory_order_release);
  // The waiter's own handler sets its flag: it looks before it sleeps again.
  if (driving != nullptr && in_loop() && static_cast<Waiter*>(driving)->signal == &signal) {
    signal.is_set.store(true, std::memory_order_release);
    return;
  }
  // Everything else under the mutex, and the mutex last: the waiter may destroy the event as soon
  // as it can lock.
  std::lock_guard lock(mutex_);
  signal.is_set.store(true, std::memory_order_seq_cst);
  auto* waiter = static_cast<Waiter*>(signal.waiter);
  if (waiter == nullptr) return;
  if (waiter == leader_.load(std::memory_order_relaxed)) {
    interrupt();
  } else {
    waiter->wake.notify_one();
  }
}

EventLoop::EventLoop() : generation_((watch_forks(), fork_generation())) {
  if (SimulatedNetwork* simulated = simulated_network()) {
    simulated->add_loop(*this);
    return;
  }
  auto thread = Thread::start_real([this] { background(); });
  if (thread.ok())
    background_thread_ = *std::move(thread);
  else
    status_ = thread.status();
}

EventLoop::~EventLoop() {
  if (is_forked()) {  // the thread is the parent's
    if (background_thread_.joinable()) background_thread_.detach();
    return;
  }
  stop();
  if (background_thread_.joinable())
    background_thread_.join();
  else if (SimulatedNetwork* simulated = simulated_network())
    simulated->remove_loop(*this);
  std::lock_guard lock(mutex_);
  CHECK(leader_.load() == nullptr);
  CHECK(followers_first_ == nullptr);
}

bool EventLoop::in_loop() const {
  return driving != nullptr && static_cast<Waiter*>(driving)->loop == this;
}

void EventLoop::stop() {
  if (is_forked()) return;
  std::lock_guard lock(mutex_);
  stopping_.store(true);
  for (Waiter* follower = followers_first_; follower != nullptr; follower = follower->next)
    follower->wake.notify_one();
  background_asleep_ = false;
  background_wake_.notify_one();
  interrupt();
}

void EventLoop::interrupt() {
  asio::post(context_, [] {});
}

bool EventLoop::step() {
  Waiter self{.loop = this};
  void* outer = std::exchange(driving, &self);
  const bool ran = guarded([&] { return context_.poll_one(); }) > 0;
  driving = outer;
  return ran;
}

void EventLoop::drive(Waiter& self, const LoopSignal* signal, Deadline deadline) {
  void* outer = std::exchange(driving, &self);
  auto finished = [&] {
    return stopping_.load(std::memory_order_relaxed) ||
           self.yield.load(std::memory_order_relaxed) ||
           (signal != nullptr && signal->is_set.load(std::memory_order_acquire));
  };
  while (!finished()) {
    if (signal != nullptr && outlook.worth_looking()) {
      if (guarded([&] { return context_.poll_one(); }) > 0) continue;
      const auto until = std::chrono::steady_clock::now() + kLeaderLook;
      std::size_t found = 0;
      bool in_time = true;
      while (found == 0 && in_time && !finished()) {
        ::sched_yield();  // others of this core come first; where they take long, this thread had
                          // better sleep
        found = guarded([&] { return context_.poll_one(); });
        in_time = std::chrono::steady_clock::now() < until;
      }
      outlook.looked(found > 0 && in_time);
      if (found > 0) continue;
    }
    std::size_t ran = guarded([&] {
      return deadline == Deadline::max() ? context_.run_one() : context_.run_one_until(deadline);
    });
    if (ran == 0) break;
  }
  // What the last handlers posted (a flush, mostly) should not lie until a thread takes the seat
  // again.
  for (int i = 0; i < kLastHandlersMax && posted_.load(std::memory_order_relaxed) > 0 &&
                  !stopping_.load(std::memory_order_relaxed);
       ++i) {
    if (guarded([&] { return context_.poll_one(); }) == 0) break;
  }
  driving = outer;
}

void EventLoop::pass_on() {
  if (followers_first_ != nullptr) {
    followers_first_->wake.notify_one();
  } else if (background_asleep_) {
    background_asleep_ = false;
    background_wake_.notify_one();
  }
}

void EventLoop::wake_background() {
  std::lock_guard lock(mutex_);
  if (leader_.load(std::memory_order_relaxed) != nullptr || background_wanted_) return;
  background_wanted_ = true;
  background_asleep_ = false;
  background_wake_.notify_one();
}

bool EventLoop::run_until(Event& event, Deadline deadline) {
  if (is_forked()) return event.is_set();
  CHECK(!in_loop());
  CHECK(&event.loop() == this);
  if (SimulatedNetwork* simulated = simulated_network())
    return simulated->wait(*this, event, deadline);
  std::unique_lock lock(mutex_);
  if (event.is_set()) return true;
  LoopSignal& signal = event.signal();
  CHECK(signal.waiter == nullptr);

  Waiter self{.loop = this, .signal = &signal};
  signal.waiter = &self;
  bool following = false;
  auto unlink = [this, &self, &following] {
    if (!following) return;
    following = false;
    (self.previous ? self.previous->next : followers_first_) = self.next;
    (self.next ? self.next->previous : followers_last_) = self.previous;
    self.previous = self.next = nullptr;
  };

  while (!event.is_set() && !stopping_.load(std::memory_order_relaxed)) {
    Waiter* leader = leader_.load(std::memory_order_relaxed);
    if (leader == nullptr) {
      unlink();
      leader_.store(&self, std::memory_order_seq_cst);
      ++turns_;
      lock.unlock();
      drive(self, &signal, deadline);
      lock.lock();
      leader_.store(nullptr, std::memory_order_seq_cst);
      if (!event.is_set() && steady_now() >= deadline) break;
      continue;
    }
    if (leader->signal == nullptr && !leader->yield.exchange(true))
      interrupt();  // the background thread makes room
    if (!following) {
      following = true;
      self.previous = followers_last_;
      (followers_last_ ? followers_last_->next : followers_first_) = &self;
      followers_last_ = &self;
    }
    if (deadline == Deadline::max()) {
      self.wake.wait(lock);
    } else if (self.wake.wait_until(lock, deadline) == std::cv_status::timeout) {
      break;
    }
  }
  unlink();
  signal.waiter = nullptr;
  if (leader_.load(std::memory_order_relaxed) == nullptr) pass_on();
  return event.is_set();
}

void EventLoop::background() {
  pthread_setname_np(pthread_self(), "io");
  std::unique_lock lock(mutex_);
  Waiter self{.loop = this, .signal = nullptr};
  std::uint64_t seen_turn = turns_;
  int ticks = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    bool vacant = leader_.load(std::memory_order_relaxed) == nullptr;
    bool quiet = turns_ == seen_turn;
    if (vacant && followers_first_ == nullptr && (quiet || background_wanted_)) {
      background_wanted_ = false;
      self.yield.store(false);
      leader_.store(&self, std::memory_order_seq_cst);
      lock.unlock();
      drive(self, nullptr, Deadline::max());
      lock.lock();
      leader_.store(nullptr, std::memory_order_seq_cst);
      pass_on();
      ticks = 0;
      seen_turn = turns_ - 1;  // the thread that asked for the seat gets at least a tick to take it
      continue;
    }
    background_wanted_ = false;
    ticks = quiet ? ticks + 1 : 0;
    seen_turn = turns_;
    if (!vacant && ticks >= kIdleTicks) {
      background_asleep_ = true;
      background_wake_.wait(lock, [this] { return !background_asleep_ || stopping_.load(); });
      background_asleep_ = false;
      ticks = 0;
    } else {
      background_wake_.wait_for(lock, kVacancy, [this] {
        return background_wanted_ || stopping_.load(std::memory_order_relaxed);
      });
    }
  }
}

}  // namespace runtime
