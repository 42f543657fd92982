// Actors for the tests of a call's way: its limits of time, its order, what it hears of others'
// ends.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "execution_actors.h"
#include "runtime/runtime.h"
#include "tests/support/pauses.h"

namespace runtime::test {

/// Tells how much time its calls have.
class Timed {
 public:
  explicit Timed(Runtime& runtime) : runtime_(runtime) {}
  /// Registered with a timeout of 300 ms.
  std::int64_t hurried(const CallContext& call, int ms) const {
    (void)call.sleep_for(std::chrono::milliseconds(ms));
    return left_ms(call);
  }
  std::int64_t calm(const CallContext& call, int ms) const { return hurried(call, ms); }
  /// What a call that this one makes has, with and without handing its own limit on.
  Result<std::int64_t> inner(const CallContext& call, ActorHandle<Timed> other, bool hand_on) {
    CallOptions options;
    if (hand_on) options.until = call.deadline();
    return runtime_.get(other.call(options, &Timed::calm, 0));
  }
  /// The outcome of hurried(ms) on an actor found by name.
  Result<std::int64_t> hurry_named(const std::string& name, int ms) {
    auto other = runtime_.get_actor<Timed>(name);
    if (!other.ok()) return other.status();
    return runtime_.get(other->call(&Timed::calm, ms));
  }

 private:
  static std::int64_t left_ms(const CallContext& call) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(call.remaining()).count();
  }
  Runtime& runtime_;
};

/// Takes its time to be made.
struct Sleeper {
  explicit Sleeper(int ms) { support::work_for(std::chrono::milliseconds(ms)); }
  int awake() const { return 1; }
};

/// Remembers in which order it was called.
class Sequence {
 public:
  int add(int n) {
    seen_.push_back(n);
    return static_cast<int>(seen_.size());
  }
  std::vector<int> seen() const { return seen_; }
  void pause(int ms) const { support::work_for(std::chrono::milliseconds(ms)); }

 private:
  std::vector<int> seen_;
};

/// Calls a Sequence twice, first with an argument that takes its time. Returns the order in which
/// they ran.
class TwoCalls {
 public:
  explicit TwoCalls(Runtime& runtime) : runtime_(runtime) {}
  Result<std::vector<int>> through(ActorHandle<Sequence> target, ActorHandle<Patient> slow) {
    auto late = slow.call(&Patient::block, 500);
    auto first = target.call(&Sequence::add, late);
    auto second = target.call(&Sequence::add, 1);
    if (auto done = runtime_.objects().gather(std::vector{first, second}); !done.ok())
      return done.status();
    return runtime_.get(target.call(&Sequence::seen));
  }
  Result<std::vector<int>> through_name(const std::string& name, ActorHandle<Patient> slow) {
    auto target = runtime_.get_actor<Sequence>(name);
    if (!target.ok()) return target.status();
    return through(*target, slow);
  }

 private:
  Runtime& runtime_;
};

/// Supervises its own child.
class Sentry {
 public:
  explicit Sentry(Runtime& runtime) : runtime_(runtime) {}
  Result<ActorHandle<Patient>> raise(int restarts) {
    ActorOptions options{.max_restarts = restarts};
    auto child = runtime_.spawn<Patient>(options);
    if (!child.ok()) return child.status();
    watch_ = runtime_.watch(*child, [this](const ActorEvent& event) {
      std::lock_guard lock(mutex_);
      seen_.push_back(event.kind == ActorEvent::Kind::kDead ? "dead: " + event.death().message()
                      : event.kind == ActorEvent::Kind::kAlive
                          ? "alive"
                          : "restarting: " + event.state.death.text);
    });
    return *child;
  }
  std::vector<std::string> seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }
  Result<ActorDeath> wait_for_end(ActorHandle<Patient> other) {
    return runtime_.get(runtime_.when_dead(other), std::chrono::seconds(20));
  }

 private:
  Runtime& runtime_;
  std::mutex mutex_;
  std::vector<std::string> seen_;
  Watch watch_;  // last: its callbacks use the others
};

inline void register_call_actors(Runtime& rt) {
  rt.register_actor<Timed>("Timed",
                           method(&Timed::hurried, {.timeout = std::chrono::milliseconds(300)}),
                           &Timed::calm, &Timed::inner, &Timed::hurry_named);
  rt.register_actor<Sleeper>("Sleeper", &Sleeper::awake);
  rt.register_actor<Sequence>("Sequence", &Sequence::add, &Sequence::seen, &Sequence::pause);
  rt.register_actor<TwoCalls>("TwoCalls", &TwoCalls::through, &TwoCalls::through_name);
  rt.register_actor<Sentry>("Sentry", &Sentry::raise, &Sentry::seen, &Sentry::wait_for_end);
}

}  // namespace runtime::test
