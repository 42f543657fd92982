// AwaitedActor: an actor on its way, as those that wait for its constructor see it.
#pragma once

#include <string>
#include <vector>

#include "runtime/call/awaited_call.h"
#include "runtime/control/control.h"
#include "runtime/control/node_client.h"

namespace runtime {

class AwaitedActor : public AwaitedCall {
 public:
  /// `node` outlives what `built` refers to, which settles when the constructor has returned or
  /// failed. `who`: "Counter 7f3a0011". `actor`: without a notice.
  AwaitedActor(NodeClient& node, ObjectStatePtr built, const std::string& who,
               control::ConstructorAwaited actor, bool has_own_limit);

  std::string describe() const override { return constructor_; }
  bool has_own_limit() const override { return has_own_limit_; }
  void tell(const std::vector<WaitStep>& waits) const override;
  void on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                bool fails) override;
  /// Nothing: another makes it.
  Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) override;

  /// `why`, with the cycle that is known. On the loop.
  Status with_cycle(const Status& why) const;

  /// As tell(), of any actor that may be on its way.
  static void tell_builder(NodeClient& node, control::ConstructorAwaited actor,
                           const std::vector<WaitStep>& waits);

 protected:
  NodeClient& node() const { return node_; }

 private:
  NodeClient& node_;
  const ObjectStatePtr built_;
  const std::string constructor_;
  const control::ConstructorAwaited actor_;
  const bool has_own_limit_;
  std::string cycle_;  // on the loop
};

}  // namespace runtime
