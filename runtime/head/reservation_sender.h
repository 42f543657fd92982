// ReservationSender: news for nodes about the placement groups that they hold, gathered into one
// message a node at a time (docs/adr/0022-gangs-are-reserved-in-two-phases.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"

namespace runtime {

/// The next message to a node leaves when it has answered the last one. What no group waits for (a
/// commit, a release) travels with what one waits for, or a little later.
class ReservationSender {
 public:
  /// A group's attempt to be placed.
  struct Attempt {
    GroupId group;
    std::uint64_t number = 0;
  };
  /// How a node has answered what it was asked to prepare. Before the next message leaves.
  using OnAnswer = std::function<void(NodeId node, const std::vector<Attempt>& asked,
                                      const Result<control::Refusals>& answer)>;

  ReservationSender(const HeadContext& context, OnAnswer on_answer)
      : context_(context), on_answer_(std::move(on_answer)) {}

  void prepare(NodeId node, Attempt attempt, ResourceMap resources);
  void commit(NodeId node, GroupId group);
  void release(NodeId node, GroupId group);
  /// Of a node that has come back over a new connection: this is all that it is to hold.
  void renew(NodeId node, std::vector<control::Holding> holdings);
  /// It has left.
  void forget(NodeId node) { nodes_.erase(node); }

  void tick(Deadline now);
  Deadline next_tick() const { return send_at_; }

 private:
  struct Node {
    control::Reserve next;
    std::vector<Attempt> asked;   // what `next` prepares
    std::uint64_t under_way = 0;  // the number of the message that it has not answered
  };
  void send(NodeId node);
  void send_later(NodeId node);
  void on_reserved(NodeId node, std::uint64_t number, const std::vector<Attempt>& asked,
                   Result<ControlAnswer> answer);

  const HeadContext& context_;
  const OnAnswer on_answer_;
  std::uint64_t messages_ = 0;
  std::map<NodeId, Node> nodes_;
  std::set<NodeId> waiting_;
  Deadline send_at_ = Deadline::max();
};

}  // namespace runtime
