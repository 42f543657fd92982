// HeadService: gives the head its connections, leases, a clock and a journal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/head/away_requests.h"
#include "runtime/head/head.h"
#include "runtime/head/journal.h"
#include "runtime/head/recorded_line.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct HeadServiceOptions {
  /// A node that is silent for longer is lost; a restarted head gives each as long to come back. A
  /// partition is to be known within 10 s, a cut of 8 s to cost time only. So it leaves a second
  /// for a node to be heard again, since a lost SYN is sent again after that time. It leaves half
  /// of one for a link that is dead in one direction and still carries what was in flight.
  std::chrono::milliseconds lease{9400};
  NodeId host;  // whose process the head's is a part of; while that lives it is not lost by being
                // silent
};

/// Lives on the event loop. Nothing that depends on a change leaves the head before the journal has
/// the change. Answers, requests to nodes and events wait in line, in order. So what a process
/// was told is true after any crash.
class HeadService final : private HeadLinks {
 public:
  /// Without a journal nothing outlives the process.
  HeadService(EventLoop& loop, ClusterId cluster, std::unique_ptr<Scheduler> scheduler,
              std::unique_ptr<Journal> journal, HeadServiceOptions options = {},
              HeadOptions head = {});
  ~HeadService() override;

  /// Takes over what the journal holds; before the first node. Errors: the journal's.
  Status recover();

  /// Handles a node's request.
  void handle(const std::shared_ptr<Channel>& channel, ControlRequest request,
              ControlAnswerer answer);
  void handle_event(const std::shared_ptr<Channel>& channel, const ControlEvent& event);
  /// A connection ended, for instance of one that handle() saw.
  void on_closed(const Channel& channel, const Status& why);

  /// Asks all nodes but this one to stop; `done` runs when they are gone or `patience` is over.
  void stop_nodes(NodeId but, std::chrono::milliseconds patience, std::function<void()> done);

  const Head& head() const { return head_; }

 private:
  class Turn;
  struct Link {
    std::shared_ptr<Channel> channel;  // null: not back yet
    Deadline heard;
  };

  void request(NodeId node, ControlRequest request, ControlAnswerer answer) override;
  /// Sends a request that is recorded, or keeps it for a member that may come back.
  void send(NodeId node, ControlRequest request, ControlAnswerer answer);
  /// What waited for the node goes to it, or is answered: it is lost.
  void send_awaiting(NodeId node);
  void event(NodeId node, const ControlEvent& event) override;
  void when_recorded(UniqueFunction<void()> action) override;
  bool is_connected(NodeId node) const override;
  /// Why the request is better refused: nothing can be recorded, or there is hardly room.
  Status check_journal(const ControlRequest& request) const;
  /// Within a turn: once everything that was decided in it is recorded.
  void leave(UniqueFunction<void()> action);
  void end_turn();
  void send_unrecorded_ends();
  void rearm();
  void check_leases();
  void lose(NodeId node, const std::string& why);
  void stop_node(Channel& channel) const;
  void maybe_all_stopped();
  Numbers numbers() const;

  EventLoop& loop_;
  const HeadServiceOptions options_;
  RecordedLine line_;
  std::uint64_t leases_missed_ = 0;
  std::uint64_t returns_ = 0;  // of nodes that had been connected before
  bool in_turn_ = false;
  std::map<NodeId, Link> links_;
  AwayRequests away_;
  Timer tick_timer_;
  Deadline tick_at_ = Deadline::max();
  Timer lease_timer_;
  Deadline leases_due_ = Deadline::max();  // when they are looked at next
  Timer stop_timer_;
  NodeId stops_last_;
  std::optional<std::chrono::milliseconds> stop_patience_;  // set: the cluster is being stopped
  std::function<void()> on_all_stopped_;
  Lifetime lifetime_;
  Head head_;  // last: it uses the links
};

}  // namespace runtime
