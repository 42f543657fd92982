// ActorCreation: an actor that this process makes, as those that wait for its constructor see it.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/call/awaited_actor.h"

namespace runtime {

class ActorCreation final : public AwaitedActor {
 public:
  /// Makes it what `created` waits for. The process keeps it until the creation is answered.
  static std::shared_ptr<ActorCreation> of(NodeClient& node, const ObjectStatePtr& created,
                                           const ActorSpec& spec,
                                           std::chrono::milliseconds timeout);

  /// A creation that fails ends the actor.
  Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) override;

 private:
  ActorCreation(NodeClient& node, const ObjectStatePtr& created, const ActorSpec& spec,
                std::chrono::milliseconds timeout);

  const ActorId actor_;
};

}  // namespace runtime
