// NodeOfCallers: callers' questions to the node, over the process's connection to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/call/caller_context.h"
#include "runtime/control/node_client.h"

namespace runtime {

class NodeOfCallers final : public CallerNode {
 public:
  /// Both outlive it.
  NodeOfCallers(EventLoop& loop, NodeClient& node) : loop_(loop), node_(node) {}

  NodeId node_id() const override { return node_.node_id(); }
  std::string node_address() const override { return node_.node_address(); }
  void connect(const Endpoint& worker,
               UniqueFunction<void(Result<std::shared_ptr<Channel>>)> done) override;
  void state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
             Callback<ActorState> done) override;
  void resolve(ActorId actor, Deadline deadline, Callback<ActorAddress> done) override;
  void tell_builder(ActorId actor, const std::vector<WaitStep>& waits) override;

 private:
  EventLoop& loop_;
  NodeClient& node_;
};

}  // namespace runtime
