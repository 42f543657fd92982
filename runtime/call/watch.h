// Watch: to be told when an actor dies or is restarted, and when nodes come and go.
#pragma once

#include <functional>
#include <memory>

#include "runtime/call/fwd.h"
#include "runtime/call/published.h"
#include "runtime/control/membership.h"
#include "runtime/core/status.h"

namespace runtime {

struct ActorEvent {
  enum class Kind {
    kRestarting,  // its process ended; state.death says how; it will run again
    kAlive,       // it runs again
    kDead,        // for good; state.death says how
  };
  Kind kind = Kind::kDead;
  ActorState state;

  /// What callers get: "actor Counter 7f3a (pid 12 on node 33aa) died: killed by SIGKILL".
  Status death() const { return death_status(state); }
};

struct NodeEvent {
  enum class Kind {
    kJoined,
    kLeft,      // it was drained
    kDraining,  // it is about to leave; `deadline` and `why`. Again if the deadline moves
    kLost,      // it has gone without that: it died, was stopped, or could not be reached
  };
  Kind kind = Kind::kJoined;
  NodeInfo node{};  // with its resources and labels
  std::string
      why{};  // of kDraining the reason as it was given; of kLeft and kLost what became of the node
  Deadline deadline{};  // of kDraining: it is gone then
};

/// Calls back as long as it lives. When its destructor or stop() has returned no callback runs or
/// will run, unless it was called from within one.
class Watch {
 public:
  /// Watches nothing.
  Watch() = default;
  Watch(Watch&& other) noexcept : state_(std::move(other.state_)) {}
  Watch& operator=(Watch&& other) noexcept;
  ~Watch() { stop(); }

  bool is_active() const { return state_ != nullptr; }
  void stop();

  /// Private to the runtime: see Runtime::watch.
  static Watch on_actor(const QueryContextPtr& queries, ActorId actor,
                        std::function<void(const ActorEvent&)> callback);
  static Watch on_published(const QueryContextPtr& queries, std::string name,
                            std::string name_space,
                            std::function<void(const PublishedEvent&)> callback);
  static Watch on_nodes(const QueryContextPtr& queries,
                        std::function<void(const NodeEvent&)> callback);

 private:
  class State;
  class OfActor;
  class OfNodes;
  class OfPublished;
  explicit Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace runtime
