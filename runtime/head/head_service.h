// HeadService: the head inside of its node. Gives it connections, leases and a clock.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "runtime/core/timer.h"
#include "runtime/head/head.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct HeadServiceOptions {
  std::chrono::milliseconds lease{10000};  // a node that is silent for longer is lost
};

/// What a node does for the head.
struct NodeDuties {
  std::function<void(ControlRequest, ControlAnswerer)> request;
  std::function<void(const ControlEvent&)> event;
};

/// Lives on the event loop.
class HeadService final : private HeadLinks {
 public:
  /// `own` is the node in whose process this is, reached without a connection.
  HeadService(EventLoop& loop, ClusterId cluster, NodeId own, NodeDuties duties, std::unique_ptr<Scheduler> scheduler,
              HeadServiceOptions options = {});
  ~HeadService() override;

  /// From the own node. The answer comes later, never from inside the call.
  void handle_own(ControlRequest request, ControlAnswerer answer);
  void handle_own_event(const ControlEvent& event);

  /// From another node.
  void handle(const std::shared_ptr<Channel>& channel, ControlRequest request, ControlAnswerer answer);
  void handle_event(const std::shared_ptr<Channel>& channel, const ControlEvent& event);
  /// A node's connection ended, for instance of one that handle() saw.
  void on_closed(const Channel& channel, const Status& why);

  /// Asks all other nodes to stop; `done` runs when all are gone or `patience` is over.
  void stop_nodes(std::chrono::milliseconds patience, std::function<void()> done);

 private:
  void request(NodeId node, ControlRequest request, ControlAnswerer answer) override;
  void event(NodeId node, const ControlEvent& event) override;
  void rearm();
  void check_leases();
  void maybe_all_stopped();

  struct Link {
    std::shared_ptr<Channel> channel;
    Deadline heard;
  };

  EventLoop& loop_;
  const NodeId own_;
  NodeDuties duties_;
  const HeadServiceOptions options_;
  std::map<NodeId, Link> links_;
  Timer tick_timer_;
  Deadline tick_at_ = Deadline::max();
  Timer lease_timer_;
  Timer stop_timer_;
  std::function<void()> on_all_stopped_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Head head_;  // last: it uses the links
};

}  // namespace runtime
