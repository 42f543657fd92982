// WorkerPool: a node's worker processes, from their start to the report of how they ended.
//
// A worker runs one actor. It is started for the actor, or ahead of time (warm) for its job, and is
// never used again for another. What a dead actor left behind in a process must not touch the next.
// Shared actors of a job that want the same environment are together in one worker, which ends with
// them, or with the job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/job/program_files.h"
#include "runtime/node/actor_starts.h"
#include "runtime/node/memory_guard.h"
#include "runtime/node/worker_view.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

class LogRoom;

struct WorkerPoolOptions {
  ClusterId cluster;
  NodeId node;
  std::string node_address;  // HOST:PORT
  std::string session_dir;
  LogRoom* logs = nullptr;  // null: logs have their own bounds only
  std::size_t workers_max = 4096;
  std::uint32_t warm_workers_max = 16;        // per job
  std::chrono::milliseconds end_grace{1000};  // between SIGTERM and SIGKILL when a job ends
  std::vector<std::string> gpu_names =
      {};  // what CUDA_VISIBLE_DEVICES has for each GPU that the node offers
  ActorStartsOptions starts;
  std::chrono::milliseconds shared_idle{
      5000};  // how long a process of shared actors stays without any
};

struct WorkerPoolCallbacks {
  /// An actor's process ended after its start was answered with success.
  std::function<void(JobId job, control::ActorExited exited)> on_actor_exited;
  std::function<void(JobId job, control::ActorsExited exited)> on_actors_exited;
  std::function<void(LogLines lines)> on_log;
  /// As ProgramFiles::find.
  std::function<void(const DriverInfo& driver, const std::string& driver_node, Deadline deadline,
                     ProgramFiles::Found found)>
      find_program;
  /// Where a driver's workers are to start on this node, if its folder has to be brought here
  /// first. May be empty.
  std::function<void(JobId job, const control::StartActor& start, Deadline deadline,
                     std::function<void(Result<std::string>)> found)>
      find_folder{};
};

/// Lives on the event loop.
class WorkerPool final : public WorkerView {
 public:
  WorkerPool(EventLoop& loop, WorkerPoolOptions options, WorkerPoolCallbacks callbacks);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  /// Kills what still runs.
  ~WorkerPool();

  /// Starts a worker (or takes a warm one), lets it build the actor, answers with its address. A
  /// process that cannot be started now is tried again (ActorStartsOptions::patience).
  /// Errors: what the constructor threw (kTaskFailed), kActorDied with the cause when the process
  /// ends meanwhile, kDeadlineExceeded. Asked again for the same incarnation (by a head that was
  /// restarted), it answers for the one start that there is.
  void start_actor(JobId job, control::StartActor start, Deadline deadline, ControlAnswerer answer);
  /// Starts workers ahead for actors of this program that want no own environment.
  void warm(JobId job, const DriverInfo& driver);

  /// A process connected as a worker: answers with its job, or with nothing when this pool did not
  /// start it.
  std::optional<JobId> on_connected(const std::shared_ptr<Channel>& channel);
  /// The worker's connection ended. A process without one is of no use: it gets a moment to end by
  /// itself.
  void on_disconnected(WorkerId id, const Status& why);
  /// A connection for one of the workers came in through the node's port.
  Status attach(const Inbound& inbound, FileDescriptor& socket);

  std::vector<control::ActorInstance> serving() const override;
  /// At once, or within a grace; a worker that is to drain serves what waits at the actor and ends
  /// by itself.
  void stop_actor(const control::StopActor& stop);
  /// Passes a ConstructorAwaited on to the process that has the actor; drops it where none has.
  void pass_on(const ControlRequest& awaited);
  /// The workers that have an actor.
  std::vector<GuardedWorker> guarded() const;
  /// Kills a worker as if it had crashed, for that reason: its actor is started again by its own
  /// policy.
  void stop_worker(const WorkerId& id, const std::string& reason);
  void list(WorkerList& to) const override;
  pid_t process_of(ActorId actor, std::string* class_name) const override;
  std::size_t starting() const override;
  std::string start_trouble(ActorId actor) const override { return starts_.trouble(actor); }
  const WorkerPoolStats& stats() const override { return stats_; }
  /// Ends the job's workers, except those whose actors outlive it.
  void end_job(JobId job);
  /// The node is about to leave: workers that wait for an actor go, and no more are started ahead.
  void begin_drain();
  /// Ends all workers for that reason; `done` runs when the last is reaped.
  void end_all(const std::string& reason, std::function<void()> done);

 private:
  struct Worker;
  using WorkerPtr = std::shared_ptr<Worker>;
  /// What shared actors of one process have in common.
  using SharedKey =
      std::tuple<JobId, bool /* outlives it */, std::uint32_t /* threads */, Environment>;

  Result<WorkerPtr> spawn(JobId job, const DriverInfo& driver, const LocalProgram& program,
                          const Environment& env, std::uint32_t threads);
  /// The worker that has the actor; null: none.
  const Worker* find(ActorId actor) const;
  WorkerPtr take_warm(JobId job, const control::StartActor& start, std::uint32_t threads);
  /// Whether that incarnation is there, or on its way, and the answer taken care of.
  bool join_start(const control::StartActor& start, ControlAnswerer& answer);
  /// Errors: spawn()'s; it is not answered then.
  Status begin(const ActorStarts::StartPtr& start, const LocalProgram& program);
  Status begin_shared(const ActorStarts::StartPtr& start, const LocalProgram& program,
                      std::uint32_t threads);
  /// Its process has ended for want of what may be there in a moment.
  void begin_again(Worker& worker);
  void assign(const WorkerPtr& worker);
  void on_built(const WorkerPtr& worker, const Result<ControlAnswer>& built);
  void on_exit(WorkerId id, DeathCause cause);
  ActorAddress served_address(const Worker& worker) const;
  void answer_start(Worker& worker, Result<ControlAnswer> answer);
  void arm_timer(const WorkerPtr& worker);
  void arm_idle_timer(const WorkerPtr& worker);
  void drain(const WorkerPtr& worker, std::chrono::milliseconds grace, const std::string& reason);

  EventLoop& loop_;
  const WorkerPoolOptions options_;
  const WorkerPoolCallbacks callbacks_;
  std::map<WorkerId, WorkerPtr> workers_;
  std::map<SharedKey, WorkerPtr> shared_;
  ActorStarts starts_;
  std::function<void()> on_empty_;
  bool ending_ = false;
  bool draining_ = false;  // the node
  WorkerPoolStats stats_;
  Lifetime lifetime_;
};

}  // namespace runtime
