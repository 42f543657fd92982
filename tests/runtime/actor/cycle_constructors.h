// Actors for the tests of constructors that wait for each other.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <tuple>

#include "runtime/runtime.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"

namespace runtime::test {

/// Finds an actor that may not have been asked for yet. `find_ms`: 0 for as long as it takes.
template <class T>
Result<ActorHandle<T>> find_named(Runtime& runtime, const std::string& name, int find_ms = 0) {
  Result<ActorHandle<T>> found = not_found("");
  (void)support::eventually([&] {
    found = find_ms > 0 ? runtime.get_actor<T>(name, std::chrono::milliseconds(find_ms))
                        : runtime.get_actor<T>(name);
    return found.status().code() != ErrorCode::kNotFound;
  });
  return found;
}

/// What a founder's joiner does. Limits of time: 0 for no own limit.
struct Founding {
  std::string founder{};  // it looks for that one, and calls it; empty: it does not
  int rest_ms = 0;        // before that
  NodeId node{};          // where it is; none: anywhere
  bool shared = false;
  int create_ms = 0;
  int find_ms = 0;
  auto fields() { return std::tie(founder, rest_ms, node, shared, create_ms, find_ms); }
};

/// Makes a joiner while it is made.
struct Founder {
  static Result<std::unique_ptr<Founder>> create(Runtime& runtime, const Founding& plan);
  int serve() const { return 7; }
};

class Joiner {
 public:
  explicit Joiner(int heard = 0) : heard_(heard) {}
  static Result<std::unique_ptr<Joiner>> create(Runtime& runtime, const Founding& plan) {
    support::work_for(std::chrono::milliseconds(plan.rest_ms));
    if (plan.founder.empty()) return std::make_unique<Joiner>();
    auto founder = find_named<Founder>(runtime, plan.founder, plan.find_ms);
    if (!founder.ok()) return founder.status();
    auto served = runtime.get(founder->call(&Founder::serve));
    if (!served.ok()) return served.status();
    return std::make_unique<Joiner>(*served);
  }
  int heard() const { return heard_; }

 private:
  const int heard_;
};

inline Result<std::unique_ptr<Founder>> Founder::create(Runtime& runtime, const Founding& plan) {
  ActorOptions options;
  if (!plan.node.is_none()) options.node = plan.node;
  if (plan.shared) options.isolation = Isolation::kShared;
  if (plan.create_ms > 0) options.create_timeout = std::chrono::milliseconds(plan.create_ms);
  const auto joiner = runtime.spawn<Joiner>(options, plan);
  if (!joiner.ok()) return joiner.status();
  return std::make_unique<Founder>();
}

/// Looks for another of its kind, by the name, while it is made.
struct Seeker {
  static Result<std::unique_ptr<Seeker>> create(Runtime& runtime, const std::string& other) {
    auto found = find_named<Seeker>(runtime, other);
    if (!found.ok()) return found.status();
    return std::make_unique<Seeker>();
  }
  int nothing() const { return 0; }
};

/// Makes another of its kind unless it exists, while it is made; that one looks for this one in the
/// same way.
struct Twin {
  static Result<std::unique_ptr<Twin>> create(Runtime& runtime, const std::string& name,
                                              const std::string& other) {
    const auto twin = runtime.spawn<Twin>({.name = other, .get_if_exists = true}, other, name);
    if (!twin.ok()) return twin.status();
    return std::make_unique<Twin>();
  }
  int nothing() const { return 0; }
};

class Returner;

/// Calls the one that it knows, if it does, and waits for that.
class Visited {
 public:
  explicit Visited(Runtime& runtime) : runtime_(runtime) {}
  void know(ActorHandle<Returner> returner) { returner_ = std::move(returner); }
  Result<int> visit();

 private:
  Runtime& runtime_;
  ActorHandle<Returner> returner_;
};

/// Visits while it is made, and again each time that it is started again.
class Returner {
 public:
  Returner(Runtime& runtime, const ActorHandle<Visited>& visited)
      : heard_(runtime.get(visited.call(&Visited::visit)).status().to_string()) {}
  int answer() const { return 7; }
  std::string heard() const { return heard_; }

 private:
  const std::string heard_;
};

inline Result<int> Visited::visit() {
  return returner_.is_valid() ? runtime_.get(returner_.call(&Returner::answer)) : Result<int>(0);
}

inline void register_cycle_constructors(Runtime& rt) {
  rt.register_actor<Founder>("Founder", &Founder::serve);
  rt.register_actor<Joiner>("Joiner", &Joiner::heard);
  rt.register_actor<Seeker>("Seeker", &Seeker::nothing);
  rt.register_actor<Twin>("Twin", &Twin::nothing);
  rt.register_actor<Visited>("Visited", &Visited::know, &Visited::visit);
  rt.register_actor<Returner>("Returner", &Returner::answer, &Returner::heard);
}

}  // namespace runtime::test
