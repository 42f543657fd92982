#include "runtime/call/task_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/call/actor_client.h"
#include "runtime/call/actor_clients.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/object_table.h"
#include "runtime/call/registry.h"
#include "runtime/call/stored_object.h"
#include "runtime/core/backoff.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

namespace {
// An ask for a worker ends a little before the first task that needs it, so that the task's failure
// can say what was missing.
constexpr std::chrono::milliseconds kAskMargin{50};
}  // namespace

struct TaskPool::Task final : Producer {
  Status cancel(const std::shared_ptr<Producer>& self, CancelMode mode) override {
    return pool->cancel(std::static_pointer_cast<Task>(self), mode);
  }
  std::vector<std::shared_ptr<Producer>> parts() const override {
    ObjectStatePtr sent;
    {
      std::lock_guard lock(pool->mutex_);
      sent = running;
    }
    auto call = sent ? sent->producer() : nullptr;
    return call ? std::vector{std::move(call)} : std::vector<std::shared_ptr<Producer>>();
  }

  std::shared_ptr<TaskPool> pool;
  const MethodEntry* function = nullptr;
  ObjectValue arguments;
  TaskOptions options;
  ActorInstance submitter;  // whose code it is for
  Deadline deadline;
  Queue* queue = nullptr;
  ObjectStatePtr result;
  std::shared_ptr<TaskLineage> lineage;  // of a task that runs to make a lost result again

  // Guarded by the pool's mutex.
  std::uint32_t retries_left = 0;
  std::uint32_t runs = 0;  // workers that it was sent to
  std::string last_death;  // of those workers
  int restores = 0;        // of its arguments
  bool cancelled = false;
  ObjectStatePtr running;  // what the worker will answer
};

/// A worker.
struct TaskPool::Worker {
  std::shared_ptr<ActorClient> client;
  std::size_t in_flight = 0;
  bool alone = false;    // runs a task whose last worker died: nothing else is sent along
  bool lost = false;     // not to be used any more
  bool leaving = false;  // with its node: lost, and given back after the tasks that it has
  Deadline
      last_event;  // when its first task in flight began, as far as is known, or when it fell idle
};

/// Tasks that ask for the same resources.
struct TaskPool::Queue {
  ResourceMap resources;
  std::deque<TaskPtr> line;
  std::vector<WorkerPtr> workers;
  std::vector<WorkerPtr> parked;
  std::size_t asks = 0;
  Deadline ask_after = Deadline::min();  // the last one has failed
  Backoff backoff;                       // of asking
  double seconds_per_task = 1;  // moving average; until it is known, tasks are not sent ahead
};

/// Touched on the event loop only.
struct TaskPool::Timer {
  explicit Timer(EventLoop& loop) : timer(loop.executor()) {}
  runtime::Timer timer;
};

/// Holds the mutex; does what may call back when it is released.
class TaskPool::Section {
 public:
  explicit Section(TaskPool& pool) : pool_(pool.shared_from_this()), lock_(pool.mutex_) {}
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    WorkerSource workers;
    if (!given_back_.empty() || !parked_.empty()) workers = pool_->workers_;
    lock_.unlock();
    for (ActorId actor : given_back_) {
      if (workers.give_back) workers.give_back(actor);
    }
    for (ActorId actor : parked_) {
      if (workers.park) workers.park(actor);
    }
    for (auto& [task, worker] : sends_) pool_->send(task, worker);
    for (const Ask& ask : asks_) {
      ActorScope scope(ask.submitter);  // the worker is its child
      pool_->ask(*ask.queue, ask.deadline);
    }
    for (auto& [task, why] : failures_)
      task->result->fail(why.with_context("task " + task->function->name));
  }

  void send(TaskPtr task, WorkerPtr worker) {
    sends_.emplace_back(std::move(task), std::move(worker));
  }
  void fail(TaskPtr task, Status why) { failures_.emplace_back(std::move(task), std::move(why)); }
  void ask(Queue& queue, Deadline deadline, ActorInstance submitter) {
    asks_.push_back({&queue, deadline, submitter});
  }
  void give_back(ActorId actor) { given_back_.push_back(actor); }
  void park(ActorId actor) { parked_.push_back(actor); }

 private:
  std::shared_ptr<TaskPool> pool_;  // first: the mutex is in it
  std::vector<std::pair<TaskPtr, WorkerPtr>> sends_;
  std::vector<std::pair<TaskPtr, Status>> failures_;
  struct Ask {
    Queue* queue;
    Deadline deadline;
    ActorInstance submitter;
  };
  std::vector<Ask> asks_;
  std::vector<ActorId> given_back_;
  std::vector<ActorId> parked_;
  std::unique_lock<std::mutex> lock_;
};

TaskPool::TaskPool(CallerContextPtr context, Submitter submitter, WorkerSource workers,
                   TaskPoolOptions options)
    : context_(std::move(context)),
      submitter_(std::move(submitter)),
      options_(options),
      lineages_(std::make_shared<LineageTable>(options.lineage_bytes_max)),
      workers_(std::move(workers)) {}

TaskPool::~TaskPool() = default;

TaskPool::Queue* TaskPool::queue_for(ResourceMap resources) {
  std::lock_guard lock(mutex_);
  auto& queue = queues_[resources];
  if (!queue) {
    queue = std::make_unique<Queue>();
    queue->resources = std::move(resources);
  }
  return queue.get();
}

TaskPool::TaskPtr TaskPool::make_task(const MethodEntry* function, ObjectValue arguments,
                                      const TaskOptions& options) {
  auto task = std::make_shared<Task>();
  task->pool = shared_from_this();
  task->function = function;
  task->arguments = std::move(arguments);
  task->options = options;
  task->submitter = submitter_();
  task->deadline = deadline_after(options.timeout);
  task->retries_left = options.max_retries;
  task->result = context_->objects.pending();
  task->result->set_producer(task);
  ResourceMap resources = options.resources;
  if (options.cpus != 0) resources["CPU"] = options.cpus;
  if (options.gpus != 0) resources["GPU"] = options.gpus;
  task->queue = queue_for(std::move(resources));
  return task;
}

ObjectStatePtr TaskPool::submit(const MethodEntry* function, ObjectValue arguments,
                                const TaskOptions& options) {
  TaskPtr task = make_task(function, std::move(arguments), options);
  enqueue(task);
  return task->result;
}

void TaskPool::enqueue(const TaskPtr& task) {
  // A task whose arguments are not there yet holds up no other.
  for (const ObjectStatePtr& ref : task->arguments.refs) {
    if (ref->is_settled()) continue;
    ObjectStatePtr blocker = ref;
    return blocker->then([self = shared_from_this(), task] { self->enqueue(task); });
  }
  Section section(*this);
  if (closed_) return section.fail(task, runtime::cancelled("the runtime was stopped"));
  if (task->cancelled) return;  // and failed
  task->queue->line.push_back(task);
  pump(*task->queue, section);
  if (task->runs == 0) arm_timer(task->deadline);
}

Status TaskPool::cancel(const TaskPtr& task, CancelMode mode) {
  ObjectStatePtr running;
  {
    Section section(*this);
    task->cancelled = true;
    running = task->running;
    if (!running) {
      std::erase(task->queue->line, task);
      section.fail(task, runtime::cancelled("it was cancelled before it ran"));
    }
  }
  if (!running) return {};
  std::shared_ptr<Producer> call = running->producer();
  return call ? call->cancel(call, mode) : Status();
}

void TaskPool::pump(Queue& queue, Section& section) {
  const double ahead = std::chrono::duration<double>(options_.ahead).count() /
                       std::max(queue.seconds_per_task, 1e-9);
  const auto depth = static_cast<std::size_t>(
      std::clamp(ahead, 1.0, static_cast<double>(options_.tasks_ahead_max)));
  const auto now = steady_now();
  while (!queue.line.empty()) {
    const bool again = queue.line.front()->runs > 0;
    WorkerPtr best;
    for (const WorkerPtr& worker : queue.workers) {
      if (worker->alone || worker->in_flight >= (again ? 1 : depth)) continue;
      if (!best || worker->in_flight < best->in_flight) best = worker;
    }
    if (!best) break;
    TaskPtr task = std::move(queue.line.front());
    queue.line.pop_front();
    if (best->in_flight++ == 0) best->last_event = now;
    task->running = nullptr;
    best->alone = again;
    ++task->runs;
    section.send(std::move(task), std::move(best));
  }
  if (queue.line.empty()) return;
  if (now < queue.ask_after)
    return arm_timer(std::min(queue.ask_after, queue.line.front()->deadline));
  const std::size_t wanted =
      std::min({queue.line.size(), options_.asks_max,
                options_.workers_max - std::min(options_.workers_max, queue.workers.size())});
  Deadline deadline = queue.line.front()->deadline;
  for (; queue.asks < wanted; ++queue.asks)
    section.ask(queue, deadline, queue.line.front()->submitter);
  arm_timer(deadline);
}

void TaskPool::send(const TaskPtr& task, const WorkerPtr& worker) {
  ObjectStatePtr result =
      worker->client->submit(task->function, task->arguments, task->deadline, 0);
  bool is_cancelled = false;
  {
    std::lock_guard lock(mutex_);
    task->running = result;
    is_cancelled = task->cancelled;  // between being chosen and now
  }
  if (is_cancelled) (void)cancel(task, CancelMode::kCooperative);
  ObjectStatePtr watched = result;
  watched->then([self = shared_from_this(), task, worker, result = std::move(result)] {
    self->on_done(task, worker, *result);
  });
}

void TaskPool::on_done(const TaskPtr& task, const WorkerPtr& worker, const ObjectState& result) {
  Queue& queue = *task->queue;
  const auto now = steady_now();
  const Status& failure = result.failure();
  // Whether the worker is gone, not whether the function's own result speaks of some other that is.
  const bool died =
      !failure.ok() && (worker->client->is_closed() || failure.code() == ErrorCode::kUnavailable);
  bool settle = true;
  {
    Section section(*this);
    --worker->in_flight;
    worker->alone = false;
    task->running = nullptr;
    if (died) {
      task->last_death = failure.message();
      drop(queue, worker);
      if (!worker->client->is_closed())
        section.give_back(worker->client->id());  // it cannot be reached: no caller needs it
    } else if (!worker->lost) {
      const double seconds = std::chrono::duration<double>(now - worker->last_event).count();
      queue.seconds_per_task += 0.2 * (seconds - queue.seconds_per_task);
      if (queue.seconds_per_task > 4 * seconds)
        queue.seconds_per_task = seconds;  // the first guess is far off
      worker->last_event = now;
    }
    if (worker->leaving && worker->in_flight == 0 && !died) section.give_back(worker->client->id());
    const bool failed = !failure.ok() && failure.code() != ErrorCode::kCancelled &&
                        failure.code() != ErrorCode::kDeadlineExceeded;
    const bool again = died || (failed && task->options.retry_failures);
    if (again && !task->cancelled && !closed_ && task->retries_left > 0 && now < task->deadline) {
      --task->retries_left;
      settle = false;
      queue.line.push_front(task);
    }
    if (!closed_) pump(queue, section);
    if (worker->in_flight == 0 && !worker->lost) arm_timer(now + options_.idle_max);
  }
  if (!settle) return;
  if (failure.ok()) {
    keep_lineage(task, result.value());
    task->result->fulfil(result.value());
  } else if (failure.code() == ErrorCode::kObjectLost) {
    restore_arguments(task, failure);
  } else if (died && task->runs > 1) {
    task->result->fail(failure.with_context("the last of " + std::to_string(task->runs) +
                                            " workers that ran the task"));
  } else {
    task->result->fail(failure);
  }
}

void TaskPool::keep_lineage(const TaskPtr& task, const ObjectValue& result) {
  // What a result refers to would be other objects the next time.
  if (!result.stored || !result.refs.empty()) return;
  if (!task->lineage) {
    TaskSource source{task->function, task->arguments, task->options.max_retries};
    auto submit = [weak = weak_from_this(), function = task->function, options = task->options](
                      ObjectValue arguments,
                      std::shared_ptr<TaskLineage> lineage) -> Result<ObjectStatePtr> {
      auto pool = weak.lock();
      if (!pool) return runtime::cancelled("the runtime was stopped");
      TaskPtr again = pool->make_task(function, std::move(arguments), options);
      again->lineage = std::move(lineage);
      // Later, since the reader of the lost object holds locks that sending a task takes too.
      pool->context_->loop.post([pool, again] { pool->enqueue(again); });
      return again->result;
    };
    task->lineage =
        std::make_shared<TaskLineage>(source, context_->node.node_address(), std::move(submit));
    task->lineage->keep_in(*lineages_);
  }
  result.stored->set_lineage(task->lineage);
  context_->object_table.add_remakeable(result.stored);
}

void TaskPool::restore_arguments(const TaskPtr& task, Status failure) {
  struct Restoring {
    std::atomic<std::size_t> left{0};
    std::atomic<bool> made_again{false};
  };
  std::vector<std::shared_ptr<StoredObject>> inputs;
  for (const ObjectStatePtr& ref : task->arguments.refs) {
    if (ref->failure().ok() && ref->value().stored && ref->value().stored->lineage())
      inputs.push_back(ref->value().stored);
  }
  {
    std::lock_guard lock(mutex_);
    if (closed_ || task->cancelled || ++task->restores > options_.restores_max) inputs.clear();
  }
  if (inputs.empty()) return task->result->fail(std::move(failure));
  auto restoring = std::make_shared<Restoring>();
  restoring->left = inputs.size();
  for (const auto& input : inputs) {
    input->restore(task->deadline,
                   [self = shared_from_this(), task, restoring, failure](bool made_again) {
                     if (made_again) restoring->made_again = true;
                     if (--restoring->left > 0) return;
                     if (restoring->made_again)
                       self->enqueue(task);
                     else
                       task->result->fail(failure);
                   });
  }
}

void TaskPool::on_node_drains(NodeId node) {
  Section section(*this);
  for (auto& [resources, queue] : queues_) {
    const auto leaves = [&](const WorkerPtr& worker) {
      if (worker->client->address().node != node) return false;
      worker->lost = worker->leaving = true;
      if (worker->in_flight == 0) section.give_back(worker->client->id());
      return true;
    };
    std::erase_if(queue->workers, leaves);
    std::erase_if(queue->parked, leaves);
    if (!closed_) pump(*queue, section);
  }
}

void TaskPool::drop(Queue& queue, const WorkerPtr& worker) {
  worker->lost = true;
  std::erase(queue.workers, worker);
}

void TaskPool::ask(Queue& queue, Deadline deadline) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_now()) - kAskMargin;
  WorkerSource workers;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    workers = workers_;
  }
  Result<PendingActor> pending =
      workers.ask(queue.resources, std::max(left, std::chrono::milliseconds(1)));
  if (!pending.ok()) {
    pending = PendingActor{ActorId(), context_->objects.failed(pending.status()), nullptr};
  }
  ObjectStatePtr created = pending->created;
  created->then([self = shared_from_this(), &queue, pending = *std::move(pending)] {
    self->on_worker(queue, pending);
  });
}

void TaskPool::on_worker(Queue& queue, const PendingActor& pending) {
  const Status& failure = pending.created->failure();
  std::shared_ptr<ActorClient> client =
      failure.ok() ? context_->clients.client_for(context_, *pending.address) : nullptr;
  Section section(*this);
  --queue.asks;
  if (client) {
    if (closed_) return;
    queue.backoff.reset();
    auto worker = std::make_shared<Worker>();
    worker->client = std::move(client);
    worker->last_event = steady_now();
    queue.workers.push_back(std::move(worker));
    pump(queue, section);
    return arm_timer(steady_now() + options_.idle_max);
  }
  const bool passing = failure.code() == ErrorCode::kResourceExhausted ||
                       failure.code() == ErrorCode::kDeadlineExceeded ||
                       failure.code() == ErrorCode::kActorDied ||
                       failure.code() == ErrorCode::kUnavailable;
  const Deadline now = steady_now();
  // The way to the node may be broken: asking at full speed would help no caller.
  queue.ask_after = now + queue.backoff.next();
  // What can never be had fails all that wait for it; else those whose time is up, and the others
  // ask again.
  std::erase_if(queue.line, [&](const TaskPtr& task) {
    if (passing && task->deadline > now + 2 * kAskMargin) return false;
    section.fail(task, with_deaths(*task, failure));
    return true;
  });
  if (!closed_) pump(queue, section);
}

void TaskPool::arm_timer(Deadline at) {
  if (at >= timer_at_) return;
  timer_at_ = at;
  if (!timer_) timer_ = std::make_shared<Timer>(context_->loop);
  context_->loop.post([timer = timer_, weak = weak_from_this(), at] {
    timer->timer.expires_at(at);
    timer->timer.async_wait([weak, timer](const boost::system::error_code& ec) {
      auto self = weak.lock();
      if (self && !ec) self->on_timer();
    });
  });
}

Status TaskPool::with_deaths(const Task& task, const Status& why) {
  if (task.last_death.empty()) return why;
  return Status(why.code(), why.message() + "; " + std::to_string(task.runs) +
                                (task.runs == 1 ? " worker that ran it died: "
                                                : " workers that ran it died, the last: ") +
                                task.last_death);
}

void TaskPool::on_timer() {
  Section section(*this);
  timer_at_ = Deadline::max();
  const Deadline now = steady_now();
  Deadline next = Deadline::max();
  for (auto& [resources, queue] : queues_) {
    std::erase_if(queue->line, [&](const TaskPtr& task) {
      if (task->deadline <= now)
        section.fail(
            task, with_deaths(*task, deadline_exceeded(
                                         "no worker was free for it in time (of " +
                                         std::to_string(task->options.timeout.count()) + " ms)")));
      else
        next = std::min(next, task->deadline);
      return task->deadline <= now;
    });
    std::erase_if(queue->workers, [&, &queue = queue](const WorkerPtr& worker) {
      if (worker->in_flight > 0) return false;
      const Deadline until = worker->last_event + options_.idle_max;
      if (until > now) {
        next = std::min(next, until);
        return false;
      }
      worker->lost = true;
      if (worker->client->lends_results() && !worker->client->is_closed()) {
        section.park(worker->client->id());
        queue->parked.push_back(worker);
      } else {
        section.give_back(worker->client->id());
      }
      return true;
    });
    std::erase_if(queue->parked, [&](const WorkerPtr& worker) {
      if (worker->client->lends_results() && !worker->client->is_closed()) return false;
      section.give_back(worker->client->id());
      return true;
    });
    if (!queue->parked.empty()) next = std::min(next, now + options_.idle_max);
    if (queue->line.empty() || queue->ask_after == Deadline::min()) continue;
    if (queue->ask_after > now) {
      next = std::min(next, queue->ask_after);
    } else {
      queue->ask_after = Deadline::min();
      pump(*queue, section);
    }
  }
  arm_timer(next);
}

void TaskPool::close() {
  Section section(*this);
  closed_ = true;
  workers_ = {};
  for (auto& [resources, queue] : queues_) {
    for (TaskPtr& task : std::exchange(queue->line, {}))
      section.fail(std::move(task), runtime::cancelled("the runtime was stopped"));
    queue->parked.clear();
  }
}

}  // namespace runtime
