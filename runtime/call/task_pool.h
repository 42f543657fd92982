// TaskPool: runs a process's tasks on workers that it borrows from the cluster.
//
// A worker is a process that holds the resources of one kind of task. It is asked for when
// tasks wait, kept while they come, and given back when it has been idle for a while. So a task
// costs one message to a worker and no question to the head. Short tasks are sent ahead of their
// turn, long ones are not, so that they spread over the workers.
//
// A worker's process owns the large results that it made. While some are held here, an idle worker
// gives back its resources only, and its process stays.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/call/actor_scope.h"
#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/call/pending_actor.h"
#include "runtime/call/task.h"
#include "runtime/call/task_lineage.h"
#include "runtime/core/result.h"

namespace runtime {

struct TaskPoolOptions {
  std::size_t workers_max = 256;            // per kind of resources
  std::size_t asks_max = 4;                 // workers that are being waited for
  std::size_t tasks_ahead_max = 128;        // sent to one worker
  std::chrono::microseconds ahead{1000};    // as much work as that is sent ahead
  std::chrono::milliseconds idle_max{500};  // then a worker is given back
  std::size_t lineage_bytes_max = 256 << 20;
  int restores_max = 5;  // of one task's arguments, one after another
};

/// Any thread. Owned by a shared_ptr, since what is under way holds on to it.
class TaskPool : public std::enable_shared_from_this<TaskPool> {
 public:
  /// How workers come and go: an actor of class TaskRunner with these resources, or why none can be
  /// asked for.
  struct WorkerSource {
    std::function<Result<PendingActor>(const ResourceMap& resources,
                                       std::chrono::milliseconds timeout)>
        ask;
    std::function<void(ActorId actor)> give_back;
    /// Gives back its resources alone.
    std::function<void(ActorId actor)> park;
  };
  /// The actor on whose behalf the calling thread runs, as Process::current_actor.
  using Submitter = std::function<ActorInstance()>;

  TaskPool(CallerContextPtr context, Submitter submitter, WorkerSource workers,
           TaskPoolOptions options = {});
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  ~TaskPool();

  /// Runs the function once its arguments are there. What goes wrong ends up in the returned
  /// object. That is the function's own failure, or kActorDied when worker after worker died. When
  /// the time is up it is kResourceExhausted (what is missing where) or kDeadlineExceeded.
  ObjectStatePtr submit(const MethodEntry* function, ObjectValue arguments,
                        const TaskOptions& options);

  /// The node is about to leave: its workers get no more tasks, and are given back when they have
  /// run those that they have. What they made stays readable.
  void on_node_drains(NodeId node);

  /// Fails what waits and everything later; workers are left to the end of the job. Before the
  /// process is shut down.
  void close();

 private:
  struct Task;
  struct Worker;
  struct Queue;
  struct Timer;
  using TaskPtr = std::shared_ptr<Task>;
  using WorkerPtr = std::shared_ptr<Worker>;
  class Section;

  Queue* queue_for(ResourceMap resources);
  TaskPtr make_task(const MethodEntry* function, ObjectValue arguments, const TaskOptions& options);
  Status cancel(const TaskPtr& task, CancelMode mode);
  /// Makes the lost ones of its arguments again, and then runs it again; settles it with `failure`
  /// if none was.
  void restore_arguments(const TaskPtr& task, Status failure);
  void keep_lineage(const TaskPtr& task, const ObjectValue& result);
  void enqueue(const TaskPtr& task);
  void pump(Queue& queue, Section& section);
  void send(const TaskPtr& task, const WorkerPtr& worker);
  void on_done(const TaskPtr& task, const WorkerPtr& worker, const ObjectState& result);
  void ask(Queue& queue, Deadline deadline);
  void on_worker(Queue& queue, const PendingActor& pending);
  void drop(Queue& queue, const WorkerPtr& worker);
  void arm_timer(Deadline at);
  void on_timer();
  /// Of a task that fails: with what became of the workers that ran it.
  static Status with_deaths(const Task& task, const Status& why);

  const CallerContextPtr context_;
  const Submitter submitter_;
  const TaskPoolOptions options_;
  const std::shared_ptr<LineageTable> lineages_;

  std::mutex mutex_;  // guards what follows; nothing is called with it held that may call back
  WorkerSource workers_;
  std::map<ResourceMap, std::unique_ptr<Queue>>
      queues_;  // never erased: as many as there are kinds of tasks in the program
  std::shared_ptr<Timer> timer_;
  Deadline timer_at_ = Deadline::max();
  bool closed_ = false;
};

}  // namespace runtime
