#include "runtime/node/node.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/node/blocking.h"
#include "runtime/node/cache_folder.h"
#include "runtime/node/content_hash.h"
#include "runtime/node/file_util.h"
#include "runtime/node/gpus.h"
#include "runtime/node/log_reader.h"
#include "runtime/node/machine.h"
#include "runtime/node/session.h"
#include "runtime/node/submitter_gate.h"
#include "runtime/object/segment.h"
#include "runtime/transport/refusal_log.h"

namespace runtime {

namespace {

constexpr auto kHeadTimeout = std::chrono::milliseconds(10000);
// For what the head has to hear: longer than a node waits for it.
constexpr auto kReportTimeout = std::chrono::hours(24);
// How so many processes ended is remembered, for those who ask why an object of theirs is lost.
constexpr std::size_t kEndsMax = 1000;
// The other nodes', each of which gives its jobs 5 s and then its workers 1 s.
constexpr auto kNodesStopMax = std::chrono::milliseconds(8000);
constexpr const char* kLeftFile =
    "logs/autoscaler-left";  // in the session's folder; a node that is killed leaves its logs
constexpr std::size_t kLeftBytesMax = 64 << 10;

}  // namespace

Node::Node(EventLoop& loop, NodeOptions options)
    : loop_(loop),
      options_(std::move(options)),
      keyring_(options_.token),
      reservations_(options_.resources),
      stopped_(loop),
      leave_timer_(loop.context()),
      jobs_timer_(loop.context()) {
  if (!options_.next_token.empty()) keyring_.expect(options_.next_token);
}

Credentials Node::credentials() const {
  Credentials credentials;
  credentials.token = keyring_;
  credentials.cluster = options_.cluster;
  credentials.role = Role::kNode;
  credentials.node = options_.node;
  return credentials;
}

Result<std::unique_ptr<Node>> Node::start(EventLoop& loop, NodeOptions options) {
  std::unique_ptr<Node> node(new Node(loop, std::move(options)));
  Status status = on_loop(loop, [&] { return node->open(); });
  if (status.ok()) status = node->join();
  if (!status.ok()) return status;
  return node;
}

Status Node::open() {
  if (Status status = listen(); !status.ok()) return status;
  if (Status status = open_store(); !status.ok()) return status;
  auto cache = cache_folder();
  if (!cache.ok()) return cache.status();
  FileCacheOptions programs;
  programs.folder = *cache / "programs";
  programs.others = {*cache / "files"};
  programs_ = std::make_unique<ProgramFiles>(loop_, credentials(), std::move(programs));
  if (!simulation()) {
    LogKeeperOptions logs;
    logs.folder = options_.session_dir / "logs";
    if (options_.log_limit != 0) logs.bytes_max = options_.log_limit;
    logs_ = std::make_unique<LogKeeper>(loop_, std::move(logs));
  }
  open_workers();
  open_jobs(*cache);
  open_eyes();
  link_to_head();
  return watch_for_preemption();
}

Status Node::open_store() {
  ObjectStoreOptions store;
  store.credentials = credentials();
  store.endpoint = address_;
  store.capacity_bytes = options_.object_store_bytes;
  // Else a few processes' slabs would take all of a small store.
  if (store.capacity_bytes != 0)
    store.slab_bytes = std::clamp(round_to_pages(store.capacity_bytes / 16),
                                  std::uint64_t{64} << 10, store.slab_bytes);
  store.spill = options_.spill;
  store.is_member = [this, alive = alive_](NodeId node, UniqueFunction<void(bool)> done) {
    if (*alive)
      is_member(node, std::move(done));
    else
      done(true);
  };
  store.find_moved = [this, alive = alive_](const ObjectLocation& lost,
                                            UniqueFunction<void(Result<ObjectLocation>)> done) {
    if (*alive)
      find_moved(lost, std::move(done));
    else
      done(not_found("the node has stopped"));
  };
  store.how_ended = [this, alive = alive_](pid_t pid) {
    auto known = *alive ? ends_.find(pid) : ends_.end();
    return known == ends_.end() ? std::string() : known->second;
  };
  store.on_fetched = [this, alive = alive_](const FetchedObject& fetched) {
    if (*alive && eyes_) eyes_->on_fetched(fetched);
  };
  auto objects = ObjectStore::create(loop_, store);
  if (!objects.ok()) return objects.status();
  objects_ = std::move(*objects);
  return {};
}

void Node::open_workers() {
  WorkerPoolOptions pool;
  pool.logs = logs_.get();
  pool.cluster = options_.cluster;
  pool.node = options_.node;
  pool.node_address = address_;
  pool.session_dir = options_.session_dir.string();
  if (auto gpus = options_.resources.find("GPU"); gpus != options_.resources.end())
    gpu_names_ = gpu_names(static_cast<std::size_t>(std::ceil(gpus->second)));
  pool.gpu_names = gpu_names_;
  WorkerPoolCallbacks callbacks;
  callbacks.on_actor_exited = [this](JobId job, control::ActorExited exited) {
    if (ends_.size() >= kEndsMax) ends_.erase(ends_.begin());
    ends_[exited.cause.pid] = exited.cause.text;
    const std::vector<control::ActorInstance> ended{{exited.actor, exited.incarnation}};
    report_ends(job, ended, std::move(exited));
  };
  callbacks.on_actors_exited = [this](JobId job, control::ActorsExited exited) {
    if (ends_.size() >= kEndsMax) ends_.erase(ends_.begin());
    ends_[exited.cause.pid] = exited.cause.text;
    const std::vector<control::ActorInstance> ended = exited.actors;
    report_ends(job, ended, std::move(exited));
  };
  callbacks.on_log = [this](LogLines lines) { on_log(std::move(lines)); };
  callbacks.find_folder = [this](JobId job, const control::StartActor& start, Deadline deadline,
                                 std::function<void(Result<std::string>)> found) {
    find_folder(job, start, deadline, std::move(found));
  };
  workers_ = std::make_unique<WorkerPool>(loop_, *programs_, pool, std::move(callbacks));

  MemoryGuard::Callbacks guard;
  guard.use = [] { return memory_use(); };
  guard.workers = [this] { return workers_->guarded(); };
  guard.own_memory = own_memory_bytes;
  guard.give_back = [this] { return objects_->give_back_free_memory(); };
  guard.stop = [this](const WorkerId& worker, const std::string& reason) {
    workers_->stop_worker(worker, reason);
  };
  memory_ = std::make_unique<MemoryGuard>(loop_, options_.node.short_hex(), options_.memory,
                                          std::move(guard));
}

void Node::open_jobs(const std::filesystem::path& cache) {
  JobRunnerOptions runner;
  runner.logs = logs_.get();
  runner.node_address = address_;
  runner.session_dir = options_.session_dir.string();
  runner.token = keyring_;
  runner.token_file = (options_.session_dir.parent_path() / "token").string();
  jobs_ = std::make_unique<JobRunner>(
      loop_, runner, [this](JobId job, JobOutcome outcome, const DeathCause& cause) {
        on_job_ended(job, outcome, cause);
      });
  JobFilesOptions files;
  files.cache = cache / "files";
  files.programs = cache / "programs";
  files.folders = cache / "jobs" / options_.node.hex();
  if (options_.job_size_limit != 0) files.job_bytes_max = options_.job_size_limit;
  job_files_ = std::make_unique<JobFiles>(loop_, std::move(files));
  if (!simulation()) {
    programs_->trim();
    job_files_->trim();
  }
  job_fetcher_ = std::make_unique<JobFetcher>(loop_, credentials(), *job_files_);
}

void Node::open_eyes() {
  NodeEyesOptions options;
  options.node = options_.node;
  options.credentials = credentials();
  options.is_head = options_.is_head;
  options.access = options_.metrics_access;
  options.metrics = options_.metrics;
  options.tls = options_.tls;
  NodeEyesSources sources;
  sources.workers = [this]() -> WorkerPool& { return *workers_; };
  sources.objects = [this]() -> ObjectStore& { return *objects_; };
  sources.head = [this](ControlRequest request, ControlAnswerer answer) {
    to_head(std::move(request), std::move(answer));
  };
  sources.numbers = [this](Numbers& numbers) {
    numbers["head_up"] = head_->is_up();
    numbers["head_reconnects"] = static_cast<double>(head_->reconnects());
    for (const char* role : {"node", "worker", "driver", "tool"})
      numbers["connections_" + std::string(role)] = 0;
    for (const auto& [channel, client] : clients_) {
      const Role role = channel->peer().role;
      ++numbers[role == Role::kNode     ? "connections_node"
                : role == Role::kWorker ? "connections_worker"
                : role == Role::kDriver ? "connections_driver"
                                        : "connections_tool"];
    }
    numbers["jobs_submitted_running"] = static_cast<double>(jobs_->running().size());
    numbers["memory_guard_stops"] = static_cast<double>(memory_->stops());
    numbers["draining"] = drained_.has_value();
  };
  eyes_ = std::make_unique<NodeEyes>(loop_, std::move(options), std::move(sources));
}

void Node::link_to_head() {
  Endpoint head = options_.head.for_worker(head_target());
  if (options_.is_head) {
    const std::filesystem::path socket = options_.session_dir / "head.sock";
    HeadChildOptions child;
    child.program = options_.program;
    child.cluster = options_.cluster;
    child.node = options_.node;
    child.session_dir = options_.session_dir;
    child.socket = socket;
    child.journal = options_.journal;
    child.durable = options_.durable;
    child.token = keyring_;
    child.logs = logs_.get();
    head_child_ = std::make_unique<HeadChild>(loop_, std::move(child),
                                              [this](const Status& why) { on_lost(why); });
    head =
        *Endpoint::unix_socket(socket.string());  // a session's folder leaves room for such names
  }
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
  callbacks.head_trouble = [this] { return head_child_ ? head_child_->trouble() : Status(); };
  head_ = std::make_unique<HeadLink>(loop_, std::move(head), credentials(), std::move(callbacks),
                                     options_.link);
}

control::RegisterNode Node::registration() const {
  control::RegisterNode registration;
  registration.info = info();
  registration.replaces = options_.replaces;
  registration.actors = workers_->serving();
  registration.actors.insert(registration.actors.end(), unconfirmed_ends_.begin(),
                             unconfirmed_ends_.end());
  list_jobs(registration.jobs);
  for (const auto& [channel, client] : clients_) {
    if (channel->peer().role == Role::kDriver && !client.job.is_none())
      registration.jobs.push_back(client.job);
  }
  return registration;
}

void Node::on_lost(const Status& why) {
  fenced_ = why.code() == ErrorCode::kCancelled;
  stop_on_loop(fenced_ ? unavailable(why.message())
                       : unavailable("the head is gone: " + why.message()));
}

Status Node::listen() {
  if (options_.token.empty())
    return invalid_argument("the cluster has no token: anybody could use it");
  ListenerCallbacks callbacks;
  callbacks.on_channel = [this](std::shared_ptr<Channel> channel) { accept(std::move(channel)); };
  callbacks.on_inbound = [this](const Inbound& inbound, FileDescriptor& socket) -> Status {
    if (inbound.preamble.target != head_target()) return workers_->attach(inbound, socket);
    if (!options_.is_head)
      return not_found("the head is not at " + address_ + "; join at the head's address");
    return head_->attach(inbound, socket);
  };
  callbacks.on_refused = [this, log = std::make_shared<RefusalLog>()](const std::string& peer,
                                                                      const Status& why) {
    log->note(peer, why);
    if (eyes_) eyes_->on_refused();
  };
  if (options_.metrics_access != MetricsAccess::kOff && options_.metrics.server) {
    callbacks.on_http = [this](FileDescriptor socket, std::string begun) {
      if (eyes_) eyes_->on_http(std::move(socket), std::move(begun));
    };
  }
  ListenerOptions listening;
  listening.plain = options_.plain;
  listening.also_reached_at = options_.aliases;
  // Only root can become the user who submits.
  listening.admits_submitters = ::geteuid() == 0;
  if (!options_.advertise_host.empty())
    listening.also_reached_at.push_back(Endpoint::tcp(options_.advertise_host, 0));
  auto tcp = Listener::listen(loop_, options_.bind, credentials(), callbacks, listening);
  if (!tcp.ok()) return tcp.status();
  tcp_ = std::move(*tcp);
  auto path = Endpoint::unix_socket((options_.session_dir / "node.sock").string());
  if (!path.ok()) return path.status();
  auto unix_listener = Listener::listen(loop_, *path, credentials(), callbacks, listening);
  if (!unix_listener.ok()) return unix_listener.status();
  unix_ = std::move(*unix_listener);
  Endpoint public_endpoint = tcp_->endpoint();
  if (!options_.advertise_host.empty()) public_endpoint.host = options_.advertise_host;
  address_ = public_endpoint.to_string();
  return {};
}

NodeInfo Node::info() const {
  NodeInfo info;
  info.node = options_.node;
  info.address = address_;
  info.hostname = machine_hostname();
  info.pid = ::getpid();
  info.is_head = options_.is_head;
  info.resources = options_.resources;
  info.labels = options_.labels;
  return info;
}

Status Node::join() {
  auto joined = std::make_shared<Status>(deadline_exceeded("the head does not answer"));
  auto done = std::make_shared<Event>(loop_);
  loop_.post([this, joined, done] {
    if (head_child_) {
      if (Status status = head_child_->start(); !status.ok()) {
        *joined = status;
        return done->set();
      }
    }
    head_->join(kHeadTimeout, [this, joined, done](const Status& status) {
      if (status.ok() && head_child_) head_child_->confirm();
      *joined = status;
      done->set();
    });
  });
  // What the head's process cannot do stops the node.
  loop_.run_until(*done, deadline_after(kHeadTimeout + 2 * kControlGrace));
  if (stopping_) return stop_reason_;
  if (!joined->ok()) return joined->with_context("joining the cluster");
  if (!options_.is_head) {
    lease_ = std::make_unique<LeaseKeeper>(options_.head.for_worker(head_target()), credentials(),
                                           options_.link.heartbeat);
    if (!lease_->status().ok()) return lease_->status();
  }
  return options_.autoscaler.empty() ? Status()
                                     : on_loop(loop_, [this] { return start_autoscaler(); });
}

Status Node::start_autoscaler() {
  KeptProcessOptions kept;
  kept.name = "the autoscaler";
  kept.log = options_.session_dir / "logs" / "autoscaler.log";
  kept.logs = logs_.get();
  kept.spec.program = options_.program;
  kept.spec.argv = {options_.program};
  kept.spec.argv.insert(kept.spec.argv.end(), options_.autoscaler.begin(),
                        options_.autoscaler.end());
  kept.spec.argv.insert(kept.spec.argv.end(), {"--address", address_, "--left",
                                               (options_.session_dir / kLeftFile).string()});
  kept.spec.env = token_variables(options_.session_dir.parent_path() / "token");
  autoscaler_ = std::make_unique<KeptProcess>(loop_, std::move(kept));
  return autoscaler_->start();
}

void Node::read_what_is_left() {
  const std::filesystem::path file = options_.session_dir / kLeftFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;  // it has not come to begin
  auto text = read_file(file, kLeftBytesMax);
  std::filesystem::remove(file, error);
  left_ = text.ok() ? std::move(*text)
                    : "what the autoscaler leaves cannot be read: " + text.status().message();
  if (left_.empty()) return;
  left_ += "\n  see " + (options_.session_dir / "logs" / "autoscaler.log").string();
  LOG(error, "{}", left_);
}

// -- Connections

void Node::accept(std::shared_ptr<Channel> channel) {
  if (stopping_)
    return channel->close(unavailable("node " + options_.node.short_hex() + " is stopping"));
  clients_[channel.get()] = {channel, {}};
  channel->set_handler(
      [this, alive = alive_](const std::shared_ptr<Channel>& from, Message message) {
        if (*alive) on_message(from, std::move(message));
      });
  channel->set_on_close([this, alive = alive_, weak = std::weak_ptr<Channel>(channel)](Status why) {
    auto closed = weak.lock();
    if (closed && *alive) on_closed(closed, why);
  });
  const bool runs_code =
      channel->peer().role == Role::kWorker || channel->peer().role == Role::kDriver;
  if (runs_code) objects_->attach(channel);
  if (runs_code) tell_of_drains(*channel);
  tell_of_token(*channel);
  if (channel->peer().role != Role::kWorker) return;
  auto job = workers_->on_connected(channel);
  if (!job)
    return channel->close(
        invalid_argument("node " + options_.node.short_hex() + " did not start this worker"));
  clients_[channel.get()].job = *job;
}

void Node::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  const bool is_submitter = channel->peer().is_submitter;
  if (is_submitter && message.kind != FrameKind::kControl)
    return channel->close(invalid_argument("a submitter sent a frame that is none of a request"));
  if (objects_->handle(channel, message)) return;
  if (message.kind == FrameKind::kActivity) return eyes_->on_activity(*channel, message);
  if (message.kind != FrameKind::kControl) {
    return LOG(warn, "{} sent a frame of kind {}, which a node does not serve",
               channel->describe_peer(), static_cast<int>(message.kind));
  }
  ControlAnswerer answer = answerer_for(channel, message);
  auto request = decode_control_request(message.meta);
  if (!request.ok()) return answer(request.status());
  if (is_submitter) {
    const auto owns = [&](JobId job) { return is_job_of(job, channel->peer()); };
    if (Status status = check_submitter(*request, owns); !status.ok()) return answer(status);
    const std::optional<uid_t> uid = peer_user(channel->peer(), address_);
    answer = [told = std::move(answer), user = uid ? std::optional(user_name(*uid)) : std::nullopt](
                 Result<ControlAnswer> result) mutable {
      if (result.ok()) hide_from_submitter(*result, user);
      told(std::move(result));
    };
  }
  // Actors that will go on elsewhere save their state meanwhile.
  const bool saves = std::holds_alternative<control::SaveState>(request->body);
  const bool from_node = channel->peer().role == Role::kNode;
  if (stopping_ && !from_node && !saves)
    return answer(unavailable("node " + options_.node.short_hex() + " is stopping"));
  if (from_node)
    serve_node(*request, std::move(answer));
  else
    serve_client(channel, std::move(*request), std::move(answer));
}

void Node::on_closed(const std::shared_ptr<Channel>& channel, const Status& why) {
  auto found = clients_.find(channel.get());
  if (found == clients_.end()) return;
  const Client client = std::move(found->second);
  clients_.erase(found);
  objects_->detach(*channel);
  eyes_->on_closed(*channel);
  const PeerInfo& peer = channel->peer();
  if (peer.role == Role::kWorker) workers_->on_disconnected(peer.worker, why);
  if (peer.role == Role::kDriver && !client.job.is_none()) on_driver_closed(client);
  jobs_->on_submitter_closed(*channel);
  on_submitter_closed(*channel);
  job_files_->forget(channel->serial());
}

// -- Requests

void Node::to_head(ControlRequest request, ControlAnswerer answer, HeadLink::Urgency urgency) {
  head_->request(std::move(request), std::move(answer), urgency);
}

void Node::tell_head(ControlRequest::Body body, JobId job, UniqueFunction<void()> confirmed) {
  to_head(ControlRequest{job, kReportTimeout, std::move(body)},
          [confirmed = std::move(confirmed)](Result<ControlAnswer> answer) mutable {
            if (!answer.ok() && answer.status().code() != ErrorCode::kUnavailable)
              LOG(warn, "the head: {}", answer.status().message());
            if (answer.ok() && confirmed) confirmed();
          });
}

void Node::report_ends(JobId job, const std::vector<control::ActorInstance>& ended,
                       ControlRequest::Body report) {
  unconfirmed_ends_.insert(ended.begin(), ended.end());
  tell_head(std::move(report), job, [this, alive = alive_, ended] {
    if (!*alive) return;
    for (const control::ActorInstance& actor : ended) unconfirmed_ends_.erase(actor);
  });
}

Node::Client* Node::driver_of(JobId job) {
  for (auto& [channel, client] : clients_) {
    if (client.job == job && channel->peer().role == Role::kDriver) return &client;
  }
  return nullptr;
}

void Node::serve_client(const std::shared_ptr<Channel>& channel, ControlRequest request,
                        ControlAnswerer answer) {
  Client& client = clients_[channel.get()];
  if (auto* body = std::get_if<control::RegisterDriver>(&request.body)) {
    return register_driver(channel, request.job, std::move(body->info), std::move(answer));
  }
  if (serve_job(channel, request, answer)) return;
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
    return eyes_->serve(*seen, request.timeout, std::move(answer));
  }
  bool for_head = std::holds_alternative<control::CreateActor>(request.body) ||
                  std::holds_alternative<control::ResolveActor>(request.body) ||
                  std::holds_alternative<control::QueryActor>(request.body) ||
                  std::holds_alternative<control::KillActor>(request.body) ||
                  std::holds_alternative<control::KvPut>(request.body) ||
                  std::holds_alternative<control::KvGet>(request.body) ||
                  std::holds_alternative<control::KvAdd>(request.body) ||
                  std::holds_alternative<control::KvDelete>(request.body) ||
                  std::holds_alternative<control::QueryCluster>(request.body) ||
                  std::holds_alternative<control::CreateGroup>(request.body) ||
                  std::holds_alternative<control::RemoveGroup>(request.body) ||
                  std::holds_alternative<control::TerminateActor>(request.body) ||
                  std::holds_alternative<control::WatchActor>(request.body) ||
                  std::holds_alternative<control::WatchNodes>(request.body) ||
                  std::holds_alternative<control::SaveState>(request.body) ||
                  std::holds_alternative<control::ParkActor>(request.body) ||
                  std::holds_alternative<ObjectControl>(request.body) ||
                  std::holds_alternative<control::QueryGroup>(request.body) ||
                  std::holds_alternative<control::QueryJob>(request.body) ||
                  std::holds_alternative<control::CancelJob>(request.body) ||
                  std::holds_alternative<control::DrainNode>(request.body) ||
                  std::holds_alternative<control::QueryDemand>(request.body) ||
                  std::holds_alternative<control::ChangeToken>(request.body) ||
                  std::holds_alternative<ObserveControl>(request.body);
  if (!for_head) return answer(unimplemented("a node does not serve this to its clients"));
  request.job = client.job;
  // Who types a command wants to hear that the head is away; programs wait for it.
  to_head(
      std::move(request), std::move(answer),
      channel->peer().role == Role::kTool ? HeadLink::Urgency::kNow : HeadLink::Urgency::kWaits);
}

void Node::serve_node(ControlRequest& request, ControlAnswerer answer) {
  if (auto* body = std::get_if<control::FetchFile>(&request.body);
      body && is_content_hash(body->hash)) {
    auto shared = std::make_shared<ControlAnswerer>(std::move(answer));
    return job_files_->read(body->hash, body->offset, [shared](Result<std::string> part) {
      part.ok() ? (*shared)(ControlAnswer{*std::move(part)}) : (*shared)(part.status());
    });
  }
  if (auto* body = std::get_if<control::FetchFile>(&request.body);
      body && body->hash.starts_with("job/")) {
    auto part = job_fetcher_->read_list(body->hash, body->offset);
    return part.ok() ? answer(ControlAnswer{std::move(*part)}) : answer(part.status());
  }
  if (auto* body = std::get_if<control::FetchFile>(&request.body)) {
    auto bytes = programs_->read(body->hash, body->offset);
    return bytes.ok() ? answer(ControlAnswer{std::move(*bytes)}) : answer(bytes.status());
  }
  answer(unimplemented("a node does not serve this to other nodes"));
}

void Node::serve_head(ControlRequest request, ControlAnswerer answer) {
  if (auto* start = std::get_if<control::StartActor>(&request.body)) {
    if (unconfirmed_ends_.contains({start->spec.actor, start->incarnation}))
      return answer(actor_died("it has ended already"));
    if (start->spec.bundle && !reservations_.holds(start->spec.bundle->group)) {
      return answer(unavailable("node " + options_.node.short_hex() +
                                " holds nothing for placement group " +
                                start->spec.bundle->group.short_hex() + " (any more)"));
    }
    return workers_->start_actor(request.job, std::move(*start), deadline_after(request.timeout),
                                 std::move(answer));
  }
  if (auto* reserve = std::get_if<control::Reserve>(&request.body))
    return answer(ControlAnswer{reservations_.apply(*reserve, stopping_ ? "it is stopping" : "")});
  if (auto* take = std::get_if<control::TakeOver>(&request.body))
    return take_over(*take, request.timeout, std::move(answer));
  if (auto* objects = std::get_if<ObjectControl>(&request.body))
    return serve_objects(*objects, request.timeout, std::move(answer));
  if (auto* stop = std::get_if<control::StopActor>(&request.body)) {
    workers_->stop_actor(*stop);
  } else if (auto* end = std::get_if<control::EndJob>(&request.body)) {
    workers_->end_job(end->job);
    if (!end->files_needed) {
      job_fetcher_->forget(end->job);
      job_files_->release(end->job);
    }
  } else if (auto* cancel = std::get_if<control::CancelJob>(&request.body)) {
    Status status = cancel_job(cancel->job, "stopped on request");
    if (!status.ok()) return answer(status);
  } else if (std::holds_alternative<control::StopNode>(request.body)) {
    stop_on_loop(cancelled("stopped with its cluster"));
  } else if (auto* expect = std::get_if<control::ExpectToken>(&request.body)) {
    Status kept = options_.keep_token ? options_.keep_token(expect->token, false) : Status();
    if (!kept.ok()) return answer(kept);
    keyring_.expect(expect->token);
  } else if (auto* leave = std::get_if<control::Leave>(&request.body)) {
    stop_on_loop(cancelled(leave->reason));
  } else {
    return answer(unimplemented("the head asks a node for something that nodes do not do"));
  }
  answer(ControlAnswer{});
}

// -- Events

void Node::on_log(LogLines lines) {
  if (Client* driver = driver_of(lines.job)) return send_event(*driver->channel, lines);
  head_->event(lines);
}

void Node::on_head_event(const ControlEvent& event) {
  if (const auto* lines = std::get_if<LogLines>(&event)) {
    if (Client* driver = driver_of(lines->job)) send_event(*driver->channel, event);
  } else if (const auto* drains = std::get_if<control::NodeDrains>(&event)) {
    on_node_drains(*drains);
  } else if (const auto* changed = std::get_if<control::TokenChanged>(&event)) {
    on_token_changed(*changed);
  } else if (const auto* died = std::get_if<control::ActorsDied>(&event)) {
    for (auto& [channel, client] : clients_) {
      if (client.job == died->job && !client.job.is_none()) send_event(*client.channel, event);
    }
  }
}

void Node::on_token_changed(const control::TokenChanged& changed) {
  const bool is_new = changed.state.token != keyring_.present();
  keyring_.change(tokens_of(changed.state));
  if (options_.keep_token) {
    if (Status kept = options_.keep_token(changed.state.token, true); !kept.ok())
      LOG(error, "the cluster's new token: {}", kept.message());
  }
  if (is_new) LOG(info, "the cluster has another token");
  for (auto& [channel, client] : clients_) tell_of_token(*client.channel);
}

void Node::tell_of_token(Channel& channel) {
  const Tokens tokens = keyring_.tokens();
  // Nodes hear of it from the head; submitters have a token of their own.
  if (tokens.version == 0 || channel.peer().role == Role::kNode || channel.peer().is_submitter)
    return;
  send_event(channel, control::TokenChanged{state_of(tokens)});
}

// -- The end

Status Node::wait() {
  loop_.run_until(stopped_, Deadline::max());
  return stop_reason_;
}

void Node::stop(Status reason) {
  loop_.post([this, alive = alive_, reason = std::move(reason)] {
    if (*alive) stop_on_loop(reason);
  });
}

void Node::quit(Status reason) {
  loop_.post([this, alive = alive_, reason = std::move(reason)] {
    if (!*alive) return;
    stopping_ = true;
    stop_reason_ = reason;
    stopped_.set();
  });
}

void Node::stop_on_loop(Status reason) {
  // First, while the head still serves it: what was added for this cluster is removed with it.
  if (autoscaler_ && !stopping_) {
    if (std::exchange(autoscaler_stops_, true)) return;
    LOG(info, "stopping the autoscaler: {}", reason.message());
    return autoscaler_->end(options_.autoscaler_stop + kControlGrace,
                            [this, alive = alive_, reason] {
                              if (!*alive) return;
                              loop_.post([this, alive, reason] {
                                if (!*alive) return;
                                autoscaler_.reset();
                                read_what_is_left();
                                stop_on_loop(reason);
                              });
                            });
  }
  if (std::exchange(stopping_, true)) return;
  LOG(info, "stopping: {}", reason.message());
  stop_reason_ = reason;
  leave_timer_.cancel();
  for (auto& watch : watches_) watch->stop();
  jobs_timer_.cancel();
  for (auto& [channel, client] : clients_) {
    const Role role = channel->peer().role;
    if (role != Role::kNode)
      send_event(*client.channel,
                 control::Shutdown{unavailable("the node stops: " + reason.message()),
                                   role == Role::kTool ? left_ : ""});
  }
  if (!options_.is_head || !head_->is_up()) return end_everything();
  to_head(ControlRequest{{}, kNodesStopMax, control::StopNode{}},
          [this, alive = alive_](Result<ControlAnswer>) {
            if (*alive) end_everything();
          });
}

void Node::end_everything() {
  jobs_->end_all([this] {
    workers_->end_all(
        drained_ ? "its node was drained (" + *drained_ + ")" : "its node was stopped", [this] {
          tcp_->stop();
          unix_->stop();
          std::vector<std::shared_ptr<Channel>> open;
          for (auto& [channel, client] : clients_) open.push_back(client.channel);
          for (const auto& channel : open) channel->close(unavailable("the node has stopped"));
          head_->close(cancelled("the node has stopped"));
          if (!head_child_) return stopped_.set();
          head_child_->end([this] { stopped_.set(); });
        });
  });
}

Node::~Node() {
  lease_.reset();
  on_loop(loop_, [this] {
    *alive_ = false;
    if (tcp_) tcp_->stop();
    if (unix_) unix_->stop();
    if (head_) head_->close(cancelled("the node has stopped"));
    watches_.clear();
    autoscaler_.reset();
    jobs_.reset();
    job_fetcher_.reset();
    job_files_.reset();
    memory_.reset();
    eyes_.reset();
    workers_.reset();
    programs_.reset();
    for (auto& [channel, client] : clients_)
      client.channel->close(unavailable("the node has stopped"));
    clients_.clear();
    head_.reset();
    head_child_.reset();
    objects_.reset();
    logs_.reset();  // last: the others' logs use it
    return 0;
  });
}

}  // namespace runtime
