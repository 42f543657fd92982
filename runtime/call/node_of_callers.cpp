#include "runtime/call/node_of_callers.h"

#include <utility>

#include "runtime/call/awaited_actor.h"
#include "runtime/control/actor_directory.h"
#include "runtime/transport/listener.h"

namespace runtime {

void NodeOfCallers::connect(const Endpoint& worker,
                            UniqueFunction<void(Result<std::shared_ptr<Channel>>)> done) {
  // Which start of an actor a call is for is checked with every call: a worker process may outlive
  // an actor.
  ConnectOptions options;
  options.lasting = true;  // over TCP: calls, replies and streams survive a lost socket
  runtime::connect(loop_, worker, node_.credentials(), options, std::move(done));
}

void NodeOfCallers::state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
                          Callback<ActorState> done) {
  ActorDirectory(node_).state(actor, incarnation, deadline, std::move(done));
}

void NodeOfCallers::resolve(ActorId actor, Deadline deadline, Callback<ActorAddress> done) {
  ActorDirectory(node_).resolve(actor, deadline, std::move(done));
}

void NodeOfCallers::tell_builder(ActorId actor, const std::vector<WaitStep>& waits) {
  AwaitedActor::tell_builder(node_, {actor}, waits);
}

}  // namespace runtime
