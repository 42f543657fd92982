// Actors for the tests of saved states.
#pragma once

#include <unistd.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/runtime.h"

namespace runtime::test {

/// Saves when it is asked to, from outside or from inside.
class Tally {
 public:
  struct State {
    std::int64_t total = 0;
    std::vector<std::int64_t> copies;  // of total: a mixture of two states would show
    auto fields() { return std::tie(total, copies); }
  };

  Tally(Runtime& runtime, int start) : runtime_(runtime) { state_.total = start; }
  State save_state() const { return state_; }
  void restore_state(State saved) {
    state_ = std::move(saved);
    ++restored_;
  }

  std::int64_t add(int n) { return state_.total += n; }
  std::int64_t total() const { return state_.total; }
  int restored() const { return restored_; }
  int pid() const { return ::getpid(); }
  void inflate(std::uint64_t count) { state_.copies.assign(count, state_.total); }
  /// What is saved then is one more than before, in every part. Returns it.
  Result<std::int64_t> grow_and_save(std::uint64_t count) {
    ++state_.total;
    state_.copies.assign(count, state_.total);
    if (Status status = runtime_.save_state(*this); !status.ok()) return status;
    return state_.total;
  }
  /// The total, or -1 where the parts are of different states.
  std::int64_t consistent_total(std::uint64_t count) const {
    if (state_.total > 0 && state_.copies.size() != count) return -1;
    for (std::int64_t copy : state_.copies) {
      if (copy != state_.total) return -1;
    }
    return state_.total;
  }

 private:
  Runtime& runtime_;
  State state_;
  int restored_ = 0;
};

/// Cannot save its state.
class Thrower {
 public:
  explicit Thrower(int value) : value_(value) {}
  int value() const { return value_; }
  int save_state() const { throw std::runtime_error("no state today"); }
  void restore_state(int value) { value_ = value; }

 private:
  int value_ = 0;
};

/// Does not take back what it saved.
class Forgetful {
 public:
  Result<int> save_state() const {
    if (!may_save_) return unavailable("not now");
    return 1;
  }
  Status restore_state(int) { return invalid_argument("it means nothing to me"); }
  void refuse() { may_save_ = false; }

 private:
  bool may_save_ = true;
};

/// Keeps a reference in its state, which cannot be.
class Hoarder {
 public:
  ObjectRef<int> save_state() const { return kept_; }
  void restore_state(ObjectRef<int> kept) { kept_ = std::move(kept); }
  void keep(ObjectRef<int> ref) { kept_ = std::move(ref); }

 private:
  ObjectRef<int> kept_;
};

inline void register_state_actors(Runtime& rt) {
  rt.register_actor<Tally>("Tally", &Tally::add, &Tally::total, &Tally::restored, &Tally::pid,
                           &Tally::inflate, &Tally::grow_and_save, &Tally::consistent_total);
  rt.register_actor<Thrower>("Thrower", &Thrower::value);
  rt.register_actor<Forgetful>("Forgetful", &Forgetful::refuse);
  rt.register_actor<Hoarder>("Hoarder", &Hoarder::keep);
}

}  // namespace runtime::test
