// Node: the process that runs on every machine. It listens, supervises workers and submitted jobs,
// keeps the object store, and passes on to the head what only the head can answer; on one machine
// it looks after the head's process.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/node/head_child.h"
#include "runtime/node/head_link.h"
#include "runtime/node/job_fetcher.h"
#include "runtime/node/job_files.h"
#include "runtime/node/job_runner.h"
#include "runtime/node/kept_process.h"
#include "runtime/node/lease_keeper.h"
#include "runtime/node/log_keeper.h"
#include "runtime/node/memory_guard.h"
#include "runtime/node/node_eyes.h"
#include "runtime/node/preemption_watch.h"
#include "runtime/node/process_watch.h"
#include "runtime/node/program_files.h"
#include "runtime/node/reservations.h"
#include "runtime/node/worker_pool.h"
#include "runtime/object/object_store.h"
#include "runtime/transport/listener.h"

namespace runtime {

struct NodeOptions {
  ClusterId cluster;
  NodeId node;
  std::string token;
  std::string next_token;  // a change to it was begun, and may have been recorded; empty: none
  /// Another token may be the cluster's next, or (`is_present`) is the cluster's: what lies on disk
  /// is to say so. On the loop. May be empty.
  std::function<Status(const std::string& token, bool is_present)> keep_token;
  Endpoint bind;                  // TCP; port 0 picks one
  std::string advertise_host;     // what other machines connect to; empty: the bound one
  std::vector<Endpoint> aliases;  // at which callers reach it too, through forwarded ports
  bool plain = false;             // nothing over TCP is encrypted
  std::filesystem::path session_dir;
  ResourceMap resources;
  Labels labels;
  std::uint64_t object_store_bytes = 0;  // 0: ObjectStore's default
  SpillOptions spill;                    // an empty folder: none
  MemoryGuardOptions memory;
  Endpoint head;                  // HOST:PORT of the node beside the head; not of that node itself
  bool is_head = false;           // that node: the head is a process beside it
  std::string program;            // starling, for the head's process
  std::filesystem::path journal;  // of the head; empty: what it knows ends with its process
  bool durable = false;  // the journal outlives this node, and another one may go on with it
  std::vector<std::string> autoscaler;  // arguments of `starling` for the process beside the head
                                        // that adds and removes nodes; empty: none
  std::chrono::milliseconds autoscaler_stop{
      0};           // how long that may take to remove them when the cluster stops
  NodeId replaces;  // an earlier node of this machine that is known to be dead
  HeadLinkOptions link;
  std::uint64_t log_limit = 0;  // bytes of logs that are kept; 0: LogKeeper's default
  std::uint64_t job_size_limit =
      0;                 // bytes of files that a submitted job may bring; 0: JobFiles' default
  std::string job_user;  // as whom jobs run that nothing proves the user of, on a node of root's;
                         // empty: they are refused
  PreemptionOptions preemption;
  std::chrono::milliseconds drain_time{
      30'000};  // when this machine is about to be taken away, and nobody says how soon
  MetricsAccess metrics_access = MetricsAccess::kKey;
  MetricsProvider metrics;
  TlsFiles tls;  // of what it says over HTTP
};

/// Everything happens on the event loop; the methods are for the main thread, which drives the loop
/// in wait().
class Node {
 public:
  /// Listens, joins the cluster. Blocks; not from the loop. Errors: kUnavailable (port in use; the
  /// head is gone), kInvalidArgument.
  static Result<std::unique_ptr<Node>> start(EventLoop& loop, NodeOptions options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Kills what still runs.
  ~Node();

  const std::string& address() const { return address_; }  // HOST:PORT
  /// Of its object store; on the loop, or while nobody drives it.
  ObjectStoreStats object_stats() const { return objects_->stats(); }

  /// Blocks until the node has stopped; says why: kCancelled when it was asked to, kUnavailable
  /// when its head is gone, or (is_fenced()) has declared it dead.
  Status wait();
  /// The cluster goes on without it, and would take it as a new node.
  bool is_fenced() const { return fenced_; }
  /// It was about to leave, or has asked for that. After wait().
  bool is_leaving() const { return leave_at_ != Deadline::max(); }
  /// Begins to stop: jobs and workers end, connections close. Any thread. A head stops the
  /// cluster's other nodes first.
  void stop(Status reason);
  /// Asks the head to have this node leave within that time, with what it has moved to others; then
  /// it stops. Any thread.
  void drain(std::string reason, std::chrono::milliseconds time);
  /// Ends wait() and nothing else; the destructor then kills what runs. Any thread.
  void quit(Status reason);

 private:
  struct Client {  // a connection that came in
    std::shared_ptr<Channel> channel;
    JobId job;                                   // of a registered driver, or a worker
    std::optional<std::int32_t> exit_code = {};  // of a driver that is done
    std::string stop_reason = {};                // of one that was told to end
    std::shared_ptr<ProcessWatch> process = {};  // of a driver on this machine
  };
  struct Submission;  // a submitted job until its process runs

  Node(EventLoop& loop, NodeOptions options);
  Status open();
  Status open_store();
  void open_workers();
  void open_jobs(const std::filesystem::path& cache);
  Status listen();
  Status join();
  void link_to_head();
  void open_eyes();
  control::RegisterNode registration() const;
  void on_lost(const Status& why);
  /// Tells the head of ends until it has confirmed them: from then on it asks no more for those
  /// incarnations.
  void report_ends(JobId job, const std::vector<control::ActorInstance>& ended,
                   ControlRequest::Body report);

  void accept(std::shared_ptr<Channel> channel);
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  void on_closed(const std::shared_ptr<Channel>& channel, const Status& why);
  void serve_client(const std::shared_ptr<Channel>& channel, ControlRequest request,
                    ControlAnswerer answer);
  void serve_node(ControlRequest& request, ControlAnswerer answer);
  void serve_head(ControlRequest request, ControlAnswerer answer);
  void serve_objects(ObjectControl& request, std::chrono::milliseconds timeout,
                     ControlAnswerer answer);
  /// Whether the node is in the cluster; true when nobody knows.
  void is_member(NodeId node, UniqueFunction<void(bool)> done);
  void on_head_event(const ControlEvent& event);
  void register_driver(const std::shared_ptr<Channel>& channel, JobId wanted, DriverInfo info,
                       ControlAnswerer answer);
  // Jobs: node_jobs.cpp.
  bool is_job_of(JobId job, const PeerInfo& peer) const;
  bool serve_job(const std::shared_ptr<Channel>& channel, ControlRequest& request,
                 ControlAnswerer& answer);
  void submit(const std::shared_ptr<Channel>& channel, control::SubmitJob body,
              ControlAnswerer answer);
  void queue_job(const std::shared_ptr<Channel>& channel, control::QueueJob body,
                 std::chrono::milliseconds patience, ControlAnswerer answer);
  /// One that is queued here will not run.
  void drop_queued(JobId job, JobOutcome outcome, const std::string& reason);
  void on_submitter_closed(const Channel& channel);
  void find_gpus(const std::shared_ptr<Submission>& submission);
  void prepare(const std::shared_ptr<Submission>& submission);
  void run_job(const std::shared_ptr<Submission>& submission, const JobFolder& folder);
  void submission_failed(const std::shared_ptr<Submission>& submission, JobOutcome outcome,
                         const Status& why);
  /// Ends a job that runs on this node.
  Status cancel_job(JobId job, const std::string& reason);
  void find_folder(JobId job, const control::StartActor& start, Deadline deadline,
                   std::function<void(Result<std::string>)> found);
  void watch_driver(Channel& channel);
  void on_driver_closed(const Client& driver);
  void on_job_ended(JobId job, JobOutcome outcome, const DeathCause& cause);
  void list_jobs(std::vector<JobId>& jobs) const;
  void on_log(LogLines lines);

  void on_token_changed(const control::TokenChanged& changed);
  /// A process that has just connected.
  void tell_of_token(Channel& channel);

  // Leaving: node_drain.cpp.
  void drain_on_loop(const std::string& reason, std::chrono::milliseconds time,
                     UniqueFunction<void(Status)> done);
  /// Whatever the head says.
  void leave_by(Deadline deadline, const std::string& reason);
  void on_node_drains(const control::NodeDrains& drains);
  /// A process that has just connected.
  void tell_of_drains(Channel& channel);
  void warn_jobs();
  Status watch_for_preemption();
  Status refuse_while_drained(const std::string& what) const;
  void take_over(const control::TakeOver& body, std::chrono::milliseconds timeout,
                 ControlAnswerer answer);
  /// Where an object is whose node was drained.
  void find_moved(const ObjectLocation& lost, UniqueFunction<void(Result<ObjectLocation>)> done);

  void to_head(ControlRequest request, ControlAnswerer answer,
               HeadLink::Urgency urgency = HeadLink::Urgency::kWaits);
  /// What the head has to hear, however long it is away.
  void tell_head(ControlRequest::Body body, JobId job, UniqueFunction<void()> confirmed = nullptr);
  Client* driver_of(JobId job);
  Status start_autoscaler();
  /// It has ended: what does it leave?
  void read_what_is_left();
  void stop_on_loop(Status reason);
  void end_everything();
  NodeInfo info() const;
  Credentials credentials() const;

  EventLoop& loop_;
  NodeOptions options_;
  Keyring keyring_;
  std::string address_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<ProgramFiles> programs_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<MemoryGuard> memory_;
  std::unique_ptr<JobRunner> jobs_;
  std::unique_ptr<JobFiles> job_files_;
  std::unique_ptr<JobFetcher> job_fetcher_;
  std::unique_ptr<LogKeeper> logs_;
  std::map<JobId, std::shared_ptr<Submission>> submissions_;
  struct Queued {
    const Channel* submitter;  // who will submit it when it has its place
    GroupId place;             // known to that one alone
    std::string user;          // whose it is; empty: not known
  };
  std::map<JobId, Queued> queued_;      // jobs that wait for a place
  std::map<JobId, JobInfo> submitted_;  // that run
  std::set<JobId> unconfirmed_job_ends_;
  std::unique_ptr<NodeEyes> eyes_;
  std::unique_ptr<HeadChild> head_child_;
  std::unique_ptr<HeadLink> head_;
  std::unique_ptr<LeaseKeeper> lease_;
  std::unique_ptr<KeptProcess> autoscaler_;
  std::unique_ptr<Listener> tcp_;
  std::unique_ptr<Listener> unix_;
  std::map<const Channel*, Client, ChannelOrder> clients_;
  Reservations reservations_;
  std::vector<std::string>
      gpu_names_;  // what CUDA_VISIBLE_DEVICES has for each GPU that the node offers
  std::map<pid_t, std::string> ends_;  // how the last actors' processes ended
  std::set<control::ActorInstance> unconfirmed_ends_;
  Event stopped_;
  Status stop_reason_;
  bool stopping_ = false;
  bool autoscaler_stops_ = false;
  std::string left_;  // what the autoscaler could not remove, in words
  bool fenced_ = false;
  static constexpr std::chrono::minutes kDrainsKept{1};                // after their deadline
  std::map<NodeId, std::pair<control::NodeDrains, Deadline>> drains_;  // of all nodes
  std::optional<std::string> drained_;  // why this node is about to leave
  Timer leave_timer_;
  Deadline leave_at_ = Deadline::max();
  Timer jobs_timer_;
  std::vector<std::unique_ptr<PreemptionWatch>> watches_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // false once destroyed, for callbacks still under way
};

}  // namespace runtime
