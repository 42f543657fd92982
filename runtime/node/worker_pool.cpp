#include "runtime/node/worker_pool.h"

#include <algorithm>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/node/hosted_actors.h"
#include "runtime/node/worker_process.h"
#include "runtime/process/gpus.h"

namespace runtime {

namespace {

/// Threads an actor may compute with: what it asks for, else one per whole CPU that it reserves.
std::uint32_t thread_count(const ActorSpec& spec) {
  if (spec.threads > 0) return spec.threads;
  auto cpus = spec.resources.find("CPU");
  return cpus == spec.resources.end() ? 1 : std::max(1u, static_cast<std::uint32_t>(cpus->second));
}

}  // namespace

struct WorkerPool::Worker {
  explicit Worker(EventLoop& loop) : timer(loop.context()) {}

  const std::shared_ptr<Channel>& channel() const { return process->channel(); }
  bool is_idle() const { return spec.class_name.empty(); }
  bool is_ending() const { return process->is_ending(); }

  std::unique_ptr<WorkerProcess> process;
  std::uint32_t threads = 1;
  bool own_environment = false;
  // Of the actor; class_name is empty for a warm worker.
  ActorSpec spec;
  std::uint64_t incarnation = 0;
  Deadline start_deadline = Deadline::max();
  ControlAnswerer start_answer;               // until built
  std::vector<ActorStarts::StartPtr> starts;  // that wait for it to connect
  bool serving = false;
  std::unique_ptr<HostedActors> hosted;   // of a worker for shared actors; spec has no id then
  Deadline drained_by = Deadline::min();  // it was asked to end in order, until then
  Timer timer;                            // of the start's deadline
};

WorkerPool::WorkerPool(EventLoop& loop, WorkerPoolOptions options, WorkerPoolCallbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      starts_(loop, options_.starts,
              {callbacks_.find_program, callbacks_.find_folder,
               [this](const ActorStarts::StartPtr& start, const LocalProgram& program) {
                 return begin(start, program);
               }}) {}

WorkerPool::~WorkerPool() = default;

Result<WorkerPool::WorkerPtr> WorkerPool::spawn(JobId job, const DriverInfo& driver,
                                                const LocalProgram& program, const Environment& env,
                                                std::uint32_t threads) {
  if (ending_) return unavailable("node " + options_.node.short_hex() + " is stopping");
  if (workers_.size() >= options_.workers_max) {
    return resource_exhausted("node " + options_.node.short_hex() + " runs " +
                              std::to_string(workers_.size()) + " workers already");
  }
  WorkerProcessSpec spec;
  spec.identity = {WorkerId::random(),   options_.node,        options_.cluster, job,
                   options_.session_dir, options_.node_address};
  spec.program = program.path.string();
  spec.program_in_use = program.in_use;
  if (!driver.argv.empty()) spec.name = driver.argv[0];
  spec.working_dir = driver.working_dir;
  spec.env = env;
  spec.threads = threads;
  spec.logs = options_.logs;
  // The process goes before the pool does, and takes its callbacks with it.
  const WorkerId id = spec.identity.worker;
  WorkerProcess::Callbacks callbacks{
      callbacks_.on_log, [this, id](DeathCause cause) { on_exit(id, std::move(cause)); }};
  auto process = WorkerProcess::start(loop_, std::move(spec), std::move(callbacks));
  if (!process.ok()) return process.status();
  auto worker = std::make_shared<Worker>(loop_);
  worker->process = std::move(*process);
  worker->threads = threads;
  worker->own_environment = !env.empty();
  workers_[id] = worker;
  ++stats_.starts;
  return worker;
}

WorkerPool::WorkerPtr WorkerPool::take_warm(JobId job, const control::StartActor& start,
                                            std::uint32_t threads) {
  if (!start.spec.env.empty()) return nullptr;
  WorkerPtr best;
  for (const auto& [id, worker] : workers_) {
    bool fits = worker->process->job() == job && worker->is_idle() && !worker->is_ending() &&
                worker->threads == threads && !worker->own_environment;
    if (fits && (!best || (worker->channel() && !best->channel()))) best = worker;
  }
  return best;
}

bool WorkerPool::join_start(const control::StartActor& wanted, ControlAnswerer& answer) {
  if (starts_.join(wanted, answer)) return true;
  for (const auto& [id, worker] : workers_) {
    if (worker->spec.actor != wanted.spec.actor || worker->incarnation != wanted.incarnation ||
        worker->spec.actor.is_none())
      continue;
    if (worker->serving)
      answer(ControlAnswer{served_address(*worker)});
    else
      worker->start_answer = std::move(answer);
    return true;
  }
  return false;
}

std::vector<control::ActorInstance> WorkerPool::serving() const {
  std::vector<control::ActorInstance> actors;
  for (const auto& [id, worker] : workers_) {
    if (worker->hosted)
      worker->hosted->list(actors);
    else if (worker->serving)
      actors.push_back({worker->spec.actor, worker->incarnation});
  }
  return actors;
}

void WorkerPool::start_actor(JobId job, control::StartActor request, Deadline deadline,
                             ControlAnswerer answer) {
  if (join_start(request, answer)) return;
  // What was reserved for it is what it sees, whatever its creator says.
  if (!request.gpus.empty()) {
    for (auto& [name, value] : gpu_environment(options_.gpu_names, request.gpus))
      request.spec.env[name] = value;
  }
  starts_.add(job, std::move(request), deadline, std::move(answer));
}

Status WorkerPool::begin(const ActorStarts::StartPtr& begun, const LocalProgram& program) {
  ActorStarts::Start& start = *begun;
  ActorSpec& spec = start.request.spec;
  std::uint32_t threads = thread_count(spec);
  if (spec.shared) return begin_shared(begun, program, threads);
  WorkerPtr worker = take_warm(start.job, start.request, threads);
  if (!worker) {
    auto spawned = spawn(start.job, start.request.driver, program, spec.env, threads);
    if (!spawned.ok()) return spawned.status();
    worker = *spawned;
  }
  worker->process->set_log_name(spec.log_prefix.empty() ? spec.class_name : spec.log_prefix);
  worker->spec = std::move(spec);
  worker->incarnation = start.request.incarnation;
  worker->start_deadline = start.deadline;
  worker->start_answer = std::move(start.answer);
  if (!worker->channel()) worker->starts = {begun};
  arm_timer(worker);
  if (worker->channel()) assign(worker);
  return {};
}

Status WorkerPool::begin_shared(const ActorStarts::StartPtr& begun, const LocalProgram& program,
                                std::uint32_t threads) {
  ActorStarts::Start& start = *begun;
  ActorSpec& spec = start.request.spec;
  const SharedKey key(start.job, spec.outlives_job, threads, spec.env);
  auto known = shared_.find(key);
  WorkerPtr worker = known == shared_.end() ? nullptr : known->second;
  if (!worker || worker->is_ending() || (worker->channel() && worker->channel()->closed())) {
    WorkerPtr made = take_warm(start.job, start.request, threads);
    if (!made) {
      auto spawned = spawn(start.job, start.request.driver, program, spec.env, threads);
      if (!spawned.ok()) return spawned.status();
      made = *spawned;
    }
    made->spec.class_name = "shared";
    made->process->set_log_name("shared");
    made->spec.outlives_job = spec.outlives_job;
    HostedActors::Callbacks callbacks;
    callbacks.exited = [this, job = start.job](control::ActorsExited exited) {
      callbacks_.on_actors_exited(job, std::move(exited));
    };
    callbacks.emptied = [this, weak = std::weak_ptr<Worker>(made)] {
      if (WorkerPtr idle = weak.lock()) arm_idle_timer(idle);
    };
    made->hosted = std::make_unique<HostedActors>(loop_, start.job, made->process->address(),
                                                  std::move(callbacks));
    if (made->channel()) made->hosted->on_connected(made->channel());
    shared_[key] = worker = std::move(made);
  }
  if (!worker->channel()) worker->starts.push_back(begun);
  worker->hosted->start(std::move(spec), start.request.incarnation, start.deadline,
                        std::move(start.answer));
  return {};
}

void WorkerPool::begin_again(Worker& worker) {
  worker.timer.cancel();
  std::vector<HostedActors::Unsent> unsent;
  if (worker.hosted)
    unsent = worker.hosted->take_unsent();
  else if (worker.start_answer)
    unsent.push_back({std::move(worker.spec), worker.incarnation, std::move(worker.start_answer)});
  std::string why = worker.process->last_error();
  if (constexpr std::string_view kWord = "error: "; why.starts_with(kWord))
    why.erase(0, kWord.size());
  if (why.empty()) why = "its process found no room, and said nothing more";
  for (HostedActors::Unsent& one : unsent) {
    const auto start = std::find_if(
        worker.starts.begin(), worker.starts.end(),
        [&](const auto& begun) { return begun->is_of(one.spec.actor, one.incarnation); });
    CHECK(start != worker.starts.end());
    starts_.add_again(*start, std::move(one.spec), std::move(one.answer),
                      resource_exhausted("starting a worker: " + why));
  }
}

void WorkerPool::warm(JobId job, const DriverInfo& driver) {
  std::uint32_t count = std::min(driver.warm_workers, options_.warm_workers_max);
  if (count == 0 || draining_) return;
  callbacks_.find_program(
      driver, "", deadline_after(std::chrono::seconds(10)),
      lifetime_.guard([this, job, driver, count](const Result<LocalProgram>& program) {
        if (!program.ok() || draining_) return;
        for (std::uint32_t i = 0; i < count; ++i) {
          auto worker = spawn(job, driver, *program, {}, 1);
          if (!worker.ok()) return LOG(warn, "warm worker: {}", worker.status().message());
        }
      }));
}

void WorkerPool::arm_idle_timer(const WorkerPtr& worker) {
  worker->timer.expires_after(options_.shared_idle);
  worker->timer.async_wait(
      lifetime_.guard([this, weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr idle = weak.lock();
        if (!ec && idle && idle->hosted->size() == 0)
          idle->process->end("it had no shared actor left", options_.end_grace);
      }));
}

void WorkerPool::arm_timer(const WorkerPtr& worker) {
  worker->timer.expires_at(worker->start_deadline);
  worker->timer.async_wait(
      lifetime_.guard([this, weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr late = weak.lock();
        if (ec || !late || !late->start_answer) return;
        std::string doing =
            late->channel() ? "its constructor has not returned" : "its process has not connected";
        answer_start(*late, deadline_exceeded("actor " + late->spec.class_name +
                                              " was not ready at the deadline: " + doing));
        late->process->end("it was not ready at its deadline", std::chrono::milliseconds(0));
      }));
}

std::optional<JobId> WorkerPool::on_connected(const std::shared_ptr<Channel>& channel) {
  auto found = workers_.find(channel->peer().worker);
  if (found == workers_.end() || found->second->channel() ||
      found->second->process->pid() != channel->peer().pid)
    return std::nullopt;
  WorkerPtr worker = found->second;
  worker->process->connect(channel);
  worker->starts.clear();
  const auto took = static_cast<std::uint64_t>(worker->process->age().count());
  stats_.connected_sum_ns += took;
  ++stats_.connected[activity::bucket_of(took)];
  if (worker->hosted)
    worker->hosted->on_connected(channel);
  else if (!worker->is_idle())
    assign(worker);
  return worker->process->job();
}

void WorkerPool::on_disconnected(WorkerId id, const Status& why) {
  auto found = workers_.find(id);
  if (found == workers_.end() || found->second->is_ending()) return;
  found->second->process->disconnect(why.message(), options_.end_grace);
}

void WorkerPool::assign(const WorkerPtr& worker) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(worker->start_deadline - steady_now());
  ControlRequest request{worker->process->job(), std::max(left, std::chrono::milliseconds(1)),
                         control::BuildActor{worker->spec, worker->incarnation}};
  send_request(*worker->channel(), request,
               lifetime_.guard([this, worker](const Result<ControlAnswer>& built) {
                 on_built(worker, built);
               }));
}

void WorkerPool::on_built(const WorkerPtr& worker, const Result<ControlAnswer>& built) {
  if (!worker->start_answer) return;  // the deadline was faster
  if (!built.ok()) {
    // When the process died while building, its end says more than the broken connection does;
    // on_exit() answers.
    if (built.status().code() == ErrorCode::kUnavailable && worker->channel()->closed()) return;
    answer_start(*worker, built.status());
    worker->process->end("its constructor failed", options_.end_grace);
    return;
  }
  worker->serving = true;
  answer_start(*worker, ControlAnswer{served_address(*worker)});
}

ActorAddress WorkerPool::served_address(const Worker& worker) const {
  ActorAddress address = worker.process->address();
  address.actor = worker.spec.actor;
  address.class_name = worker.spec.class_name;
  address.incarnation = worker.incarnation;
  return address;
}

void WorkerPool::answer_start(Worker& worker, Result<ControlAnswer> answer) {
  worker.timer.cancel();
  if (!worker.start_answer) return;
  ControlAnswerer start_answer = std::move(worker.start_answer);
  start_answer(std::move(answer));
}

void WorkerPool::on_exit(WorkerId id, DeathCause cause) {
  auto found = workers_.find(id);
  if (found == workers_.end()) return;
  WorkerPtr worker = found->second;
  workers_.erase(found);
  const bool was_ending = worker->is_ending();
  if (was_ending || cause.exit_code == 0)
    ++stats_.ended;
  else
    ++(cause.signal != 0 ? stats_.crashed : stats_.failed);
  cause = worker->process->finish(std::move(cause));
  LOG(info, "worker {} (pid {}, {}) {}", id.short_hex(), cause.pid,
      worker->is_idle() ? "idle" : worker->spec.class_name, cause.text);
  std::erase_if(shared_, [&](const auto& entry) { return entry.second == worker; });
  if (!worker->channel() && !was_ending && cause.exit_code == kNoRoomExitCode) {
    begin_again(*worker);
  } else if (worker->hosted) {
    worker->hosted->on_exit(cause);
  } else if (worker->start_answer) {
    std::string text = "actor " + worker->spec.class_name + " (pid " + std::to_string(cause.pid) +
                       " on node " + options_.node.short_hex() +
                       ") died while it was built: " + cause.text;
    if (!cause.output_tail.empty()) text += "\n" + cause.output_tail;
    answer_start(*worker, actor_died(std::move(text)));
  } else if (worker->serving) {
    callbacks_.on_actor_exited(
        worker->process->job(),
        control::ActorExited{worker->spec.actor, worker->incarnation, std::move(cause)});
  }
  if (workers_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

Status WorkerPool::attach(const Inbound& inbound, FileDescriptor& socket) {
  auto found = workers_.find(inbound.preamble.target);
  if (found == workers_.end() || !found->second->channel()) {
    return not_found("node " + options_.node.short_hex() + " has no worker " +
                     inbound.preamble.target.short_hex() + " (any more)");
  }
  return found->second->channel()->send(encode_attach(inbound, std::move(socket)));
}

void WorkerPool::stop_actor(const control::StopActor& stop) {
  starts_.cancel(stop.actor, stop.incarnation, stop.reason);
  for (const auto& [id, worker] : workers_) {
    if (worker->hosted && worker->hosted->stop(stop)) return;
    if (worker->spec.actor != stop.actor || worker->incarnation != stop.incarnation) continue;
    if (stop.drain && worker->serving && worker->channel())
      drain(worker, stop.grace, stop.reason);
    else
      worker->process->end(stop.reason, stop.grace);
  }
}

std::vector<GuardedWorker> WorkerPool::guarded() const {
  std::vector<GuardedWorker> found;
  for (const auto& [id, worker] : workers_) {
    if (worker->is_ending() || (worker->is_idle() && !worker->hosted)) continue;
    const std::string name =
        worker->hosted ? "a process of shared actors"
                       : "actor " + worker->spec.class_name + " " + worker->spec.actor.short_hex();
    found.push_back({id, worker->process->pid(), name});
  }
  return found;
}

void WorkerPool::stop_worker(const WorkerId& id, const std::string& reason) {
  if (auto found = workers_.find(id); found != workers_.end())
    found->second->process->end(reason, std::chrono::milliseconds(0));
}

void WorkerPool::drain(const WorkerPtr& worker, std::chrono::milliseconds grace,
                       const std::string& reason) {
  const Deadline by = deadline_after(grace);
  if (worker->is_ending() && by >= worker->drained_by) return;
  if (!worker->is_ending()) {
    worker->process->expect_end(reason);
    ControlRequest request{worker->process->job(), grace,
                           control::DrainActor{worker->spec.actor, worker->incarnation}};
    send_request(*worker->channel(), request,
                 [](Result<ControlAnswer>) {});  // its end is the answer
  }
  worker->drained_by = by;
  worker->timer.expires_at(by);
  worker->timer.async_wait(
      lifetime_.guard([weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr late = weak.lock();
        if (!ec && late) late->process->kill_late();
      }));
}

void WorkerPool::list(WorkerList& to) const {
  for (const auto& [id, worker] : workers_) {
    WorkerInfo info;
    info.worker = id;
    info.node = options_.node;
    info.job = worker->process->job();
    info.pid = worker->process->pid();
    info.actor = worker->spec.actor;
    info.class_name = worker->hosted ? "" : worker->spec.class_name;
    info.actors = worker->hosted      ? static_cast<std::uint32_t>(worker->hosted->size())
                  : worker->is_idle() ? 0
                                      : 1;
    info.state = worker->is_ending() ? "ending"
                 : worker->hosted    ? "shared"
                 : worker->is_idle() ? "idle"
                 : worker->serving   ? "actor"
                                     : "starting";
    info.age = std::chrono::duration_cast<std::chrono::milliseconds>(worker->process->age());
    to.push_back(std::move(info));
  }
}

const WorkerPool::Worker* WorkerPool::find(ActorId actor) const {
  for (const auto& [id, worker] : workers_) {
    const bool runs = worker->hosted ? worker->hosted->has(actor) : worker->spec.actor == actor;
    if (runs && !actor.is_none()) return worker.get();
  }
  return nullptr;
}

pid_t WorkerPool::process_of(ActorId actor, std::string* class_name) const {
  const Worker* worker = find(actor);
  if (!worker) return 0;
  *class_name = worker->spec.class_name;
  return worker->process->pid();
}

void WorkerPool::pass_on(const ControlRequest& awaited) {
  const Worker* worker = find(std::get<control::ConstructorAwaited>(awaited.body).actor);
  if (worker && worker->process->is_connected())
    send_request(*worker->channel(), awaited, [](const Result<ControlAnswer>&) {});
}

std::size_t WorkerPool::starting() const {
  std::size_t count = starts_.size();
  for (const auto& [id, worker] : workers_)
    count += !worker->hosted && !worker->is_idle() && !worker->serving;
  return count;
}

void WorkerPool::end_job(JobId job) {
  starts_.cancel_job(job);
  for (const auto& [id, worker] : workers_) {
    if (worker->process->job() == job && !worker->spec.outlives_job)
      worker->process->end("its job ended", options_.end_grace);
  }
}

void WorkerPool::begin_drain() {
  if (std::exchange(draining_, true)) return;
  for (const auto& [id, worker] : workers_) {
    if (worker->is_idle() && !worker->is_ending())
      worker->process->end("its node is being drained", options_.end_grace);
  }
}

void WorkerPool::end_all(const std::string& reason, std::function<void()> done) {
  ending_ = true;
  starts_.stop();
  if (workers_.empty()) return done();
  on_empty_ = std::move(done);
  for (const auto& [id, worker] : workers_) {
    // An actor that will be started elsewhere saves its state at its end.
    if (worker->serving && worker->channel() && worker->spec.max_restarts != 0)
      drain(worker, options_.end_grace, reason);
    else
      worker->process->end(reason, options_.end_grace);
  }
}

}  // namespace runtime
