// HeadProcess: the head as a separate process, next to its node. Its node starts it, and again when
// it has died. The node also passes on to it what comes in for it at the machine's one TCP port. So
// a node that is busy holds up no head, and a head that dies takes nothing with it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/control/scheduler.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/head/head_service.h"
#include "runtime/transport/listener.h"

namespace runtime {

struct HeadProcessOptions {
  ClusterId cluster;
  std::string token;
  NodeId node;                   // whose process this is: the one that may stop the cluster
  std::filesystem::path socket;  // of the head, for its node
  /// Opens the journal; empty: nothing outlives the process.
  std::function<Result<std::unique_ptr<Journal>>(EventLoop&)> open_journal;
  std::unique_ptr<Scheduler> scheduler;
  HeadServiceOptions service;
  HeadOptions head;
};

/// Everything happens on the event loop; the methods are for the main thread, which drives the loop
/// in wait().
class HeadProcess {
 public:
  /// Recovers what the journal holds and listens. Blocks; not from the loop. Errors: the journal's;
  /// kUnavailable (the socket is in use).
  static Result<std::unique_ptr<HeadProcess>> start(EventLoop& loop, HeadProcessOptions options);
  HeadProcess(const HeadProcess&) = delete;
  HeadProcess& operator=(const HeadProcess&) = delete;
  ~HeadProcess();

  /// Blocks until quit(), or until its node is gone for good.
  Status wait();
  /// Any thread.
  void quit(Status reason);
  /// Call it on the loop's thread.
  const ClusterTables& tables() const { return service_->head().tables(); }

 private:
  HeadProcess(EventLoop& loop, HeadProcessOptions options);
  Status open();
  void accept(const std::shared_ptr<Channel>& channel);
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  Status check_owner(const PeerInfo& peer) const;
  void serve(const std::shared_ptr<Channel>& channel, ControlRequest request,
             ControlAnswerer answer);

  EventLoop& loop_;
  HeadProcessOptions options_;
  std::unique_ptr<HeadService> service_;
  std::unique_ptr<Listener> listener_;
  std::map<std::uint64_t, std::shared_ptr<Channel>> channels_;  // by serial
  Event stopped_;
  Status stop_reason_;
  Lifetime lifetime_;
};

}  // namespace runtime
