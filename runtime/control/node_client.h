// NodeClient: the connection of a driver, a worker or a command with its node, which passes on what
// only the head can answer. What can be asked over it is the business of ActorDirectory, JobClient,
// ClusterClient, GroupClient, KeyValueClient and PublishedClient.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/process/session.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/handshake.h"

namespace runtime {

/// One connection to a node. Every method may be called from any thread and returns at once. Its
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

  // -- Requests, of which the other clients in this folder are made.

  /// Hands over the answer if it is a `T`.
  template <class T>
  void ask(ControlRequest::Body body, Deadline deadline, Callback<T> done) {
    send(std::move(body), deadline, [done = std::move(done)](Result<ControlAnswer> answer) {
      take<T>(std::move(answer), done);
    });
  }
  /// The same of what ObjectControlAnswer may be.
  template <class T>
  void ask_objects(ObjectControl request, Deadline deadline, Callback<T> done) {
    ask<ObjectControlAnswer>(std::move(request), deadline,
                             [done = std::move(done)](Result<ObjectControlAnswer> answer) {
                               take<T>(std::move(answer), done);
                             });
  }
  /// Of the answer only whether there was one.
  void tell(ControlRequest::Body body, Deadline deadline, Done done);
  void send(ControlRequest::Body body, Deadline deadline, ControlAnswerer answer);

  /// The cluster's now, which may be another than this client has connected with.
  std::string token() const;

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
  /// Calls wait for the constructor of an actor that this process builds: the bytes of a
  /// ConstructorAwaited::notice.
  using ConstructorAwaitedHandler = std::function<void(ActorId actor, const std::string& notice)>;
  void set_on_constructor_awaited(ConstructorAwaitedHandler handler);
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

  struct JobHandlers {
    std::function<void(bool is_stderr, std::string bytes)>
        on_output;                               // the driver's own output, as written
    std::function<void(DeathCause end)> on_end;  // exactly once after it was submitted
  };
  /// Of the job that is submitted over this connection (JobClient).
  void set_on_job(JobHandlers handlers);

 private:
  struct State;

  template <class T, class Answer>
  static void take(Result<Answer> answer, const Callback<T>& done) {
    if (!answer.ok()) return done(answer.status());
    if (auto* value = std::get_if<T>(&*answer)) return done(std::move(*value));
    done(internal_error("the node answered something else than was asked"));
  }

  explicit NodeClient(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace runtime
