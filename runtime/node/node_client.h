// How drivers, workers and the command line talk to their node, which passes on what only the head
// can answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/control/demand.h"
#include "runtime/control/membership.h"
#include "runtime/control/object_control.h"
#include "runtime/control/observe.h"
#include "runtime/core/result.h"
#include "runtime/node/session.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

namespace control {
struct QueueJob;
}

/// One connection to a node. Every method may be called from any thread and returns at once; its
/// callback runs exactly once, on the I/O thread, with the answer or a typed error
/// (kDeadlineExceeded, kUnavailable when the node is gone). Set the event handlers before anything
/// can arrive: right after connect(), from the connecting thread.
class NodeClient {
 public:
  template <class T>
  using Callback = std::function<void(Result<T>)>;
  using Done = std::function<void(Status)>;

  /// Connects to the node at `address` (blocks until connected or failed). `role` says what this
  /// process is. Errors: kUnavailable (nothing listens, or it is no Starling port),
  /// kInvalidArgument (wrong token, other cluster).
  static Result<std::unique_ptr<NodeClient>> connect(EventLoop& loop, const ClusterAddress& address,
                                                     Role role, Deadline deadline);
  /// The connection of a worker process, as its node's environment says (worker_environment.h:
  /// is_worker_process()).
  static Result<std::unique_ptr<NodeClient>> connect_worker(EventLoop& loop, Deadline deadline);

  NodeClient(const NodeClient&) = delete;
  NodeClient& operator=(const NodeClient&) = delete;
  ~NodeClient();

  std::shared_ptr<Channel> channel() const;
  NodeId node_id() const;
  ClusterId cluster_id() const;
  WorkerId worker_id() const;  // none unless a worker
  JobId job_id() const;  // none until register_driver answered; a worker has it from the start
  const std::string& session_dir() const;  // of the node; empty when the node is on another machine
  std::string node_address() const;        // HOST:PORT of the node, to give to peers
  /// Where a worker listens for calls from this node's processes; empty for others.
  std::string worker_socket_path() const;
  /// What this process proves itself with to actors and other nodes.
  Credentials credentials() const;

  /// Makes this process the driver of a job (`info` from describe_this_program(), program_files.h).
  /// The job ends with this client, and its actors with it.
  void register_driver(DriverInfo info, Deadline deadline, Callback<JobId> done);
  /// How its main function ended; else the end of this client is the end of a driver that crashed.
  void driver_done(std::int32_t exit_code);

  /// Answers when the actor is built, or with why it cannot be: kResourceExhausted names what is
  /// missing on which node, kInvalidArgument a name that is taken or a class that the program
  /// lacks, kTaskFailed what the constructor threw.
  void create_actor(ActorSpec spec, Deadline deadline, Callback<ActorAddress> done);
  /// Waits for an actor that is still being created. Errors: kNotFound, kActorDied with the cause.
  void resolve_actor(ActorId actor, Deadline deadline, Callback<ActorAddress> done);
  /// An empty namespace is the job's.
  void resolve_name(std::string name, std::string name_space, Deadline deadline,
                    Callback<ActorAddress> done);
  /// Asked by a caller whose connection to the actor broke: waits up to a second for the process to
  /// be reaped, so that the answer has the cause. death_status() turns it into the caller's error.
  void actor_state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
                   Callback<ActorState> done);
  /// Ends the actor's process. Answers once it is gone; ending a dead actor is no error.
  /// `may_restart`: as if it had crashed.
  void kill_actor(ActorId actor, bool may_restart, Deadline deadline, Done done);
  /// Lets the actor go on without the resources that it reserved.
  void park_actor(ActorId actor, Deadline deadline, Done done);
  /// Ends the actor once it has served the calls that wait, by force at the deadline. Answers once
  /// it is gone. `restart`: it is started again then.
  void terminate_actor(ActorId actor, bool restart, Deadline deadline, Done done);
  /// Answers with the actor's state as soon as its version is another than `version`.
  /// kDeadlineExceeded: nothing happened.
  void watch_actor(ActorId actor, std::uint64_t version, Deadline deadline,
                   Callback<ActorState> done);
  struct NodeList {
    std::uint64_t version = 0;
    std::vector<NodeInfo> nodes;
    std::vector<NodeDeparture> departed;  // the last ones, oldest first
  };
  /// The same for the cluster's nodes.
  void watch_nodes(std::uint64_t version, Deadline deadline, Callback<NodeList> done);
  /// Has the node leave within that time, with what it has moved to others. Answers once that is
  /// recorded. Errors: kNotFound, kInvalidArgument (the head's).
  void drain_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                  Deadline deadline, Done done);
  /// What the actor's next incarnation begins with. kCancelled: this incarnation has been replaced.
  /// kResourceExhausted: it is too large.
  void save_state(ActorId actor, std::uint64_t incarnation, std::string state, Deadline deadline,
                  Done done);

  /// Key-value pairs of this job (gone when the job ends). Values are bytes, at most 1 MiB.
  void kv_put(std::string key, std::string value, Deadline deadline, Done done);
  /// With `wait`: answers once the key exists. Without: kNotFound at once.
  void kv_get(std::string key, bool wait, Deadline deadline, Callback<std::string> done);
  /// Adds to a decimal number (absent: 0) and answers with the sum. kInvalidArgument: the value is
  /// no number.
  void kv_add(std::string key, std::int64_t amount, Deadline deadline, Callback<std::int64_t> done);
  void kv_delete(std::string key, Deadline deadline, Callback<bool> done);  // whether it was there

  void cluster_state(Deadline deadline, Callback<ClusterState> done);
  /// The cluster's now, which may be another than this client has connected with.
  std::string token() const;
  /// From now on callers prove that token; the present one counts for `grace` still. Errors:
  /// kInvalidArgument, kUnavailable (control::ChangeToken).
  void change_token(std::string token, std::chrono::milliseconds grace, Deadline deadline,
                    Done done);

  /// What waits for a place, and what the nodes are used for.
  void query_demand(Deadline deadline, Callback<Demand> done);
  /// As drain_node(), if the node is idle; else kResourceExhausted, naming what runs there.
  void drain_idle_node(NodeId node, std::chrono::milliseconds time, std::string reason,
                       Deadline deadline, Done done);

  /// Answers once all bundles are reserved. kResourceExhausted at the deadline says what is
  /// missing.
  void create_placement_group(GroupSpec spec, Deadline deadline, Callback<GroupState> done);
  void remove_placement_group(GroupId group, Deadline deadline, Done done);
  /// By id or name; waits until it is placed if asked to.
  void query_placement_group(GroupId group, std::string name, std::string name_space, bool wait,
                             Deadline deadline, Callback<GroupState> done);

  /// Answers once the cluster keeps that version. kInvalidArgument: it is not larger than the
  /// latest; names both.
  void publish(control::Publish request, Deadline deadline, Done done);
  /// kNotFound: it is not there (now); kDeadlineExceeded: nor was it published in time;
  /// kObjectLost: the nodes that had it are gone.
  void find_published(control::FindPublished request, Deadline deadline,
                      Callback<PublishedObject> done);
  void unpublish(control::Unpublish request, Deadline deadline, Done done);
  /// What there is of objects in the whole cluster.
  void list_objects(Deadline deadline, Callback<ObjectList> done);
  /// What the node (or, of some requests, the head) sees.
  void observe(ObserveControl request, Deadline deadline, Callback<ObserveAnswer> done);

  // -- Worker: what the node asks of it.

  /// Build the actor of this process; answer (from any thread, once) when its constructor returned.
  /// A worker receives nothing before this is set, since the node asks as soon as it listens: set
  /// it last.
  using CreateActorHandler =
      std::function<void(ActorSpec spec, std::uint64_t incarnation, Done answer)>;
  void set_on_create_actor(CreateActorHandler handler);
  /// Serve the calls that wait at the actor, then end it; answer when it has ended.
  using DrainActorHandler =
      std::function<void(ActorId actor, std::uint64_t incarnation, Done answer)>;
  void set_on_drain_actor(DrainActorHandler handler);
  /// End a shared actor of this process: when it returns, no call can reach the actor any more.
  using StopActorHandler = std::function<void(ActorId actor, std::uint64_t incarnation)>;
  void set_on_stop_actor(StopActorHandler handler);
  /// A connection that came in through the node's port for this worker: give it to Listener::adopt.
  void set_on_attach(std::function<void(FileDescriptor socket, const Inbound& inbound)> handler);

  // -- Driver.

  /// Lines that the job's workers wrote, from any node.
  void set_on_log(std::function<void(LogLines)> handler);
  /// An actor that this job created or resolved through this node died.
  void set_on_actor_died(std::function<void(ActorId)> handler);

  // -- All.

  /// The node wants this process to end (stop, end of the job), or the connection to it broke;
  /// called once.
  void set_on_shutdown(std::function<void(Status reason)> handler);
  /// What the node has said that it could not end with the cluster (Role::kTool only hears); empty:
  /// nothing.
  std::string left_behind() const;

  /// A node, this one or another, is about to leave the cluster; may come more than once for the
  /// same.
  void set_on_node_drains(std::function<void(NodeId node, const NodeDrain& drain)> handler);

  /// Frames that are not of the control plane (objects), for their own handler.
  void set_on_message(Channel::Handler handler);

  // -- Command line.

  struct SubmitRequest {
    std::vector<std::string> argv;
    std::string working_dir;  // on the node; empty: a folder of its own
    Environment env;
    bool detached = false;  // it goes on without this connection, and nobody hears of it here
    std::vector<JobFile> files{};  // in the node's cache already (offer_files)
    JobFile program{};
    JobId job{};  // one that has been queued, and has its place on this node; none: a new one
    GroupId place{};
  };
  struct SubmitHandlers {
    std::function<void(bool is_stderr, std::string bytes)>
        on_output;                               // the driver's own output, as written
    std::function<void(DeathCause end)> on_end;  // exactly once after success of submit
  };
  /// Has a job wait for what it reserves; it is over if this connection ends before it was
  /// submitted. The placement group's bundle then says to which node. Errors: kDeadlineExceeded
  /// (names what is missing), kCancelled (the job was stopped).
  void queue_job(control::QueueJob request, Deadline deadline, Callback<GroupState> done);
  /// Runs a program on the node with this cluster's address in its environment. The job ends with
  /// this connection.
  void submit(SubmitRequest request, SubmitHandlers handlers, Deadline deadline,
              Callback<JobId> done);
  /// Asks a job to end, wherever it runs; answers before it has.
  void cancel_job(JobId job, Deadline deadline, Done done);
  /// With the tail of its output. kNotFound: there is none (any more).
  void query_job(JobId job, Deadline deadline, Callback<JobInfo> done);
  /// Which files the node lacks, by their place in `hashes`. kResourceExhausted: they are too much
  /// for it.
  void offer_files(std::uint64_t bytes, std::uint64_t count, std::vector<std::string> hashes,
                   Deadline deadline, Callback<std::vector<std::uint32_t>> done);
  /// A part of a file, in order.
  void store_file(std::string hash, std::uint64_t bytes, std::uint64_t offset, std::string data,
                  Deadline deadline, Done done);

  struct LogChunk {
    std::string text;
    std::uint64_t next_offset = 0;
    std::uint64_t file = 0;  // which of the files that a rotated log consists of
    std::uint64_t position =
        0;  // of the text in all that was ever written to the log; 0: not known
  };
  /// A piece of the log of a node's worker, job or (empty name) of the node itself: `name` is a
  /// file of its logs folder. `file` and `offset` are what the piece before said, at first 0.
  void read_log(std::string name, std::uint64_t file, std::uint64_t offset, Deadline deadline,
                Callback<LogChunk> done);
  /// Ends the node; a node with the head ends all nodes of the cluster.
  void stop(Deadline deadline, Done done);

 private:
  struct State;
  explicit NodeClient(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace runtime
