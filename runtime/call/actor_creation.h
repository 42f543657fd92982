// ActorCreation: an actor on its way, as those that wait for its constructor see it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/call/awaited_call.h"
#include "runtime/core/ids.h"

namespace runtime {

class ActorCreation final : public AwaitedCall {
 public:
  /// Makes it what `created` waits for. The process keeps it until the creation is answered.
  static std::shared_ptr<ActorCreation> of(const std::shared_ptr<ObjectState>& created,
                                           const std::string& class_name, ActorId actor,
                                           std::chrono::milliseconds timeout);

  std::string describe() const override { return constructor_; }
  std::string constructor() const override { return constructor_; }
  bool has_own_limit() const override;
  /// A creation that fails ends the actor.
  void on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                bool fails) override;
  Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) override;

  /// `why`, with the cycle that is known. On the loop.
  Status with_cycle(const Status& why) const;

 private:
  ActorCreation(std::shared_ptr<ObjectState> created, std::string constructor, ActorId actor,
                std::chrono::milliseconds timeout)
      : created_(std::move(created)),
        constructor_(std::move(constructor)),
        actor_(actor),
        timeout_(timeout) {}

  const std::shared_ptr<ObjectState> created_;
  const std::string constructor_;
  const ActorId actor_;
  const std::chrono::milliseconds timeout_;
  std::string cycle_;
};

}  // namespace runtime
