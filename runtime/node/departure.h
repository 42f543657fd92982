// Departure: a node's leaving of the cluster. It asks to be drained, hears which nodes leave, and
// ends the node at the last.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/preemption_watch.h"
#include "runtime/transport/channel.h"

namespace runtime {

struct DepartureOptions {
  NodeId node;
  std::string address;  // HOST:PORT, for messages
  PreemptionOptions preemption;
  std::chrono::milliseconds drain_time{30'000};  // when a notice does not say how soon
};

/// Lives on the event loop.
class Departure {
 public:
  struct Callbacks {
    AskHead head;
    std::function<void(const control::NodeDrains&)> node_drains;  // this node, or another
    std::function<void()> begin;      // this node leaves: it takes nothing new
    std::function<void()> warn_jobs;  // this node leaves soon
    std::function<void(Status why)> leave;
  };

  Departure(EventLoop& loop, DepartureOptions options, Callbacks callbacks);
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;

  /// Errors: kInvalidArgument (PreemptionOptions).
  Status watch_for_preemption();
  /// Asks the head to have this node leave within that time.
  void ask(const std::string& reason, std::chrono::milliseconds time,
           UniqueFunction<void(Status)> done);
  /// The head says that a node is drained.
  void on_node_drains(const control::NodeDrains& drains);
  /// To a process that has just connected: which nodes leave.
  void tell(Channel& channel) const;
  /// kUnavailable while this node is drained, naming what is refused ("jobs").
  Status refuse(const std::string& what) const;
  /// Why this node is about to leave; nothing: it is not.
  const std::optional<std::string>& reason() const { return drained_; }
  /// It was about to leave, or has asked for that.
  bool is_leaving() const { return leave_at_ != Deadline::max(); }
  /// The node ends: nothing is waited for any more.
  void stop();

 private:
  /// Whatever the head says.
  void leave_by(Deadline deadline, const std::string& reason);
  void on_notice(const PreemptionNotice& notice, UniqueFunction<void(bool)> answer);

  static constexpr std::chrono::minutes kDrainsKept{1};  // after their deadline

  EventLoop& loop_;
  const DepartureOptions options_;
  const Callbacks callbacks_;
  std::map<NodeId, std::pair<control::NodeDrains, Deadline>> drains_;  // of all nodes
  std::optional<std::string> drained_;
  Timer leave_timer_;
  Deadline leave_at_ = Deadline::max();
  Timer jobs_timer_;
  std::vector<std::unique_ptr<PreemptionWatch>> watches_;
  bool stopped_ = false;
  Lifetime lifetime_;
};

}  // namespace runtime
