#include "runtime/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "runtime/call/actor_client.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/get.h"
#include "runtime/call/group_failure.h"
#include "runtime/call/process.h"
#include "runtime/call/task_pool.h"
#include "runtime/control/actor_directory.h"
#include "runtime/control/cluster_view.h"
#include "runtime/control/local_cluster.h"
#include "runtime/core/descriptor_limit.h"
#include "runtime/core/environment.h"
#include "runtime/core/fork_guard.h"
#include "runtime/core/log.h"
#include "runtime/core/printable_text.h"
#include "runtime/core/simulation.h"
#include "runtime/core/timer.h"
#include "runtime/job/program_files.h"
#include "runtime/process/line_merger.h"
#include "runtime/process/worker_environment.h"
#include "runtime/worker/crash_handler.h"
#include "runtime/worker/worker.h"

namespace runtime {

namespace {
class WorkerOutput;
}

struct Runtime::Impl : Connection {
  RuntimeOptions options;
  std::vector<std::string> arguments;
  std::shared_ptr<Registry> registry =
      std::make_shared<Registry>();  // shared: handles may outlive the Runtime
  ActorClass* functions = nullptr;   // the registered ones
  std::mutex mutex;                  // guards the making of tasks
  std::shared_ptr<TaskPool> tasks;   // from the first task on
  std::unique_ptr<LocalCluster> cluster;
  std::shared_ptr<WorkerOutput> output;  // of a driver that shows it
  std::mutex start_mutex;                // held while it starts
};

namespace runtime_detail {

int exit_code(int code) { return code; }

int exit_code(const Status& status) {
  if (status.ok()) return 0;
  if (!simulation())
    std::fprintf(stderr, "error: %s\n", terminal_text(STDERR_FILENO, status.to_string()).c_str());
  return 1;
}

}  // namespace runtime_detail

namespace {

/// Takes `--address X` and `--address=X` out of the arguments.
std::vector<std::string> take_address(int argc, char** argv, std::string& address) {
  constexpr std::string_view kFlag = "--address";
  std::vector<std::string> rest;
  for (int i = 0; i < argc; ++i) {
    std::string_view argument(argv[i]);
    if (argument == kFlag && i + 1 < argc) {
      address = argv[++i];
    } else if (argument.starts_with(kFlag) && argument.size() > kFlag.size() &&
               argument[kFlag.size()] == '=') {
      address = argument.substr(kFlag.size() + 1);
    } else if (argument == "--") {  // what follows is not for us
      rest.insert(rest.end(), argv + i, argv + argc);
      break;
    } else {
      rest.emplace_back(argument);
    }
  }
  return rest;
}

/// No further calls of this process; waits for those that were made, at most until the deadline.
void hold_until_quiet(Process& process, ActorClient& client, Deadline deadline) {
  // Shared: at the deadline the calls continue, and so may what tells of their end.
  auto quiet = std::make_shared<Event>(process.loop());
  client.hold_calls(actor_died(client.describe() + " is being terminated by this process"),
                    [quiet] { quiet->set(); });
  block_until(process.loop(), *quiet, deadline);
}

/// What concerns the whole operating-system process.
void become_worker(const std::string& who) {
  // Lines, not blocks: the node passes on what a worker writes.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  raise_descriptor_limit();
  start_log(who);
  install_crash_handler(who);
}

/// Prints what the workers write.
class WorkerOutput : public std::enable_shared_from_this<WorkerOutput> {
 public:
  WorkerOutput(EventLoop& loop, bool deduplicate)
      : merger_(print_worker_lines, {.deduplicate = deduplicate}), timer_(loop.context()) {}

  /// On the loop.
  void add(const LogLines& lines) {
    std::lock_guard lock(mutex_);
    merger_.add(lines, steady_now());
    if (const Deadline due = merger_.due(); due < due_) arm(due);
  }
  void finish() {
    std::lock_guard lock(mutex_);
    merger_.flush(Deadline::max());
  }

 private:
  void arm(Deadline due) {
    due_ = due;
    timer_.expires_at(due);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
      auto self = weak.lock();
      if (ec || !self) return;
      std::lock_guard lock(self->mutex_);
      self->merger_.flush(steady_now() - LineMergerOptions().window);
      self->due_ = Deadline::max();
      if (const Deadline next = self->merger_.due(); next < Deadline::max()) self->arm(next);
    });
  }

  std::mutex mutex_;  // guards what follows
  LineMerger merger_;
  Timer timer_;  // on the loop
  Deadline due_ = Deadline::max();
};

bool wants_deduplication(const RuntimeOptions& options) {
  const char* variable = environment_variable("STARLING_DEDUP_LOGS");
  return options.deduplicate_output && !(variable && std::string_view(variable) == "0");
}

}  // namespace

namespace {

/// Workers for tasks: actors of a separate class, children of whose code runs.
TaskPool::WorkerSource task_workers(const std::shared_ptr<Process>& process) {
  TaskPool::WorkerSource workers;
  workers.ask = [process](const ResourceMap& resources,
                          std::chrono::milliseconds timeout) -> Result<PendingActor> {
    auto constructor =
        encode_constructor(std::string(Constructor<TaskRunner>::entry.signature), {}, {});
    if (!constructor.ok()) return constructor.status();
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = TaskRunner::kClassName;
    spec.resources = resources;
    spec.create_timeout = timeout;
    const ActorInstance owner = process->current_actor();
    spec.owner = owner.actor;
    spec.owner_incarnation = owner.incarnation;
    spec.constructor_args = *std::move(constructor);
    return process->start_actor(std::move(spec), {}, timeout);
  };
  auto tell = [](const char* what) {
    return [what](const Status& status) {
      if (!status.ok()) LOG(debug, "{} a task worker: {}", what, status.message());
    };
  };
  workers.give_back = [process, tell](ActorId actor) {
    ActorDirectory(process->node())
        .kill(actor, false, deadline_after(std::chrono::seconds(30)), tell("giving back"));
  };
  workers.park = [process, tell](ActorId actor) {
    ActorDirectory(process->node())
        .park(actor, deadline_after(std::chrono::seconds(30)), tell("parking"));
  };
  return workers;
}

}  // namespace

Runtime::Runtime(int argc, char** argv, RuntimeOptions options) : impl_(std::make_unique<Impl>()) {
  std::string address;
  impl_->arguments = take_address(argc, argv, address);
  impl_->options = std::move(options);
  if (impl_->options.address.empty()) impl_->options.address = std::move(address);
}

Runtime::~Runtime() {
  stop();
  if (impl_->is_forked())
    (void)impl_.release();  // the threads that its destructor would wait for are the parent's
}

ActorClass& Runtime::add_class(std::string name, std::type_index type) {
  return impl_->registry->add(std::move(name), type);
}

ActorClass& Runtime::functions() {
  if (!impl_->functions) impl_->functions = &add_class(TaskRunner::kClassName, typeid(TaskRunner));
  return *impl_->functions;
}

bool Runtime::is_worker() const { return is_worker_process(); }

const std::vector<std::string>& Runtime::arguments() const { return impl_->arguments; }

int Runtime::run_worker() {
  auto environment = read_worker_environment();
  if (!environment.ok()) return runtime_detail::exit_code(environment.status());
  if (!simulation()) become_worker("worker " + environment->worker.short_hex());
  impl_->registry->seal();
  impl_->process = Process::make(impl_->registry);
  impl_->generation = fork_generation();
  auto makers = [this](std::type_index type, std::string_view signature) -> ActorMaker {
    const ConstructorEntry* constructor = find_constructor(type, signature);
    if (!constructor) return nullptr;
    return [this, constructor](Decoder& arguments, Deadline deadline) {
      return constructor->construct(*this, arguments, deadline);
    };
  };
  auto worker = Worker::start(impl_->process, makers);
  if (!worker.ok()) {
    const int code = runtime_detail::exit_code(worker.status());
    return worker.status().code() == ErrorCode::kResourceExhausted ? kNoRoomExitCode : code;
  }
  (*worker)->run();
  worker->reset();
  stop();
  return 0;
}

Status Runtime::start() {
  if (impl_->is_forked()) return forked_status();
  std::lock_guard starting(impl_->start_mutex);
  if (impl_->stopped) return cancelled("the runtime was stopped; make a new one");
  if (impl_->process) return {};
  if (is_worker()) return invalid_argument("this process is a worker: call run()");
  impl_->registry->seal();
  const RuntimeOptions& options = impl_->options;
  Deadline deadline = deadline_after(options.connect_timeout);
  const bool is_private = wants_private_cluster(options.address);
  if (is_private && !options.start_cluster)
    return invalid_argument(
        "a private cluster is asked for (--address private, or STARLING_ADDRESS), which this "
        "program does not start");
  auto found = is_private ? Result<ClusterAddress>(not_found("")) : find_cluster(options.address);
  const bool named = !is_private && (!options.address.empty() ||
                                     environment_variable("STARLING_ADDRESS") != nullptr);
  if (!found.ok() && found.status().code() == ErrorCode::kNotFound && !named &&
      options.start_cluster) {
    auto cluster = LocalCluster::start(options.start_arguments, options.connect_timeout);
    if (!cluster.ok()) return cluster.status();
    impl_->cluster = *std::move(cluster);
    found = find_cluster(impl_->cluster->address());
  }
  if (!found.ok()) return found.status();

  auto process = Process::make(impl_->registry);
  if (!process->loop().status().ok()) return process->loop().status();
  auto node = NodeClient::connect(process->loop(), *found, Role::kDriver, deadline);
  if (!node.ok()) return node.status();
  if (options.forward_output) {
    impl_->output = std::make_shared<WorkerOutput>(process->loop(), wants_deduplication(options));
    (*node)->set_on_log([output = impl_->output](const LogLines& lines) { output->add(lines); });
  }
  (*node)->set_on_actor_died([weak = std::weak_ptr(process)](ActorId actor) {
    if (auto self = weak.lock()) self->on_actor_died(actor);
  });
  (*node)->set_on_shutdown([weak = std::weak_ptr(process)](const Status& reason) {
    auto self = weak.lock();
    if (self && !self->is_shut_down()) LOG(warn, "the cluster is gone: {}", reason.message());
  });
  process->attach(*std::move(node));
  auto program = describe_this_program();
  if (!program.ok()) return program.status();
  program->warm_workers = options.warm_workers;
  program->name_space = options.name_space;
  auto job = process->ask<JobId>([&](NodeClient::Callback<JobId> done) {
    process->node().register_driver(*std::move(program), deadline, std::move(done));
  });
  if (!job.ok()) return job.status();
  impl_->process = std::move(process);
  impl_->generation = fork_generation();
  return {};
}

void Runtime::stop() { stop(0); }

void Runtime::stop(int exit_code) {
  if (impl_->is_forked()) return;  // the cluster side of it is the parent's
  if (impl_->process && !impl_->stopped) {
    std::shared_ptr<TaskPool> tasks;
    {
      std::lock_guard lock(impl_->mutex);
      tasks = impl_->tasks;
    }
    if (tasks) tasks->close();
    if (!is_worker() && impl_->options.forward_output) {
      // Lines that workers wrote before their last reply are on the way; a round trip or two lets
      // them arrive.
      for (int i = 0; i < 2; ++i) (void)kv().try_get("", std::chrono::milliseconds(500));
      if (impl_->output) impl_->output->finish();
    }
    if (!is_worker()) impl_->process->node().driver_done(exit_code);
    impl_->process->shut_down();
    impl_->output.reset();
  }
  impl_->stopped = impl_->stopped || impl_->process != nullptr;
  impl_->cluster.reset();
}

Status Runtime::require_started() const { return impl_->require_started(); }

Result<PendingActor> Runtime::start_actor(std::type_index type, std::string_view signature,
                                          const ActorOptions& options, Encoder& arguments) {
  if (Status status = require_started(); !status.ok()) return status;
  Process& process = *impl_->process;
  auto known = impl_->registry->find(type);
  if (!known.ok()) return known.status();
  if (Status status = options.check(); !status.ok()) return status.with_context((*known)->name());
  Deadline deadline = deadline_after(options.create_timeout);
  while (ObjectStatePtr ref = first_unsettled(referred_objects(arguments.refs()))) {
    if (!ref->wait(deadline))
      return deadline_exceeded("an object that the constructor needs was not there in time");
  }
  // What outlives this process takes its arguments along, instead of leaving large ones in this
  // process's part of the store.
  auto value = options.detached ? Result<ObjectValue>(process.inlined(arguments))
                                : process.store(arguments, room_deadline(deadline));
  if (!value.ok()) return value.status().with_context("arguments of " + (*known)->name());
  ExecutionOptions execution{options.max_concurrency, options.concurrency_groups,
                             options.cpu_affinity};
  if (Status status = execution.check(); !status.ok()) return status.with_context((*known)->name());
  for (const auto& [method, timeout] : options.method_timeouts) {
    if (timeout.count() <= 0)
      return invalid_argument("method_timeouts: \"" + method + "\" would have no time");
    if (!(*known)->has_method(method))
      return invalid_argument("method_timeouts: " + (*known)->name() + " has no method \"" +
                              method + "\"");
  }
  for (const auto& [group, limit] : execution.concurrency_groups) {
    if (!(*known)->has_group(group)) {
      return invalid_argument("no method of " + (*known)->name() + " is in concurrency group \"" +
                              group +
                              "\": assign some with method(&T::m, {.concurrency_group = \"" +
                              group + "\"}) at registration");
    }
  }
  auto encoded = encode_constructor(std::string(signature), *value, execution);
  if (!encoded.ok()) return encoded.status();

  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = (*known)->name();
  spec.name = options.name;
  spec.resources = options.resources;
  if (options.cpus != 0) spec.resources["CPU"] = options.cpus;
  if (options.gpus != 0) spec.resources["GPU"] = options.gpus;
  spec.env = options.env;
  spec.threads = options.threads;
  spec.bundle = options.bundle;
  spec.node = options.node;
  spec.labels = options.labels;
  spec.node_is_preferred = options.node_is_preferred;
  spec.scheduling = options.scheduling;
  spec.name_space = options.name_space;
  spec.get_if_exists = options.get_if_exists;
  spec.detached = options.detached;
  spec.max_restarts = options.max_restarts;
  spec.create_timeout = options.create_timeout;
  spec.log_prefix = options.log_prefix;
  spec.caller_options = encode_caller_options({options.out_of_order, options.method_timeouts});
  if (!options.detached) {
    const ActorInstance owner = process.current_actor();
    spec.owner = owner.actor;
    spec.owner_incarnation = owner.incarnation;
  }
  spec.shared = options.isolation == Isolation::kShared;
  spec.constructor_args = *std::move(encoded);
  return process.start_actor(std::move(spec), *std::move(value), options.create_timeout);
}

Result<std::shared_ptr<ActorClient>> Runtime::finish_actor(const PendingActor& pending) {
  // A user should not wonder for minutes what a program waits for.
  if (!pending.created->wait(deadline_after(kSilentWait))) explain_wait(pending.actor);
  // It always settles, at its own deadline at the latest.
  if (!pending.created->wait(Deadline::max())) return cancelled("the runtime was stopped");
  if (!pending.created->failure().ok()) return pending.created->failure();
  return impl_->process->client_for(*pending.address);
}

void Runtime::explain_wait(ActorId actor) {
  // No caller waits for this answer: a head that is away would hold the creator beyond its
  // deadline.
  ActorDirectory(impl_->process->node())
      .state(actor, 0, deadline_after(kSilentWait), [](Result<ActorState> state) {
        if (!state.ok() || state->pending_reason.empty())
          return;  // it is being built, or gone: that answer comes by itself
        LOG(warn, "actor {} {} has to wait for a place: {}", state->class_name,
            state->actor.short_hex(), state->pending_reason);
      });
}

Result<std::vector<std::shared_ptr<ActorClient>>> Runtime::finish_group(
    const std::vector<Result<PendingActor>>& pending) {
  std::vector<std::shared_ptr<ActorClient>> clients;
  std::vector<MemberFailure> failures;
  for (std::size_t rank = 0; rank < pending.size(); ++rank) {
    auto client = pending[rank].ok() ? finish_actor(*pending[rank])
                                     : Result<std::shared_ptr<ActorClient>>(pending[rank].status());
    if (client.ok())
      clients.push_back(*std::move(client));
    else
      failures.push_back({rank, client.status()});
  }
  if (failures.empty()) return clients;
  std::vector<ActorId> made;
  for (std::size_t rank = 0, at = 0; rank < pending.size() && at < clients.size(); ++rank) {
    if (!pending[rank].ok() || !pending[rank]->created->failure().ok()) continue;
    const ActorId actor = clients[at++]->id();
    if (actor == pending[rank]->actor)
      made.push_back(actor);  // else get_if_exists: it was there before
  }
  Status status = kill_actors(std::move(made), deadline_after(std::chrono::seconds(10)));
  if (!status.ok()) LOG(warn, "of a group that could not be created: {}", status.message());
  return group_failure(failures);
}

Result<std::shared_ptr<ActorClient>> Runtime::find_actor(std::type_index type,
                                                         const std::string& name,
                                                         const std::string& name_space,
                                                         Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  auto known = impl_->registry->find(type);
  if (!known.ok()) return known.status();
  // A second for the way from the default argument to here.
  const bool has_own_limit = deadline < deadline_after(kFindActorTime - std::chrono::seconds(1));
  const PendingActor found = impl_->process->find_actor((*known)->name(), name, name_space,
                                                        bounded(deadline), has_own_limit);
  if (!found.created->wait(Deadline::max())) return cancelled("the runtime was stopped");
  if (!found.created->failure().ok()) return found.created->failure();
  const ActorAddress& address = *found.address;
  if (address.class_name != (*known)->name()) {
    return invalid_argument("actor \"" + name + "\" is a " + address.class_name + ", not a " +
                            (*known)->name());
  }
  return impl_->process->client_for(address);
}

Status Runtime::kill_actor(ActorId actor, Restarts restarts, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  if (actor.is_none()) return invalid_argument("kill of an ActorHandle that refers to no actor");
  return impl_->process->ask([&](NodeClient::Done done) {
    ActorDirectory(impl_->process->node())
        .kill(actor, restarts == Restarts::kAllowed, bounded(deadline), std::move(done));
  });
}

Status Runtime::terminate_actor(ActorId actor, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  if (actor.is_none())
    return invalid_argument("terminate of an ActorHandle that refers to no actor");
  const std::shared_ptr<ActorClient> client = impl_->process->find_client(actor);
  if (client) hold_until_quiet(*impl_->process, *client, deadline);
  Status status = impl_->process->ask([&](NodeClient::Done done) {
    ActorDirectory(impl_->process->node())
        .terminate(actor, false, bounded(deadline), std::move(done));
  });
  if (client) client->resume_calls();  // the head tells of the end, if it came to that
  return status;
}

Status Runtime::restart_actor(ActorId actor, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  if (actor.is_none()) return invalid_argument("restart of an ActorHandle that refers to no actor");
  return impl_->process->ask([&](NodeClient::Done done) {
    ActorDirectory(impl_->process->node())
        .terminate(actor, true, bounded(deadline), std::move(done));
  });
}

Status Runtime::save_actor_state(ActorClient* client, std::type_index type, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  if (!client) return invalid_argument("save_state of an ActorHandle that refers to no actor");
  const CallOptions options{.until = bounded(deadline)};
  Encoder no_arguments;
  ObjectStatePtr saved = client->call(type, save_state_key(), no_arguments,
                                      options.timeout_or(std::chrono::hours(24)));
  return saved->open(Deadline::max()).status();  // the call has the deadline
}

Status Runtime::save_own_state(const void* actor, const StateHooks& hooks, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  return save_state_of(actor, hooks, impl_->process->current_actor(), *impl_->process, deadline);
}

Watch Runtime::watch_actor(ActorId actor, std::function<void(const ActorEvent&)> callback) {
  if (!require_started().ok() || actor.is_none()) return {};
  return Watch::on_actor(impl_->process->queries(), actor, std::move(callback));
}

ObjectRef<ActorDeath> Runtime::death_of_actor(ActorId actor) {
  Status status = require_started();
  if (status.ok() && actor.is_none())
    status = invalid_argument("when_dead of an ActorHandle that refers to no actor");
  if (!status.ok())
    return ObjectRef<ActorDeath>(
        ObjectState::failed(object_context(impl_->process), std::move(status)));
  return ObjectRef<ActorDeath>(death_of(impl_->process->queries(), actor));
}

Status Runtime::kill_actors(std::vector<ActorId> actors, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  if (actors.empty()) return {};
  struct Kills {
    std::size_t left;
    Status first;
    NodeClient::Done done;
  };
  return impl_->process->ask([&](NodeClient::Done done) {
    auto kills = std::make_shared<Kills>(Kills{
        actors.size(), {}, std::move(done)});  // touched by callbacks, which run one at a time
    for (ActorId actor : actors) {
      ActorDirectory(impl_->process->node())
          .kill(actor, false, bounded(deadline), [kills](Status status) {
            if (kills->first.ok()) kills->first = std::move(status);
            if (--kills->left == 0) kills->done(kills->first);
          });
    }
  });
}

Result<ObjectStatePtr> Runtime::put_encoded(Encoder& encoder, Deadline deadline) {
  if (Status status = require_started(); !status.ok()) return status;
  auto value = impl_->process->store(encoder, deadline);
  if (!value.ok()) return value.status();
  return ObjectState::ready(impl_->process->object_context(), *std::move(value));
}

ObjectStatePtr Runtime::submit_task(const MethodKey& key, const TaskOptions& options,
                                    Encoder& encoder) {
  if (Status status = require_started(); !status.ok())
    return ObjectState::failed(nullptr, std::move(status));
  const std::shared_ptr<Process>& process = impl_->process;
  const MethodEntry* function = impl_->functions ? impl_->functions->find(key) : nullptr;
  if (!function) {
    return ObjectState::failed(
        process->object_context(),
        invalid_argument("a function is run as a task that is not registered: call "
                         "register_function(\"name\", &function) in main"));
  }
  if (Status status = check_amounts(options.cpus, options.gpus, options.resources); !status.ok()) {
    return ObjectState::failed(process->object_context(),
                               status.with_context("task " + function->name));
  }
  Result<ObjectValue> arguments =
      process->store(encoder, room_deadline(deadline_after(options.timeout)));
  if (!arguments.ok())
    return ObjectState::failed(
        process->object_context(),
        arguments.status().with_context("arguments of task " + function->name));
  std::shared_ptr<TaskPool> pool;
  {
    std::lock_guard lock(impl_->mutex);
    if (!impl_->tasks) {
      TaskPoolOptions pool_options;
      pool_options.lineage_bytes_max = impl_->options.lineage_bytes_max;
      impl_->tasks = std::make_shared<TaskPool>(
          process->callers(), [process = process.get()] { return process->current_actor(); },
          task_workers(process), pool_options);
      process->hear_of_drains([weak = std::weak_ptr<TaskPool>(impl_->tasks)](NodeId node) {
        if (auto tasks = weak.lock()) tasks->on_node_drains(node);
      });
    }
    pool = impl_->tasks;
  }
  return pool->submit(function, *std::move(arguments), options);
}

Status Runtime::get(const ObjectRef<void>& ref, Until until) { return get_value(ref, until.at()); }

std::size_t Runtime::wait_for(const std::vector<ObjectStatePtr>& objects, std::size_t count,
                              Deadline deadline) {
  if (impl_->process) impl_->process->wait(objects, count, deadline);
  std::size_t settled = 0;
  for (const auto& object : objects) settled += object->is_settled() ? 1 : 0;
  return settled;
}

Status Runtime::cancel_call(const ObjectStatePtr& result, CancelMode mode) {
  if (!result) return invalid_argument("cancel of an ObjectRef that refers to nothing");
  if (impl_->is_forked()) return forked_status();
  if (auto producer = result->producer()) return producer->cancel(producer, mode);
  if (result->is_settled()) return {};
  return invalid_argument(
      "only the result of a call or of a task can be cancelled: this object waits for others");
}

ObjectApi Runtime::objects() const { return ObjectApi(*impl_); }

PublishedApi Runtime::published() const { return PublishedApi(*impl_); }

PlacementGroupApi Runtime::groups() const { return PlacementGroupApi(*impl_); }

KeyValueApi Runtime::kv() const { return KeyValueApi(*impl_); }

ClusterApi Runtime::cluster() const { return ClusterApi(*impl_); }

}  // namespace runtime
