#include "runtime/control/node_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/control/request_ids.h"
#include "runtime/core/environment.h"
#include "runtime/core/log.h"
#include "runtime/process/worker_environment.h"
#include "runtime/transport/listener.h"

namespace runtime {

/// Shared with the channel's callbacks, which may still run while the client goes away.
struct NodeClient::State : std::enable_shared_from_this<State> {
  std::shared_ptr<Channel> channel;
  ClusterAddress address;
  Credentials credentials;
  std::optional<WorkerEnvironment> worker;

  std::mutex mutex;  // guards what follows: set from the owner's threads, read on the loop
  JobId job;
  CreateActorHandler on_create_actor;
  DrainActorHandler on_drain_actor;
  StopActorHandler on_stop_actor;
  ConstructorAwaitedHandler on_constructor_awaited;
  std::function<void(FileDescriptor, const Inbound&)> on_attach;
  std::function<void(LogLines)> on_log;
  std::function<void(ActorId)> on_actor_died;
  std::function<void(Status)> on_shutdown;
  std::function<void(NodeId, const NodeDrain&)> on_node_drains;
  Channel::Handler on_message;
  JobHandlers on_job;
  std::optional<Status> shutdown_reason;  // once it is known
  std::string left;
  bool shutdown_told = false;

  template <class Handler>
  Handler get(Handler State::*member) {
    std::lock_guard lock(mutex);
    return this->*member;
  }

  void receive(const std::shared_ptr<Channel>& from, Message message) {
    switch (message.kind) {
      case FrameKind::kControl: return on_request(from, message);
      case FrameKind::kControlEvent: return on_event(message);
      case FrameKind::kAttach: return attach(message);
      default: break;
    }
    if (auto handler = get(&State::on_message)) handler(from, std::move(message));
  }

  void on_request(const std::shared_ptr<Channel>& from, const Message& message) {
    ControlAnswerer answer = answerer_for(from, message);
    auto request = decode_control_request(message.meta);
    if (!request.ok()) return answer(request.status());
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    Done done = [shared](Status status) {
      if (status.ok())
        (*shared)(ControlAnswer{});
      else
        (*shared)(std::move(status));
    };
    auto on_build = get(&State::on_create_actor);
    auto on_drain = get(&State::on_drain_actor);
    if (auto* build = std::get_if<control::BuildActor>(&request->body); build && on_build) {
      on_build(std::move(build->spec), build->incarnation, std::move(done));
    } else if (auto* drain = std::get_if<control::DrainActor>(&request->body); drain && on_drain) {
      on_drain(drain->actor, drain->incarnation, std::move(done));
    } else if (auto* stop = std::get_if<control::StopActor>(&request->body)) {
      if (auto on_stop = get(&State::on_stop_actor)) on_stop(stop->actor, stop->incarnation);
      done({});
    } else if (auto* awaited = std::get_if<control::ConstructorAwaited>(&request->body)) {
      if (auto handler = get(&State::on_constructor_awaited))
        handler(awaited->actor, awaited->notice);
      done({});
    } else {
      done(unimplemented("this process runs no actors"));
    }
  }

  void on_event(const Message& message) {
    auto event = decode_control_event(message.meta);
    if (!event.ok()) return LOG(warn, "from the node: {}", event.status().message());
    if (auto* lines = std::get_if<LogLines>(&*event)) {
      if (auto handler = get(&State::on_log)) handler(std::move(*lines));
    } else if (auto* died = std::get_if<control::ActorsDied>(&*event)) {
      if (auto handler = get(&State::on_actor_died))
        std::for_each(died->actors.begin(), died->actors.end(), handler);
    } else if (auto* output = std::get_if<control::JobOutput>(&*event)) {
      if (auto handler = get(&State::on_job).on_output)
        handler(output->is_stderr, std::move(output->bytes));
    } else if (auto* exited = std::get_if<control::JobExited>(&*event)) {
      if (auto handler = get(&State::on_job).on_end) handler(std::move(exited->cause));
    } else if (auto* drains = std::get_if<control::NodeDrains>(&*event)) {
      if (auto handler = get(&State::on_node_drains)) handler(drains->node, drains->drain);
    } else if (auto* changed = std::get_if<control::TokenChanged>(&*event)) {
      credentials.token.change(tokens_of(changed->state));
    } else if (auto* shutdown = std::get_if<control::Shutdown>(&*event)) {
      {
        std::lock_guard lock(mutex);
        left = shutdown->left;
      }
      tell_shutdown(shutdown->reason);
    }
  }

  void attach(Message& message) {
    FileDescriptor socket;
    auto inbound = decode_attach(message, &socket);
    if (!inbound.ok()) return LOG(warn, "from the node: {}", inbound.status().message());
    if (auto handler = get(&State::on_attach)) handler(std::move(socket), *inbound);
  }

  void tell_shutdown(const Status& reason) {
    std::function<void(Status)> handler;
    {
      std::lock_guard lock(mutex);
      if (!shutdown_reason) shutdown_reason = reason;
      if (shutdown_told || !on_shutdown) return;
      shutdown_told = true;
      handler = on_shutdown;
    }
    handler(reason);
  }

  void watch() {
    channel->set_handler(
        [weak = weak_from_this()](const std::shared_ptr<Channel>& from, Message message) {
          if (auto self = weak.lock()) self->receive(from, std::move(message));
        });
    channel->set_on_close([weak = weak_from_this()](Status why) {
      if (auto self = weak.lock())
        self->tell_shutdown(unavailable("the connection to the node ended: " + why.message()));
    });
  }
};

namespace {

Result<std::shared_ptr<Channel>> open_channel(EventLoop& loop, const ClusterAddress& address,
                                              const Credentials& credentials, Deadline deadline) {
  // A cleaner may have removed the socket, which a living node cannot put back. Its port is left to
  // commands; programs need its shared memory too, which goes over the socket alone.
  const bool by_port =
      address.unix_path.empty() ||
      (credentials.role == Role::kTool && ::access(address.unix_path.c_str(), F_OK) != 0);
  auto endpoint =
      by_port ? Endpoint::parse(address.address) : Endpoint::unix_socket(address.unix_path);
  if (!endpoint.ok()) return endpoint.status();
  ConnectOptions options;
  options.deadline = deadline;
  return runtime::connect(loop, *endpoint, credentials, options);
}

}  // namespace

Result<std::unique_ptr<NodeClient>> NodeClient::connect(EventLoop& loop,
                                                        const ClusterAddress& address, Role role,
                                                        Deadline deadline) {
  Credentials credentials;
  credentials.token = address.token;
  credentials.cluster = address.cluster;
  credentials.role = role;
  auto channel = open_channel(loop, address, credentials, deadline);
  if (!channel.ok()) return channel.status();
  auto state = std::make_shared<State>();
  state->channel = std::move(*channel);
  state->address = address;
  state->credentials = credentials;
  state->credentials.cluster = state->channel->peer().cluster;
  state->credentials.node = state->channel->peer().node;
  if (const char* submitted = environment_variable("STARLING_JOB")) {
    // The job that this program was submitted as; the node checks that the job is its own.
    state->job = JobId::from_hex(submitted).value_or(JobId{});
  }
  state->watch();
  return std::unique_ptr<NodeClient>(new NodeClient(std::move(state)));
}

Result<std::unique_ptr<NodeClient>> NodeClient::connect_worker(EventLoop& loop, Deadline deadline) {
  auto environment = read_worker_environment();
  if (!environment.ok()) return environment.status();
  SessionInfo session;
  session.dir = environment->session_dir;
  session.cluster = environment->cluster;
  session.address = environment->node_address;
  auto address = address_of(session);
  if (!address.ok()) return address.status();
  Credentials credentials;
  credentials.token = address->token;
  credentials.cluster = environment->cluster;
  credentials.role = Role::kWorker;
  credentials.node = environment->node;
  credentials.worker = environment->worker;
  auto channel = open_channel(loop, *address, credentials, deadline);
  if (!channel.ok()) return channel.status();
  auto state = std::make_shared<State>();
  state->channel = std::move(*channel);
  state->address = std::move(*address);
  state->credentials = credentials;
  state->job = environment->job;
  state->worker = std::move(*environment);
  // Receiving begins with the first handler the owner sets: the node may ask for an actor at once.
  return std::unique_ptr<NodeClient>(new NodeClient(std::move(state)));
}

NodeClient::NodeClient(std::shared_ptr<State> state) : state_(std::move(state)) {}

NodeClient::~NodeClient() {
  {
    std::lock_guard lock(state_->mutex);
    state_->shutdown_told = true;
  }
  state_->channel->close(cancelled("this process is done"));
}

std::shared_ptr<Channel> NodeClient::channel() const { return state_->channel; }
NodeId NodeClient::node_id() const { return state_->credentials.node; }
ClusterId NodeClient::cluster_id() const { return state_->credentials.cluster; }

JobId NodeClient::job_id() const {
  std::lock_guard lock(state_->mutex);
  return state_->job;
}

const std::string& NodeClient::session_dir() const { return state_->address.session_dir; }
std::string NodeClient::node_address() const { return state_->address.address; }
std::string NodeClient::worker_socket_path() const {
  return state_->worker ? state_->worker->socket_path() : std::string();
}
Credentials NodeClient::credentials() const { return state_->credentials; }

void NodeClient::register_driver(DriverInfo info, Deadline deadline, Callback<JobId> done) {
  ask<JobId>(control::RegisterDriver{std::move(info)}, deadline,
             [state = state_, done = std::move(done)](Result<JobId> job) {
               if (job.ok()) {
                 std::lock_guard lock(state->mutex);
                 state->job = *job;
               }
               done(std::move(job));
             });
}

void NodeClient::tell(ControlRequest::Body body, Deadline deadline, Done done) {
  send(std::move(body), deadline,
       [done = std::move(done)](Result<ControlAnswer> answer) { done(answer.status()); });
}

void NodeClient::send(ControlRequest::Body body, Deadline deadline, ControlAnswerer answer) {
  auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_now());
  ControlRequest request{job_id(),
                         std::clamp<std::chrono::milliseconds>(
                             patience, std::chrono::milliseconds(1), std::chrono::hours(24)),
                         std::move(body)};
  identify(request);
  send_request(*state_->channel, request, std::move(answer));
}

std::string NodeClient::token() const { return state_->credentials.token.present(); }

void NodeClient::set_on_create_actor(CreateActorHandler handler) {
  {
    std::lock_guard lock(state_->mutex);
    state_->on_create_actor = std::move(handler);
  }
  state_->watch();
}

void NodeClient::set_on_drain_actor(DrainActorHandler handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_drain_actor = std::move(handler);
}

void NodeClient::set_on_node_drains(std::function<void(NodeId, const NodeDrain&)> handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_node_drains = std::move(handler);
}

void NodeClient::set_on_stop_actor(StopActorHandler handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_stop_actor = std::move(handler);
}

void NodeClient::set_on_constructor_awaited(ConstructorAwaitedHandler handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_constructor_awaited = std::move(handler);
}

void NodeClient::set_on_attach(std::function<void(FileDescriptor, const Inbound&)> handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_attach = std::move(handler);
}

void NodeClient::set_on_log(std::function<void(LogLines)> handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_log = std::move(handler);
}

void NodeClient::set_on_actor_died(std::function<void(ActorId)> handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_actor_died = std::move(handler);
}

void NodeClient::set_on_shutdown(std::function<void(Status)> handler) {
  std::optional<Status> known;
  {
    std::lock_guard lock(state_->mutex);
    state_->on_shutdown = std::move(handler);
    known = state_->shutdown_reason;
  }
  if (known) state_->tell_shutdown(*known);
}

std::string NodeClient::left_behind() const {
  std::lock_guard lock(state_->mutex);
  return state_->left;
}

void NodeClient::set_on_message(Channel::Handler handler) {
  std::lock_guard lock(state_->mutex);
  state_->on_message = std::move(handler);
}

void NodeClient::set_on_job(JobHandlers handlers) {
  std::lock_guard lock(state_->mutex);
  state_->on_job = std::move(handlers);
}

void NodeClient::driver_done(std::int32_t exit_code) {
  tell(control::DriverDone{exit_code}, deadline_after(std::chrono::seconds(1)), [](Status) {});
}

}  // namespace runtime
