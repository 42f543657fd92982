// Worker: a process that a node started to run an actor, or many shared ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "runtime/call/fwd.h"
#include "runtime/core/result.h"
#include "runtime/transport/listener.h"
#include "runtime/worker/actor_executor.h"
#include "runtime/worker/actor_table.h"

namespace runtime {

/// Connects to the node, listens for callers, runs what the node asks for.
class Worker {
 public:
  /// Reads the environment that the node gave. `makers` is called as long as the worker runs.
  /// Errors: those of NodeClient::connect_worker and Listener::listen.
  static Result<std::unique_ptr<Worker>> start(std::shared_ptr<Process> process,
                                               ActorMakers makers);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Serves until the node says to end or is gone. On the thread that is to run the actor of a
  /// process that it has alone.
  void run();

 private:
  Worker(std::shared_ptr<Process> process, ActorMakers makers);
  /// Once: the node's requests come in from then on.
  void serve_node();
  void on_shutdown(const Status& reason);
  void finish();

  std::shared_ptr<Process> process_;
  ActorExecutor executor_;
  std::shared_ptr<ActorTable> actors_;
  std::unique_ptr<Listener> listener_;
  /// Connections that came in, by serial; touched on the loop only.
  using Callers = std::map<std::uint64_t, std::weak_ptr<Channel>>;
  std::shared_ptr<Callers> callers_ = std::make_shared<Callers>();
  std::shared_ptr<void> watchdog_;
};

}  // namespace runtime
