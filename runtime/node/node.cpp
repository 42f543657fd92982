#include "runtime/node/node.h"

#include <cmath>
#include <utility>
#include <variant>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/node/log_reader.h"
#include "runtime/node/submitter_gate.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/gpus.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/refusal_log.h"

namespace runtime {

namespace {

// The other nodes', each of which gives its jobs 5 s and then its workers 1 s.
constexpr auto kNodesStopMax = std::chrono::milliseconds(8000);
// Of answers that a submitter has not read yet; with more its requests count on.
constexpr std::size_t kUnreadAnswersMax = 1 << 20;

template <class... Requests>
bool is_one_of(const ControlRequest::Body& body) {
  return (std::holds_alternative<Requests>(body) || ...);
}

/// What a node passes on to the head.
bool is_for_head(const ControlRequest::Body& body) {
  return is_one_of<
      control::CreateActor, control::ResolveActor, control::QueryActor, control::KillActor,
      control::KvPut, control::KvGet, control::KvAdd, control::KvDelete, control::QueryCluster,
      control::CreateGroup, control::RemoveGroup, control::TerminateActor, control::WatchActor,
      control::WatchNodes, control::SaveState, control::ParkActor, ObjectControl,
      control::QueryGroup, control::QueryJob, control::CancelJob, control::DrainNode,
      control::QueryDemand, control::ChangeToken, control::ConstructorAwaited, ObserveControl>(
      body);
}

Credentials node_credentials(const NodeOptions& options, const Keyring& keyring) {
  Credentials credentials;
  credentials.token = keyring;
  credentials.cluster = options.cluster;
  credentials.role = Role::kNode;
  credentials.node = options.node;
  return credentials;
}

std::vector<std::string> gpus_of(const ResourceMap& resources) {
  auto gpus = resources.find("GPU");
  if (gpus == resources.end()) return {};
  return gpu_names(static_cast<std::size_t>(std::ceil(gpus->second)));
}

}  // namespace

Node::Node(EventLoop& loop, NodeOptions options)
    : loop_(loop),
      options_(std::move(options)),
      token_(options_.token, options_.next_token, options_.keep_token),
      user_connections_(options_.users.connections),
      reservations_(options_.resources),
      ends_(ask_head()),
      stopped_(loop) {
  setting_.credentials = node_credentials(options_, token_.keyring());
}

Result<std::unique_ptr<Node>> Node::start(EventLoop& loop, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(loop, std::move(options)));
  Status status = on_loop(loop, [&] {
    Status opened = node->open();
    node->stopping_ = !opened.ok();
    return opened;
  });
  if (status.ok()) status = node->join();
  if (!status.ok()) return status;
  return node;
}

// -- Wiring

Status Node::open() {
  if (Status status = open_ports(); !status.ok()) return status;
  if (Status status = open_objects(); !status.ok()) return status;
  auto cache = cache_folder();
  if (!cache.ok()) return cache.status();
  FileCacheOptions programs;
  programs.folder = *cache / "programs";
  programs.others = {*cache / "files"};
  programs_ = std::make_unique<ProgramFiles>(loop_, setting_.credentials, std::move(programs));
  if (!simulation()) {
    LogKeeperOptions logs;
    logs.folder = options_.session_dir / "logs";
    if (options_.log_limit != 0) logs.bytes_max = options_.log_limit;
    logs_ = std::make_unique<LogKeeper>(loop_, std::move(logs));
    setting_.logs = logs_.get();
  }
  setting_.gpus = gpus_of(options_.resources);
  open_workers();
  open_jobs(*cache);
  open_departure();
  open_introspection();
  open_head();
  return departure_->watch_for_preemption();
}

AskHead Node::ask_head() {
  return [this, alive = lifetime_.alive()](ControlRequest request, ControlAnswerer answer) {
    if (!*alive) return answer(unavailable("the node has stopped"));
    head_->request(std::move(request), std::move(answer));
  };
}

Status Node::open_ports() {
  if (options_.token.empty())
    return invalid_argument("the cluster has no token: any process could join it");
  ListenerCallbacks callbacks;
  callbacks.admit = [this](const PeerInfo& peer) {
    return user_connections_.check(peer, setting_.address);
  };
  callbacks.on_channel = [this](std::shared_ptr<Channel> channel) { accept(std::move(channel)); };
  callbacks.on_inbound = [this](const Inbound& inbound, FileDescriptor& socket) -> Status {
    if (inbound.preamble.target != head_target()) return workers_->attach(inbound, socket);
    if (!options_.is_head)
      return not_found("the head is not at " + address() + "; join at the head's address");
    return head_->attach(inbound, socket);
  };
  callbacks.on_refused = [this, log = std::make_shared<RefusalLog>()](const std::string& peer,
                                                                      const Status& why) {
    log->note(peer, why);
    if (introspection_) introspection_->on_refused();
  };
  if (options_.metrics.server) {
    callbacks.on_http = [this](FileDescriptor socket, std::string received) {
      if (introspection_) introspection_->on_http(std::move(socket), std::move(received));
    };
  }
  auto opened = NodePorts::listen(loop_, ports_options(options_), setting_.credentials, callbacks);
  if (!opened.ok()) return opened.status();
  ports_ = std::move(*opened);
  setting_.address = ports_->address();
  return {};
}

Status Node::open_objects() {
  ObjectStoreOptions store = store_options(options_, setting_);
  store.how_ended = [this, alive = lifetime_.alive()](pid_t pid) {
    return *alive ? ends_.how_ended(pid) : std::string();
  };
  store.on_fetched = lifetime_.guard([this](const FetchedObject& fetched) {
    if (introspection_) introspection_->on_fetched(fetched);
  });
  auto objects = NodeObjects::open(loop_, std::move(store), ask_head());
  if (!objects.ok()) return objects.status();
  objects_ = std::move(*objects);
  return {};
}

void Node::open_workers() {
  WorkerPoolCallbacks callbacks;
  callbacks.on_actor_exited = [this](JobId job, control::ActorExited exited) {
    ends_.actor_ended(job, std::move(exited));
  };
  callbacks.on_actors_exited = [this](JobId job, control::ActorsExited exited) {
    ends_.actors_ended(job, std::move(exited));
  };
  callbacks.on_log = [this](LogLines lines) {
    if (ClientTable::Client* driver = clients_.driver_of(lines.job))
      return send_event(*driver->channel, lines);
    head_->event(lines);
  };
  callbacks.find_program = [this](const DriverInfo& driver, const std::string& driver_node,
                                  Deadline deadline, ProgramFiles::Found found) {
    programs_->find(driver, driver_node, deadline, std::move(found));
  };
  callbacks.find_folder = [this](JobId job, const control::StartActor& start, Deadline deadline,
                                 std::function<void(Result<std::string>)> found) {
    jobs_->find_folder(job, start, deadline, std::move(found));
  };
  workers_ =
      std::make_unique<WorkerPool>(loop_, pool_options(options_, setting_), std::move(callbacks));

  MemoryGuard::Callbacks guard;
  guard.use = [] { return memory_use(); };
  guard.workers = [this] { return workers_->guarded(); };
  guard.own_memory = own_memory_bytes;
  guard.give_back = [this] { return objects_->store().give_back_free_memory(); };
  guard.stop = [this](const WorkerId& worker, const std::string& reason) {
    workers_->stop_worker(worker, reason);
  };
  memory_ = std::make_unique<MemoryGuard>(loop_, options_.node.short_hex(), options_.memory,
                                          std::move(guard));
}

void Node::open_jobs(const std::filesystem::path& cache) {
  NodeJobs::Callbacks callbacks;
  callbacks.head = ask_head();
  callbacks.refuse = [this](const std::string& what) { return departure_->refuse(what); };
  callbacks.is_stopping = [this] { return ending_ || stopping_; };
  callbacks.offer = [this](const DriverInfo& driver) { programs_->offer(driver); };
  callbacks.warm = [this](JobId job, const DriverInfo& driver) { workers_->warm(job, driver); };
  callbacks.user_of = [this](const Channel& channel) {
    return user_connections_.uid_of(channel, setting_.address);
  };
  jobs_ = std::make_unique<NodeJobs>(loop_, jobs_options(options_, setting_, cache),
                                     std::move(callbacks), clients_, ends_);
  if (simulation()) return;
  programs_->trim();
  jobs_->trim();
}

void Node::open_departure() {
  Departure::Callbacks callbacks;
  callbacks.head = ask_head();
  callbacks.node_drains = [this](const control::NodeDrains& drains) {
    clients_.tell_programs(drains);
  };
  callbacks.begin = [this] {
    objects_->store().keep_what_ends();
    workers_->begin_drain();
  };
  callbacks.warn_jobs = [this] { jobs_->warn(); };
  callbacks.leave = [this](const Status& why) { stop_on_loop(why); };
  departure_ = std::make_unique<Departure>(loop_, departure_options(options_, setting_),
                                           std::move(callbacks));
}

void Node::open_introspection() {
  NodeIntrospectionOptions options;
  options.node = options_.node;
  options.credentials = setting_.credentials;
  options.is_head = options_.is_head;
  options.access = options_.metrics_access;
  options.metrics = options_.metrics;
  options.tls = options_.tls;
  NodeIntrospectionSources sources;
  sources.objects = [this] { return objects_->store().stats(); };
  sources.head = ask_head();
  sources.numbers = [this](Numbers& numbers) {
    numbers["head_up"] = head_->is_up();
    numbers["head_reconnects"] = static_cast<double>(head_->reconnects());
    clients_.count(numbers);
    numbers["jobs_submitted_running"] = static_cast<double>(jobs_->running());
    numbers["memory_guard_stops"] = static_cast<double>(memory_->stops());
    numbers["draining"] = departure_->reason().has_value();
  };
  introspection_ =
      std::make_unique<NodeIntrospection>(loop_, std::move(options), *workers_, std::move(sources));
}

void Node::open_head() {
  HeadLink::Callbacks callbacks;
  callbacks.registration = [this] {
    reservations_.drop_prepared();
    return registration();
  };
  callbacks.request = [this](ControlRequest request, ControlAnswerer answer) {
    serve_head(std::move(request), std::move(answer));
  };
  callbacks.event = [this](const ControlEvent& event) { on_head_event(event); };
  callbacks.lost = [this](const Status& why) { on_lost(why); };
  head_ = std::make_unique<HeadConnection>(loop_, head_options(options_, setting_),
                                           std::move(callbacks));
}

control::RegisterNode Node::registration() const {
  control::RegisterNode registration;
  registration.info = node_info(options_, setting_);
  registration.replaces = options_.replaces;
  registration.actors = workers_->serving();
  registration.actors.insert(registration.actors.end(), ends_.actors().begin(),
                             ends_.actors().end());
  registration.jobs = jobs_->all();
  return registration;
}

Status Node::join() {
  Status joined = head_->join();
  if (stopping_) return stop_reason_;
  if (!joined.ok()) return joined.with_context("joining the cluster");
  if (Status status = head_->keep_lease(); !status.ok()) return status;
  if (options_.autoscaler.empty()) return {};
  return on_loop(loop_, [&] {
    autoscaler_ =
        std::make_unique<AutoscalerProcess>(loop_, autoscaler_options(options_, setting_));
    return autoscaler_->start();
  });
}

// -- Connections

void Node::accept(std::shared_ptr<Channel> channel) {
  if (stopping_)
    return channel->close(unavailable("node " + options_.node.short_hex() + " is stopping"));
  // Again: others may have come while it was told that it is let in.
  if (Status status = user_connections_.add(*channel, setting_.address); !status.ok())
    return channel->close(status);
  clients_.add(channel);
  channel->set_handler(
      lifetime_.guard([this](const std::shared_ptr<Channel>& from, Message message) {
        on_message(from, std::move(message));
      }));
  channel->set_on_close(
      lifetime_.guard([this, weak = std::weak_ptr<Channel>(channel)](const Status& why) {
        if (auto closed = weak.lock()) on_closed(*closed, why);
      }));
  const bool runs_code =
      channel->peer().role == Role::kWorker || channel->peer().role == Role::kDriver;
  if (runs_code) objects_->store().attach(channel);
  if (runs_code) departure_->tell(*channel);
  token_.tell(*channel);
  if (channel->peer().role != Role::kWorker) return;
  auto job = workers_->on_connected(channel);
  if (!job)
    return channel->close(
        invalid_argument("node " + options_.node.short_hex() + " did not start this worker"));
  if (ClientTable::Client* client = clients_.find(*channel)) client->job = *job;
}

void Node::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  const bool is_submitter = channel->peer().is_submitter;
  if (is_submitter && message.kind != FrameKind::kControl)
    return channel->close(invalid_argument("a submitter sent a frame that is none of a request"));
  if (objects_->store().handle(channel, message)) return;
  if (message.kind == FrameKind::kActivity) return introspection_->on_activity(*channel, message);
  if (message.kind != FrameKind::kControl) {
    return LOG(warn, "{} sent a frame of kind {}, which a node does not serve",
               channel->describe_peer(), static_cast<int>(message.kind));
  }
  ControlAnswerer answer = answerer_for(channel, message);
  std::shared_ptr<UserConnections::Request> counted;
  if (is_submitter) {
    auto begun = user_connections_.begin(*channel, message.meta.size() + message.payload.size());
    if (!begun.ok()) return answer(begun.status());
    counted = *std::move(begun);
  }
  auto request = decode_control_request(message.meta);
  if (!request.ok()) return answer(request.status());
  if (is_submitter) {
    const auto owns = [&](JobId job) { return jobs_->is_of(job, *channel); };
    if (Status status = check_submitter(*request, owns); !status.ok()) return answer(status);
    answer = [told = std::move(answer), user = user_connections_.user_of(*channel),
              weak = std::weak_ptr<Channel>(channel),
              counted = std::move(counted)](Result<ControlAnswer> result) mutable {
      if (result.ok()) hide_from_submitter(*result, user);
      told(std::move(result));
      if (auto open = weak.lock())
        open->when_drained(kUnreadAnswersMax, [counted = std::move(counted)] {});
    };
  }
  // Actors that will continue elsewhere save their state meanwhile.
  const bool saves = std::holds_alternative<control::SaveState>(request->body);
  const bool from_node = channel->peer().role == Role::kNode;
  if (stopping_ && !from_node && !saves)
    return answer(unavailable("node " + options_.node.short_hex() + " is stopping"));
  if (from_node)
    serve_node(*request, std::move(answer));
  else
    serve_client(channel, std::move(*request), std::move(answer));
}

void Node::on_closed(const Channel& channel, const Status& why) {
  user_connections_.remove(channel);
  const std::optional<ClientTable::Client> client = clients_.remove(channel);
  if (!client) return;
  objects_->store().detach(channel);
  introspection_->on_closed(channel);
  if (client->role() == Role::kWorker) workers_->on_disconnected(channel.peer().worker, why);
  jobs_->on_closed(*client);
}

// -- Requests

void Node::serve_client(const std::shared_ptr<Channel>& channel, ControlRequest request,
                        ControlAnswerer answer) {
  const ClientTable::Client* client = clients_.find(*channel);
  if (!client || jobs_->serve(channel, request, answer)) return;
  if (auto* body = std::get_if<control::ReadLog>(&request.body)) {
    auto chunk =
        read_log_chunk(options_.session_dir / "logs", body->name, body->file, body->offset);
    return chunk.ok() ? answer(ControlAnswer{std::move(*chunk)}) : answer(chunk.status());
  }
  if (std::holds_alternative<control::StopNode>(request.body)) {
    answer(ControlAnswer{});
    return stop_on_loop(
        cancelled("stopped on request of pid " + std::to_string(channel->peer().pid)));
  }
  if (auto* seen = std::get_if<ObserveControl>(&request.body);
      seen && !std::holds_alternative<control::ListActors>(*seen)) {
    return introspection_->serve(*seen, request.timeout, std::move(answer));
  }
  if (!is_for_head(request.body))
    return answer(unimplemented("a node does not serve this to its clients"));
  request.job = client->job;
  // A user who types a command wants to hear that the head is away; programs wait for it.
  const bool is_urgent = client->role() == Role::kTool;
  head_->request(std::move(request), std::move(answer),
                 is_urgent ? HeadLink::Urgency::kNow : HeadLink::Urgency::kWaits);
}

void Node::serve_node(ControlRequest& request, ControlAnswerer answer) {
  auto* body = std::get_if<control::FetchFile>(&request.body);
  if (!body) return answer(unimplemented("a node does not serve this to other nodes"));
  if (jobs_->serve_file(*body, answer)) return;
  auto bytes = programs_->read(body->hash, body->offset);
  return bytes.ok() ? answer(ControlAnswer{std::move(*bytes)}) : answer(bytes.status());
}

void Node::serve_head(ControlRequest request, ControlAnswerer answer) {
  if (auto* start = std::get_if<control::StartActor>(&request.body))
    return start_actor(request.job, std::move(*start), request.timeout, std::move(answer));
  if (auto* reserve = std::get_if<control::Reserve>(&request.body))
    return answer(
        ControlAnswer{reservations_.apply(*reserve, ending_ || stopping_ ? "it is stopping" : "")});
  if (auto* take = std::get_if<control::TakeOver>(&request.body))
    return objects_->take_over(*take, request.timeout, std::move(answer));
  if (auto* objects = std::get_if<ObjectControl>(&request.body))
    return objects_->serve(*objects, request.timeout, std::move(answer));
  Status status;
  if (auto* stop = std::get_if<control::StopActor>(&request.body)) {
    workers_->stop_actor(*stop);
  } else if (std::holds_alternative<control::ConstructorAwaited>(request.body)) {
    workers_->pass_on(request);
  } else if (auto* end = std::get_if<control::EndJob>(&request.body)) {
    workers_->end_job(end->job);
    jobs_->end(*end);
  } else if (auto* cancel = std::get_if<control::CancelJob>(&request.body)) {
    status = jobs_->cancel(cancel->job, "stopped on request");
  } else if (std::holds_alternative<control::StopNode>(request.body)) {
    stop_on_loop(cancelled("stopped with its cluster"));
  } else if (auto* expect = std::get_if<control::ExpectToken>(&request.body)) {
    status = token_.expect(expect->token);
  } else if (auto* leave = std::get_if<control::Leave>(&request.body)) {
    stop_on_loop(cancelled(leave->reason));
  } else {
    status = unimplemented("the head asks a node for something that nodes do not do");
  }
  status.ok() ? answer(ControlAnswer{}) : answer(std::move(status));
}

void Node::start_actor(JobId job, control::StartActor start, std::chrono::milliseconds timeout,
                       ControlAnswerer answer) {
  if (ends_.actors().contains({start.spec.actor, start.incarnation}))
    return answer(actor_died("it has ended already"));
  if (start.spec.bundle && !reservations_.holds(start.spec.bundle->group)) {
    return answer(unavailable("node " + options_.node.short_hex() +
                              " holds nothing for placement group " +
                              start.spec.bundle->group.short_hex() + " (any more)"));
  }
  workers_->start_actor(job, std::move(start), deadline_after(timeout), std::move(answer));
}

void Node::on_head_event(const ControlEvent& event) {
  if (const auto* lines = std::get_if<LogLines>(&event)) {
    if (ClientTable::Client* driver = clients_.driver_of(lines->job))
      send_event(*driver->channel, event);
  } else if (const auto* drains = std::get_if<control::NodeDrains>(&event)) {
    departure_->on_node_drains(*drains);
  } else if (const auto* changed = std::get_if<control::TokenChanged>(&event)) {
    token_.change(*changed);
    clients_.for_each([&](const ClientTable::Client& client) { token_.tell(*client.channel); });
  } else if (const auto* died = std::get_if<control::ActorsDied>(&event)) {
    clients_.tell_job(died->job, event);
  }
}

// -- The end

Status Node::wait() {
  loop_.run_until(stopped_, Deadline::max());
  return stop_reason_;
}

void Node::stop(Status reason) {
  loop_.post(lifetime_.guard([this, reason = std::move(reason)] { stop_on_loop(reason); }));
}

void Node::drain(std::string reason, std::chrono::milliseconds time) {
  loop_.post(lifetime_.guard([this, reason = std::move(reason), time] {
    departure_->ask(reason, time, [](const Status&) {});
  }));
}

void Node::quit(Status reason) {
  loop_.post(lifetime_.guard([this, reason = std::move(reason)] {
    stopping_ = true;
    departure_->stop();
    stop_reason_ = reason;
    stopped_.set();
  }));
}

void Node::on_lost(const Status& why) {
  fenced_ = why.code() == ErrorCode::kCancelled;
  if (ending_ && !stopping_) return tell_of_stop();  // its jobs' time to end is over
  stop_on_loop(fenced_ ? unavailable(why.message())
                       : unavailable("the head is gone: " + why.message()));
}

void Node::stop_on_loop(const Status& reason) {
  // First, while the head still serves it: what was added for this cluster is removed with it.
  if (autoscaler_ && !ending_ && !stopping_) {
    if (autoscaler_->is_ending()) return;
    LOG(info, "stopping the autoscaler: {}", reason.message());
    return autoscaler_->end([this, reason](std::string left) {
      autoscaler_.reset();
      left_ = std::move(left);
      stop_on_loop(reason);
    });
  }
  if (std::exchange(ending_, true) || stopping_) return;
  LOG(info, "stopping: {}", reason.message());
  stop_reason_ = reason;
  departure_->stop();
  if (fenced_ || !head_->is_up()) tell_of_stop();  // what it runs may run elsewhere by now
  // Else jobs have their time to end while there still is a cluster: a training saves what it has.
  jobs_->end_all([this] {
    if (!stopping_) tell_of_stop();
    stop_others();
  });
}

void Node::tell_of_stop() {
  stopping_ = true;
  clients_.for_each([&](const ClientTable::Client& client) {
    if (client.role() == Role::kNode) return;
    send_event(*client.channel,
               control::Shutdown{unavailable("the node stops: " + stop_reason_.message()),
                                 client.role() == Role::kTool ? left_ : ""});
  });
}

void Node::stop_others() {
  if (!options_.is_head || !head_->is_up()) return end_everything();
  head_->request(ControlRequest{{}, kNodesStopMax, control::StopNode{}},
                 lifetime_.guard([this](const Result<ControlAnswer>&) { end_everything(); }));
}

void Node::end_everything() {
  jobs_->end_all([this] {
    const std::optional<std::string>& drained = departure_->reason();
    workers_->end_all(drained ? "its node was drained (" + *drained + ")" : "its node was stopped",
                      [this] {
                        ports_->stop();
                        clients_.close_all(unavailable("the node has stopped"));
                        head_->close(cancelled("the node has stopped"));
                        head_->end_child([this] { stopped_.set(); });
                      });
  });
}

Node::~Node() {
  if (head_) head_->drop_lease();
  on_loop(loop_, [this] {
    lifetime_.end();
    if (ports_) ports_->stop();
    if (head_) head_->close(cancelled("the node has stopped"));
    departure_.reset();
    autoscaler_.reset();
    jobs_.reset();
    memory_.reset();
    introspection_.reset();
    workers_.reset();
    programs_.reset();
    clients_.close_all(unavailable("the node has stopped"));
    clients_.clear();
    head_.reset();
    objects_.reset();
    logs_.reset();  // last: the others' logs use it
    return 0;
  });
}

}  // namespace runtime
