// Node: the process that runs on every machine. It listens, supervises workers and submitted jobs, keeps the object store, and
// passes on to the head what only the head can answer; on one machine it hosts the head.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/control/control.h"
#include "runtime/head/head_service.h"
#include "runtime/node/job_runner.h"
#include "runtime/node/memory_guard.h"
#include "runtime/node/program_files.h"
#include "runtime/head/scheduler.h"
#include "runtime/node/worker_pool.h"
#include "runtime/object/object_store.h"
#include "runtime/transport/listener.h"

namespace runtime {

struct NodeOptions {
  ClusterId cluster;
  NodeId node;
  std::string token;
  Endpoint bind;                // TCP; port 0 picks one
  std::string advertise_host;   // what other machines connect to; empty: the bound one
  std::filesystem::path session_dir;
  ResourceMap resources;
  Labels labels;
  std::uint64_t object_store_bytes = 0;  // 0: ObjectStore's default
  SpillOptions spill;                    // an empty folder: none
  MemoryGuardOptions memory;
  /// Exactly one of the two: the connection to the head, or what the head that is to live here schedules with.
  std::shared_ptr<Channel> head;
  std::unique_ptr<Scheduler> scheduler;
};

/// Everything happens on the event loop; the methods are for the main thread, which drives the loop in wait().
class Node {
 public:
  /// Listens, joins the cluster. Blocks; not from the loop. Errors: kUnavailable (port in use; the head is gone), kInvalidArgument.
  static Result<std::unique_ptr<Node>> start(EventLoop& loop, NodeOptions options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Kills what still runs.
  ~Node();

  const std::string& address() const { return address_; }  // HOST:PORT
  /// Of its object store; on the loop, or while nobody drives it.
  ObjectStoreStats object_stats() const { return objects_->stats(); }

  /// Blocks until the node has stopped; says why: kCancelled when it was asked to, kUnavailable when its head is gone.
  Status wait();
  /// Begins to stop: jobs and workers end, connections close. Any thread. A head stops the cluster's other nodes first.
  void stop(Status reason);
  /// Ends wait() and nothing else; the destructor then kills what runs. Any thread.
  void quit(Status reason);

 private:
  struct Client {  // a connection that came in
    std::shared_ptr<Channel> channel;
    JobId job;  // of a registered driver, or a worker
  };

  Node(EventLoop& loop, NodeOptions options);
  Status open();
  Status listen();
  Status join();
  void watch_head();
  void end_unless_back(const std::shared_ptr<Channel>& channel);
  void beat();

  void accept(std::shared_ptr<Channel> channel);
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  void on_closed(const std::shared_ptr<Channel>& channel, const Status& why);
  void serve_client(const std::shared_ptr<Channel>& channel, ControlRequest request, ControlAnswerer answer);
  void serve_node(const std::shared_ptr<Channel>& channel, ControlRequest request, ControlAnswerer answer);
  void serve_head(ControlRequest request, ControlAnswerer answer);
  void serve_objects(ObjectControl& request, std::chrono::milliseconds timeout, ControlAnswerer answer);
  /// Whether the node is in the cluster; true when nobody knows.
  void is_member(NodeId node, UniqueFunction<void(bool)> done);
  void on_head_event(const ControlEvent& event);
  void register_driver(const std::shared_ptr<Channel>& channel, JobId wanted, DriverInfo info, ControlAnswerer answer);
  void submit(const std::shared_ptr<Channel>& channel, const control::SubmitJob& body, ControlAnswerer answer);
  void on_log(LogLines lines);

  void to_head(ControlRequest request, ControlAnswerer answer);
  void tell_head(ControlRequest::Body body, JobId job);
  Client* driver_of(JobId job);
  void stop_on_loop(Status reason);
  void end_everything();
  NodeInfo info() const;
  Credentials credentials() const;

  EventLoop& loop_;
  NodeOptions options_;
  std::string address_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<ProgramFiles> programs_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<MemoryGuard> memory_;
  std::unique_ptr<JobRunner> jobs_;
  std::unique_ptr<HeadService> head_;
  std::unique_ptr<Listener> tcp_;
  std::unique_ptr<Listener> unix_;
  std::map<const Channel*, Client, ChannelOrder> clients_;
  std::map<pid_t, std::string> ends_;  // how the last actors' processes ended
  std::unique_ptr<Timer> heartbeat_;
  Deadline head_heard_ = Deadline::min();  // when it last answered
  Event stopped_;
  Status stop_reason_;
  bool stopping_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // false once destroyed, for callbacks still under way
};

}  // namespace runtime
