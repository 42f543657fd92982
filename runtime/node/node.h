// Node: the process that runs on every machine. It listens, supervises workers and submitted jobs,
// and keeps the object store. It passes on to the head what only the head can answer. On one
// machine it looks after the head's process. Each of these is a part's; the node wires them, and
// gives each request and event to the part that it is for.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/job/program_files.h"
#include "runtime/node/ask_head.h"
#include "runtime/node/autoscaler_process.h"
#include "runtime/node/client_table.h"
#include "runtime/node/departure.h"
#include "runtime/node/end_reports.h"
#include "runtime/node/head_connection.h"
#include "runtime/node/memory_guard.h"
#include "runtime/node/node_introspection.h"
#include "runtime/node/node_jobs.h"
#include "runtime/node/node_objects.h"
#include "runtime/node/node_options.h"
#include "runtime/node/node_ports.h"
#include "runtime/node/node_token.h"
#include "runtime/node/reservations.h"
#include "runtime/node/user_connections.h"
#include "runtime/node/worker_pool.h"
#include "runtime/process/log_keeper.h"

namespace runtime {

/// Everything happens on the event loop; the methods are for the main thread, which drives the loop
/// in wait(). It has a member for each part and a function that opens it: more than other classes.
class Node {
 public:
  /// Listens, joins the cluster. Blocks; not from the loop. Errors: kUnavailable (port in use; the
  /// head is gone), kInvalidArgument.
  static Result<std::unique_ptr<Node>> start(EventLoop& loop, NodeOptions options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Kills what still runs.
  ~Node();

  const std::string& address() const { return ports_->address(); }  // HOST:PORT
  /// The state of its object store. Call it on the loop, or while no thread drives that.
  ObjectStoreStats object_stats() const { return objects_->store().stats(); }

  /// Blocks until the node has stopped, and says why. kCancelled: it was asked to. kUnavailable:
  /// its head is gone, or (is_fenced()) has declared it dead.
  Status wait();
  /// The cluster continues without it, and would take it as a new node.
  bool is_fenced() const { return fenced_; }
  /// It was about to leave, or has asked for that. After wait().
  bool is_leaving() const { return departure_->is_leaving(); }
  /// Begins to stop: jobs and workers end, connections close. Any thread. A head stops the
  /// cluster's other nodes first.
  void stop(Status reason);
  /// Asks the head to have this node leave within that time, with what it has moved to others; then
  /// it stops. Any thread.
  void drain(std::string reason, std::chrono::milliseconds time);
  /// Ends wait() and nothing else; the destructor then kills what runs. Any thread.
  void quit(Status reason);

 private:
  Node(EventLoop& loop, NodeOptions options);

  // Wiring.
  Status open();
  Status open_ports();
  Status open_objects();
  void open_workers();
  void open_jobs(const std::filesystem::path& cache);
  void open_departure();
  void open_introspection();
  void open_head();
  Status join();
  AskHead ask_head();
  control::RegisterNode registration() const;

  // Connections and requests.
  void accept(std::shared_ptr<Channel> channel);
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  void on_closed(const Channel& channel, const Status& why);
  void serve_client(const std::shared_ptr<Channel>& channel, ControlRequest request,
                    ControlAnswerer answer);
  void serve_node(ControlRequest& request, ControlAnswerer answer);
  void serve_head(ControlRequest request, ControlAnswerer answer);
  void start_actor(JobId job, control::StartActor start, std::chrono::milliseconds timeout,
                   ControlAnswerer answer);
  void on_head_event(const ControlEvent& event);

  // The end.
  void on_lost(const Status& why);
  void stop_on_loop(const Status& reason);
  void tell_of_stop();
  void stop_others();
  void end_everything();

  EventLoop& loop_;
  const NodeOptions options_;
  NodeToken token_;
  NodeSetting setting_;
  ClientTable clients_;
  UserConnections user_connections_;
  Reservations reservations_;
  Lifetime lifetime_;  // first: the others ask the head by it
  EndReports ends_;
  std::unique_ptr<NodePorts> ports_;
  std::unique_ptr<NodeObjects> objects_;
  std::unique_ptr<ProgramFiles> programs_;
  std::unique_ptr<LogKeeper> logs_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<MemoryGuard> memory_;
  std::unique_ptr<NodeJobs> jobs_;
  std::unique_ptr<Departure> departure_;
  std::unique_ptr<NodeIntrospection> introspection_;
  std::unique_ptr<HeadConnection> head_;
  std::unique_ptr<AutoscalerProcess> autoscaler_;
  Event stopped_;
  Status stop_reason_;
  bool ending_ = false;  // jobs are, before the node stops
  bool stopping_ = false;
  std::string left_;  // what the autoscaler could not remove, in words
  bool fenced_ = false;
};

}  // namespace runtime
