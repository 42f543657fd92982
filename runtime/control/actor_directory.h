// ActorDirectory: the cluster's actors, as its head keeps them: made, found, watched, ended.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/control/node_client.h"

namespace runtime {

/// Over a connection to a node, which outlives it. As NodeClient's methods, any thread may call
/// these, and callbacks run on the I/O thread.
class ActorDirectory {
 public:
  template <class T>
  using Callback = NodeClient::Callback<T>;
  using Done = NodeClient::Done;

  explicit ActorDirectory(NodeClient& node) : node_(node) {}

  /// Answers when the actor is built, or with why it cannot be. kResourceExhausted names what is
  /// missing on which node. kInvalidArgument names a name that is taken or a class that the program
  /// lacks. kTaskFailed has what the constructor threw.
  void create(ActorSpec spec, Deadline deadline, Callback<ActorAddress> done);
  /// Waits for an actor that is still being created. Errors: kNotFound, kActorDied with the cause.
  void resolve(ActorId actor, Deadline deadline, Callback<ActorAddress> done);
  /// An empty namespace is the job's.
  void resolve_name(std::string name, std::string name_space, Deadline deadline,
                    Callback<ActorAddress> done);
  /// Asked by a caller whose connection to the actor broke. Waits up to a second for the process to
  /// be reaped, so that the answer has the cause. death_status() turns it into the caller's error.
  void state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
             Callback<ActorState> done);
  /// Ends the actor's process. Answers once it is gone; ending a dead actor is no error.
  /// `may_restart`: as if it had crashed.
  void kill(ActorId actor, bool may_restart, Deadline deadline, Done done);
  /// Tells the process that builds the actor, if one does, that calls wait for its constructor.
  /// The outcome is not reported.
  void tell_builder(control::ConstructorAwaited awaited);
  /// Lets the actor go on without the resources that it reserved.
  void park(ActorId actor, Deadline deadline, Done done);
  /// Ends the actor once it has served the calls that wait, by force at the deadline. Answers once
  /// it is gone. `restart`: it is started again then.
  void terminate(ActorId actor, bool restart, Deadline deadline, Done done);
  /// Answers with the actor's state as soon as its version is another than `version`.
  /// kDeadlineExceeded: nothing happened.
  void watch(ActorId actor, std::uint64_t version, Deadline deadline, Callback<ActorState> done);
  /// What the actor's next incarnation begins with. kCancelled: this incarnation has been replaced.
  /// kResourceExhausted: it is too large.
  void save_state(ActorId actor, std::uint64_t incarnation, std::string state, Deadline deadline,
                  Done done);

 private:
  NodeClient& node_;
};

}  // namespace runtime
