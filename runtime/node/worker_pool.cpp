#include "runtime/node/worker_pool.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/node/child_process.h"
#include "runtime/node/gpus.h"
#include "runtime/node/hosted_actors.h"
#include "runtime/node/log_file.h"
#include "runtime/node/process_output.h"
#include "runtime/node/worker_environment.h"

namespace runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kCrashLinesMax = 60;  // of stderr, in the error of a crashed actor
constexpr std::size_t kExitLinesMax = 10;   // of one that exited with an error

bool is_crash(int signal) {
  for (int crash : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    if (signal == crash) return true;
  }
  return false;
}

/// Threads an actor may compute with: what it asks for, else one per whole CPU that it reserves.
std::uint32_t thread_count(const ActorSpec& spec) {
  if (spec.threads > 0) return spec.threads;
  auto cpus = spec.resources.find("CPU");
  return cpus == spec.resources.end() ? 1 : std::max(1u, static_cast<std::uint32_t>(cpus->second));
}

}  // namespace

struct WorkerPool::Worker {
  Worker(EventLoop& loop, const fs::path& log_file, LogKeeper* logs)
      : log(log_file, LogFile::kBytesMax, logs), timer(loop.context()) {}

  WorkerId id;
  JobId job;
  std::uint32_t threads = 1;
  bool own_environment = false;
  std::shared_ptr<const FileLock> program_in_use;  // keeps it in the node's cache
  std::unique_ptr<ChildProcess> process;
  Deadline started = steady_now();
  std::shared_ptr<Channel> channel;  // once connected
  // Of the actor; class_name is empty for a warm worker.
  ActorSpec spec;
  std::uint64_t incarnation = 0;
  Deadline start_deadline = Deadline::max();
  ControlAnswerer start_answer;                // until built
  std::vector<std::shared_ptr<Start>> starts;  // that wait for it to connect
  std::string lost;                            // why its connection ended
  bool serving = false;
  std::unique_ptr<HostedActors> hosted;   // of a worker for shared actors; spec has no id then
  std::string end_reason;                 // set when the pool ends it
  Deadline drained_by = Deadline::min();  // it was asked to end in order, until then
  LogFile log;
  LineSplitter lines[2];
  Tail error_tail;
  Timer timer;  // of the start's deadline
};

/// A start whose program is being looked for, or fetched, or whose process could not be started
/// yet.
struct WorkerPool::Start {
  Start(EventLoop& loop, JobId of, control::StartActor wanted, Deadline by, Deadline patience_ends,
        ControlAnswerer answerer)
      : job(of),
        request(std::move(wanted)),
        actor(request.spec.actor),
        deadline(by),
        patient_until(patience_ends),
        answer(std::move(answerer)),
        timer(loop.context()) {}

  JobId job;
  control::StartActor request;
  ActorId actor;
  Deadline deadline;
  Deadline patient_until;
  ControlAnswerer answer;  // empty once cancelled
  std::uint32_t failures = 0;
  std::string told;  // the last failure that the log has
  std::chrono::milliseconds pause{0};
  Timer timer;
};

WorkerPool::WorkerPool(EventLoop& loop, ProgramFiles& programs, WorkerPoolOptions options,
                       WorkerPoolCallbacks callbacks)
    : loop_(loop),
      programs_(programs),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)) {}

WorkerPool::~WorkerPool() = default;

Result<WorkerPool::WorkerPtr> WorkerPool::spawn(JobId job, const DriverInfo& driver,
                                                const LocalProgram& program, const Environment& env,
                                                std::uint32_t threads) {
  if (ending_) return unavailable("node " + options_.node.short_hex() + " is stopping");
  if (workers_.size() >= options_.workers_max) {
    return resource_exhausted("node " + options_.node.short_hex() + " runs " +
                              std::to_string(workers_.size()) + " workers already");
  }
  WorkerEnvironment identity{WorkerId::random(),   options_.node,        options_.cluster, job,
                             options_.session_dir, options_.node_address};
  auto worker = std::make_shared<Worker>(
      loop_, fs::path(options_.session_dir) / "logs" / ("worker-" + identity.worker.hex() + ".log"),
      options_.logs);
  worker->id = identity.worker;
  worker->job = job;
  worker->threads = threads;
  worker->own_environment = !env.empty();
  worker->program_in_use = program.in_use;

  ProcessSpec spec;
  spec.program = program.path.string();
  spec.argv = {driver.argv.empty() ? spec.program : driver.argv[0]};
  spec.env = {"OMP_NUM_THREADS=" + std::to_string(threads),
              "MKL_NUM_THREADS=" + std::to_string(threads)};
  for (const auto& [name, value] : env) spec.env.push_back(name + "=" + value);
  for (std::string& line : worker_variables(identity)) spec.env.push_back(std::move(line));
  std::error_code error;
  spec.working_dir =
      fs::is_directory(driver.working_dir, error) ? driver.working_dir : options_.session_dir;

  // The process goes before the pool does, and takes its handlers with it.
  ProcessHandlers handlers;
  handlers.on_output = [this, raw = worker.get()](bool is_stderr, std::string_view bytes) {
    on_output(*raw, is_stderr, bytes);
  };
  handlers.on_exit = [this, id = worker->id](DeathCause cause) { on_exit(id, std::move(cause)); };
  auto process = ChildProcess::start(loop_, spec, std::move(handlers));
  if (!process.ok()) return process.status().with_context("starting a worker");
  worker->process = std::move(*process);
  workers_[worker->id] = worker;
  ++stats_.starts;
  LOG(debug, "worker {} started, pid {}", worker->id.short_hex(), worker->process->pid());
  return worker;
}

WorkerPool::WorkerPtr WorkerPool::take_warm(JobId job, const control::StartActor& start,
                                            std::uint32_t threads) {
  if (!start.spec.env.empty()) return nullptr;
  WorkerPtr best;
  for (const auto& [id, worker] : workers_) {
    bool fits = worker->job == job && worker->spec.class_name.empty() &&
                worker->end_reason.empty() && worker->threads == threads &&
                !worker->own_environment;
    if (fits && (!best || (worker->channel && !best->channel))) best = worker;
  }
  return best;
}

bool WorkerPool::join_start(const control::StartActor& wanted, ControlAnswerer& answer) {
  for (const auto& start : starts_) {
    if (start->request.spec.actor != wanted.spec.actor ||
        start->request.incarnation != wanted.incarnation)
      continue;
    start->answer = std::move(answer);
    return true;
  }
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
  // The last attempt is answered in time for the head.
  const Deadline patient_until =
      std::min(deadline - (deadline - steady_now()) / 20, deadline_after(options_.start_patience));
  auto start = std::make_shared<Start>(loop_, job, std::move(request), deadline, patient_until,
                                       std::move(answer));
  starts_.push_back(start);
  try_start(start);
}

void WorkerPool::try_start(const std::shared_ptr<Start>& start) {
  const control::StartActor& wanted = start->request;
  programs_.find(wanted.driver, wanted.driver_node, start->deadline,
                 lifetime_.guard([this, start](Result<LocalProgram> program) {
                   auto go = lifetime_.guard([this, start](const Result<LocalProgram>& ready) {
                     const Status begun = start->answer ? begin(start, ready) : Status();
                     if (!begun.ok()) return start_failed(start, begun);
                     starts_.remove(start);
                   });
                   if (!program.ok() || !callbacks_.find_folder || !start->answer)
                     return go(program);
                   callbacks_.find_folder(start->job, start->request, start->deadline,
                                          [start, program, go](Result<std::string> folder) mutable {
                                            if (!folder.ok()) return go(folder.status());
                                            start->request.driver.working_dir = *std::move(folder);
                                            go(program);
                                          });
                 }));
}

void WorkerPool::start_failed(const std::shared_ptr<Start>& start, const Status& why) {
  ++start->failures;
  const bool passes = why.code() == ErrorCode::kResourceExhausted;
  start->pause = std::clamp(2 * start->pause, options_.start_pause_first, options_.start_pause_max);
  if (!passes || ending_ || steady_now() + start->pause > start->patient_until) {
    starts_.remove(start);
    return std::exchange(start->answer, nullptr)(
        start->failures == 1 ? why
                             : Status(why.code(), why.message() + " (tried " +
                                                      std::to_string(start->failures) + " times)"));
  }
  if (std::exchange(start->told, why.message()) != why.message())
    LOG(warn, "actor {} {}: {}; it is tried again", start->request.spec.class_name,
        start->request.spec.actor.short_hex(), why.message());
  start->timer.expires_after(start->pause);
  start->timer.async_wait(lifetime_.guard([this, start](boost::system::error_code ec) {
    if (ec) return;
    if (start->answer) return try_start(start);
    starts_.remove(start);  // it was cancelled meanwhile
  }));
}

Status WorkerPool::begin(const std::shared_ptr<Start>& begun, const Result<LocalProgram>& program) {
  if (!program.ok()) return program.status();
  Start& start = *begun;
  ActorSpec& spec = start.request.spec;
  std::uint32_t threads = thread_count(spec);
  if (spec.shared) return begin_shared(begun, *program, threads);
  WorkerPtr worker = take_warm(start.job, start.request, threads);
  if (!worker) {
    auto spawned = spawn(start.job, start.request.driver, *program, spec.env, threads);
    if (!spawned.ok()) return spawned.status();
    worker = *spawned;
  }
  worker->spec = std::move(spec);
  worker->incarnation = start.request.incarnation;
  worker->start_deadline = start.deadline;
  worker->start_answer = std::move(start.answer);
  if (!worker->channel) worker->starts = {begun};
  arm_timer(worker);
  if (worker->channel) assign(worker);
  return {};
}

Status WorkerPool::begin_shared(const std::shared_ptr<Start>& begun, const LocalProgram& program,
                                std::uint32_t threads) {
  Start& start = *begun;
  ActorSpec& spec = start.request.spec;
  const SharedKey key(start.job, spec.outlives_job, threads, spec.env);
  auto known = shared_.find(key);
  WorkerPtr worker = known == shared_.end() ? nullptr : known->second;
  if (!worker || !worker->end_reason.empty() || (worker->channel && worker->channel->closed())) {
    WorkerPtr made = take_warm(start.job, start.request, threads);
    if (!made) {
      auto spawned = spawn(start.job, start.request.driver, program, spec.env, threads);
      if (!spawned.ok()) return spawned.status();
      made = *spawned;
    }
    made->spec.class_name = "shared";
    made->spec.outlives_job = spec.outlives_job;
    HostedActors::Callbacks callbacks;
    callbacks.exited = [this, job = start.job](control::ActorsExited exited) {
      callbacks_.on_actors_exited(job, std::move(exited));
    };
    callbacks.emptied = [this, weak = std::weak_ptr<Worker>(made)] {
      if (WorkerPtr idle = weak.lock()) arm_idle_timer(idle);
    };
    made->hosted =
        std::make_unique<HostedActors>(loop_, start.job, address_of(*made), std::move(callbacks));
    if (made->channel) made->hosted->on_connected(made->channel);
    shared_[key] = worker = std::move(made);
  }
  if (!worker->channel) worker->starts.push_back(begun);
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
  std::string why = worker.error_tail.last_lines(1);
  if (constexpr std::string_view kWord = "error: "; why.starts_with(kWord))
    why.erase(0, kWord.size());
  for (HostedActors::Unsent& one : unsent) {
    const auto start =
        std::find_if(worker.starts.begin(), worker.starts.end(), [&](const auto& begun) {
          return begun->actor == one.spec.actor && begun->request.incarnation == one.incarnation;
        });
    CHECK(start != worker.starts.end());
    (*start)->request.spec = std::move(one.spec);
    (*start)->answer = std::move(one.answer);
    starts_.push_back(*start);
    start_failed(*start, resource_exhausted("starting a worker: " + why));
  }
}

void WorkerPool::warm(JobId job, const DriverInfo& driver) {
  std::uint32_t count = std::min(driver.warm_workers, options_.warm_workers_max);
  if (count == 0 || draining_) return;
  programs_.find(driver, "", deadline_after(std::chrono::seconds(10)),
                 lifetime_.guard([this, job, driver, count](Result<LocalProgram> program) {
                   if (!program.ok() || draining_) return;
                   for (std::uint32_t i = 0; i < count; ++i) {
                     auto worker = spawn(job, driver, *program, {}, 1);
                     if (!worker.ok())
                       return LOG(warn, "warm worker: {}", worker.status().message());
                   }
                 }));
}

void WorkerPool::arm_idle_timer(const WorkerPtr& worker) {
  worker->timer.expires_after(options_.shared_idle);
  worker->timer.async_wait(
      lifetime_.guard([this, weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr idle = weak.lock();
        if (!ec && idle && idle->hosted->size() == 0)
          end_worker(*idle, "it had no shared actor left", options_.end_grace);
      }));
}

void WorkerPool::arm_timer(const WorkerPtr& worker) {
  worker->timer.expires_at(worker->start_deadline);
  worker->timer.async_wait(
      lifetime_.guard([this, weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr late = weak.lock();
        if (ec || !late || !late->start_answer) return;
        std::string doing =
            late->channel ? "its constructor has not returned" : "its process has not connected";
        answer_start(*late, deadline_exceeded("actor " + late->spec.class_name +
                                              " was not ready at the deadline: " + doing));
        end_worker(*late, "it was not ready at its deadline", std::chrono::milliseconds(0));
      }));
}

std::optional<JobId> WorkerPool::on_connected(const std::shared_ptr<Channel>& channel) {
  auto found = workers_.find(channel->peer().worker);
  if (found == workers_.end() || found->second->channel ||
      found->second->process->pid() != channel->peer().pid)
    return std::nullopt;
  WorkerPtr worker = found->second;
  worker->channel = channel;
  worker->starts.clear();
  const auto took = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(steady_now() - worker->started).count());
  stats_.connected_sum_ns += took;
  ++stats_.connected[activity::bucket_of(took)];
  if (worker->hosted)
    worker->hosted->on_connected(channel);
  else if (!worker->spec.class_name.empty())
    assign(worker);
  return worker->job;
}

void WorkerPool::on_disconnected(WorkerId id, const Status& why) {
  auto found = workers_.find(id);
  if (found == workers_.end() || !found->second->end_reason.empty()) return;
  found->second->lost = why.message();
  found->second->process->end(options_.end_grace);
}

void WorkerPool::assign(const WorkerPtr& worker) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(worker->start_deadline - steady_now());
  ControlRequest request{worker->job, std::max(left, std::chrono::milliseconds(1)),
                         control::BuildActor{worker->spec, worker->incarnation}};
  send_request(
      *worker->channel, request,
      lifetime_.guard([this, worker](Result<ControlAnswer> built) { on_built(worker, built); }));
}

void WorkerPool::on_built(const WorkerPtr& worker, const Result<ControlAnswer>& built) {
  if (!worker->start_answer) return;  // the deadline was faster
  if (!built.ok()) {
    // When the process died while building, its end says more than the broken connection does;
    // on_exit() answers.
    if (built.status().code() == ErrorCode::kUnavailable && worker->channel->closed()) return;
    answer_start(*worker, built.status());
    end_worker(*worker, "its constructor failed", options_.end_grace);
    return;
  }
  worker->serving = true;
  answer_start(*worker, ControlAnswer{served_address(*worker)});
}

ActorAddress WorkerPool::served_address(const Worker& worker) const {
  ActorAddress address = address_of(worker);
  address.actor = worker.spec.actor;
  address.class_name = worker.spec.class_name;
  address.incarnation = worker.incarnation;
  return address;
}

ActorAddress WorkerPool::address_of(const Worker& worker) const {
  ActorAddress address;
  address.worker = worker.id;
  address.node = options_.node;
  address.unix_path =
      WorkerEnvironment{worker.id, {}, {}, {}, options_.session_dir, ""}.socket_path();
  address.node_address = options_.node_address;
  address.pid = worker.process->pid();
  return address;
}

void WorkerPool::answer_start(Worker& worker, Result<ControlAnswer> answer) {
  worker.timer.cancel();
  if (!worker.start_answer) return;
  ControlAnswerer start_answer = std::move(worker.start_answer);
  start_answer(std::move(answer));
}

void WorkerPool::on_output(Worker& worker, bool is_stderr, std::string_view bytes) {
  worker.log.append(bytes);
  if (is_stderr) worker.error_tail.append(bytes);
  send_lines(worker, is_stderr, worker.lines[is_stderr].feed(bytes));
}

void WorkerPool::send_lines(Worker& worker, bool is_stderr, std::vector<std::string> lines) {
  if (lines.empty()) return;
  LogLines event;
  event.job = worker.job;
  event.worker = worker.id;
  event.node = options_.node;
  event.class_name =
      worker.spec.log_prefix.empty() ? worker.spec.class_name : worker.spec.log_prefix;
  event.pid = worker.process->pid();
  event.is_stderr = is_stderr;
  event.lines = std::move(lines);
  callbacks_.on_log(std::move(event));
}

void WorkerPool::on_exit(WorkerId id, DeathCause cause) {
  auto found = workers_.find(id);
  if (found == workers_.end()) return;
  WorkerPtr worker = found->second;
  workers_.erase(found);
  if (!worker->end_reason.empty() || cause.exit_code == 0)
    ++stats_.ended;
  else
    ++(cause.signal != 0 ? stats_.crashed : stats_.failed);
  for (bool is_stderr : {false, true})
    send_lines(*worker, is_stderr, worker->lines[is_stderr].finish());
  if (!worker->end_reason.empty()) {
    cause.text = worker->end_reason + " (" + cause.text + ")";
  } else if (is_crash(cause.signal)) {
    cause.output_tail = worker->error_tail.last_lines(kCrashLinesMax);
  } else if (cause.exit_code > 0) {
    cause.output_tail = worker->error_tail.last_lines(kExitLinesMax);
  }
  if (cause.signal == SIGTERM && !worker->lost.empty())
    cause.text += " by its node, which had lost the connection to it: " + worker->lost;
  if (worker->channel) worker->channel->close(unavailable("the worker process " + cause.text));
  std::error_code ignored;
  fs::remove(WorkerEnvironment{id, {}, {}, {}, options_.session_dir, ""}.socket_path(), ignored);
  LOG(info, "worker {} (pid {}, {}) {}", id.short_hex(), cause.pid,
      worker->spec.class_name.empty() ? "idle" : worker->spec.class_name, cause.text);
  std::erase_if(shared_, [&](const auto& entry) { return entry.second == worker; });
  if (!worker->channel && worker->end_reason.empty() && cause.exit_code == kNoRoomExitCode) {
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
        worker->job,
        control::ActorExited{worker->spec.actor, worker->incarnation, std::move(cause)});
  }
  if (workers_.empty() && on_empty_) std::exchange(on_empty_, nullptr)();
}

Status WorkerPool::attach(const Inbound& inbound, FileDescriptor& socket) {
  auto found = workers_.find(inbound.preamble.target);
  if (found == workers_.end() || !found->second->channel) {
    return not_found("node " + options_.node.short_hex() + " has no worker " +
                     inbound.preamble.target.short_hex() + " (any more)");
  }
  return found->second->channel->send(encode_attach(inbound, std::move(socket)));
}

void WorkerPool::end_worker(Worker& worker, const std::string& reason,
                            std::chrono::milliseconds grace) {
  if (worker.end_reason.empty()) worker.end_reason = reason;
  worker.process->end(grace);
}

void WorkerPool::stop_actor(const control::StopActor& stop) {
  for (const auto& start : starts_) {
    const bool wanted =
        start->request.spec.actor == stop.actor && start->request.incarnation == stop.incarnation;
    if (wanted && start->answer) std::exchange(start->answer, nullptr)(cancelled(stop.reason));
  }
  for (const auto& [id, worker] : workers_) {
    if (worker->hosted && worker->hosted->stop(stop)) return;
    if (worker->spec.actor != stop.actor || worker->incarnation != stop.incarnation) continue;
    if (stop.drain && worker->serving && worker->channel)
      drain(worker, stop.grace, stop.reason);
    else
      end_worker(*worker, stop.reason, stop.grace);
  }
}

std::vector<GuardedWorker> WorkerPool::guarded() const {
  std::vector<GuardedWorker> found;
  for (const auto& [id, worker] : workers_) {
    if (!worker->end_reason.empty() || (worker->spec.class_name.empty() && !worker->hosted))
      continue;
    const std::string name =
        worker->hosted ? "a process of shared actors"
                       : "actor " + worker->spec.class_name + " " + worker->spec.actor.short_hex();
    found.push_back({id, worker->process->pid(), name});
  }
  return found;
}

void WorkerPool::stop_worker(const WorkerId& id, const std::string& reason) {
  if (auto found = workers_.find(id); found != workers_.end())
    end_worker(*found->second, reason, std::chrono::milliseconds(0));
}

void WorkerPool::drain(const WorkerPtr& worker, std::chrono::milliseconds grace,
                       const std::string& reason) {
  const Deadline by = deadline_after(grace);
  if (!worker->end_reason.empty() && by >= worker->drained_by) return;
  if (worker->end_reason.empty()) {
    worker->end_reason = reason;
    ControlRequest request{worker->job, grace,
                           control::DrainActor{worker->spec.actor, worker->incarnation}};
    send_request(*worker->channel, request, [](Result<ControlAnswer>) {});  // its end is the answer
  }
  worker->drained_by = by;
  worker->timer.expires_at(by);
  worker->timer.async_wait(
      lifetime_.guard([this, weak = std::weak_ptr<Worker>(worker)](boost::system::error_code ec) {
        WorkerPtr late = weak.lock();
        if (ec || !late) return;
        late->end_reason += "; it had not served its calls in time and was killed";
        late->process->end(std::chrono::milliseconds(0));
      }));
}

void WorkerPool::list(WorkerList& to) const {
  for (const auto& [id, worker] : workers_) {
    WorkerInfo info;
    info.worker = id;
    info.node = options_.node;
    info.job = worker->job;
    info.pid = worker->process->pid();
    info.actor = worker->spec.actor;
    info.class_name = worker->hosted ? "" : worker->spec.class_name;
    info.actors = worker->hosted ? static_cast<std::uint32_t>(worker->hosted->size())
                  : worker->spec.class_name.empty() ? 0
                                                    : 1;
    info.state = !worker->end_reason.empty()       ? "ending"
                 : worker->hosted                  ? "shared"
                 : worker->spec.class_name.empty() ? "idle"
                 : worker->serving                 ? "actor"
                                                   : "starting";
    info.age =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady_now() - worker->started);
    to.push_back(std::move(info));
  }
}

pid_t WorkerPool::process_of(ActorId actor, std::string* class_name) const {
  for (const auto& [id, worker] : workers_) {
    const bool runs = worker->hosted ? worker->hosted->has(actor) : worker->spec.actor == actor;
    if (!runs || actor.is_none()) continue;
    *class_name = worker->spec.class_name;
    return worker->process->pid();
  }
  return 0;
}

std::size_t WorkerPool::starting() const {
  std::size_t count = starts_.size();
  for (const auto& [id, worker] : workers_)
    count += !worker->hosted && !worker->spec.class_name.empty() && !worker->serving;
  return count;
}

void WorkerPool::end_job(JobId job) {
  for (const auto& start : starts_) {
    if (start->answer && start->job == job && !start->request.spec.outlives_job)
      std::exchange(start->answer, nullptr)(cancelled("its job ended"));
  }
  for (const auto& [id, worker] : workers_) {
    if (worker->job == job && !worker->spec.outlives_job)
      end_worker(*worker, "its job ended", options_.end_grace);
  }
}

void WorkerPool::begin_drain() {
  if (std::exchange(draining_, true)) return;
  for (const auto& [id, worker] : workers_) {
    if (worker->spec.class_name.empty() && worker->end_reason.empty())
      end_worker(*worker, "its node is being drained", options_.end_grace);
  }
}

void WorkerPool::end_all(const std::string& reason, std::function<void()> done) {
  ending_ = true;
  if (workers_.empty()) return done();
  on_empty_ = std::move(done);
  for (const auto& [id, worker] : workers_) {
    // An actor that will be started elsewhere saves its state at its end.
    if (worker->serving && worker->channel && worker->spec.max_restarts != 0)
      drain(worker, options_.end_grace, reason);
    else
      end_worker(*worker, reason, options_.end_grace);
  }
}

}  // namespace runtime
