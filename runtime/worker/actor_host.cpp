#include "runtime/worker/actor_host.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/call/blocked_calls.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/object_context.h"
#include "runtime/call/stored_object.h"
#include "runtime/call/task.h"
#include "runtime/call/thrown.h"
#include "runtime/core/end_process.h"
#include "runtime/core/log.h"
#include "runtime/worker/actor_executor.h"
#include "runtime/worker/coroutine_call.h"
#include "runtime/worker/stream_sender.h"

namespace runtime {

namespace {

/// How long an actor that ends as it was asked to may take to save its state.
constexpr std::chrono::seconds kSaveTime{5};

/// The exception being handled, as what a caller is told. Call it in a catch block.
Status thrown() { return status_of(std::current_exception()); }

/// Those that came with the call, or those in a store, which blocks while they come.
Result<Buffer> argument_bytes(ObjectValue& arguments, Deadline deadline) {
  if (arguments.stored) return arguments.stored->open(deadline);
  return std::move(arguments.bytes);
}

}  // namespace

void refuse_call(const ActorJob& job, Status why, bool gone, Flush flush) {
  Result<Buffer> meta = encode_reply({.status = std::move(why), .gone = gone}, {});
  CHECK(meta.ok());
  (void)job.channel->send(reply_to(job.request, *std::move(meta)),
                          flush);  // not sent: the connection is gone, and the caller knows
}

/// What a thread does for the actor between run() and its return.
struct ActorHost::Turn {
  std::unique_ptr<ActorJob> job;
  UniqueFunction<void()> task;  // or this
  bool busy = false;            // with one of them
  Lane* lane = nullptr;         // of the job that runs
  Running running{};
  CallContext context;
  bool registered = false;  // in HostContext::active
  bool last = false;        // no more of its lane wait
  bool more = false;
  bool ran = false;  // a call, which ended
  bool failed = false;
  std::uint64_t took_ns = 0;
};

ActorHost::ActorHost(std::shared_ptr<const HostContext> context, ActorId id,
                     std::uint64_t incarnation, bool shared)
    : context_(std::move(context)),
      id_(id),
      incarnation_(incarnation),
      shared_(shared),
      activity_(context_->activity.get(), id_) {}

bool ActorHost::run(std::size_t jobs_max) {
  ActorScope scope({id_, incarnation_});
  Turn turn;
  for (std::size_t i = 0;; ++i) {
    next(turn, i < jobs_max);
    if (turn.task) {
      turn.task();
      turn.task = nullptr;
      continue;
    }
    if (!turn.job) return turn.more;
    if (turn.job->answer) {
      Status status = construct(*turn.job);
      turn.job->answer(std::move(status));
      continue;
    }
    if (turn.job->tells_of_drain) {
      run_drain_hook();
      continue;
    }
    if (turn.job->method && turn.job->method->coroutine) {
      begin_coroutine(turn);
      continue;
    }
    InvokeOutput output;
    const Deadline now = steady_now();
    const std::uint64_t begun_ns = activity_.begin_call(turn.job->method, now);
    Status status = execute(*turn.job, turn.context, output, now);
    // A large result may have to wait for room, and then hears of a cancellation also where the
    // method did not.
    if (!turn.registered && status.ok() && output.encoder.size() >= kLargeArrayBytes) {
      turn.registered = true;
      turn.context = context_->active.begin(turn.running.channel, id_, turn.running.sequence,
                                            turn.job->deadline);
    }
    ObjectValue value = store_result(status, output, turn.context);
    if (turn.registered) context_->active.end(turn.running.channel, id_, turn.running.sequence);
    turn.ran = true;
    turn.failed = !status.ok();
    turn.took_ns = activity_.end_call(*turn.job, begun_ns, turn.failed);
    if (abandoned_) continue;
    // While more calls wait, replies gather; the last one takes them along.
    send_reply(std::move(turn.job), std::move(status), std::move(value),
               turn.last ? Flush::kNow : Flush::kSoon);
  }
}

void ActorHost::next(Turn& turn, bool take) {
  turn.job.reset();
  turn.more = turn.registered = false;
  bool finishes = false;
  bool another = false;
  {
    std::lock_guard lock(mutex_);
    if (turn.lane) {
      --std::exchange(turn.lane, nullptr)->active;
      std::erase(running_, turn.running);
    }
    if (std::exchange(turn.ran, false)) {
      activity_.count_call(turn.took_ns, turn.failed);
      activity_.show_line(in_line());
    }
    if (std::exchange(turn.busy, false)) --jobs_;
    if (stops_after_calls_ && !has_tasks() && in_line() == 0 && is_at_rest()) stopping_ = true;
    if (take && has_tasks()) {
      ++jobs_;
      turn.busy = true;
      turn.task = std::move(coroutines_->tasks.front());
      coroutines_->tasks.pop_front();
    } else if (stopping_) {
      turn.more = has_tasks();
      if (!turn.more) --turns_;
      finishes = !turn.more && !finished_ && is_at_rest();
      finished_ = finished_ || finishes;
    } else if (!take) {
      turn.more = has_tasks() || lanes_.is_runnable();
      if (!turn.more) --turns_;
    } else if ((turn.job = take_job(&turn.lane)) == nullptr) {
      --turns_;
    } else {
      ++jobs_;
      turn.busy = true;
      turn.last = turn.lane->line.empty();
      ActorJob& job = *turn.job;
      turn.running = {job.channel.get(), job.call.sequence, turn.lane, job.request.kind,
                      job.request.id};
      running_.push_back(turn.running);
      // Here, so that a cancellation finds the call either in line or among the active ones.
      turn.registered = job.method != nullptr && (job.method->takes_context ||
                                                  job.method->is_stream || job.method->coroutine);
      turn.context = turn.registered ? context_->active.begin(job.channel.get(), id_,
                                                              job.call.sequence, job.deadline)
                                     : CallContext({}, job.deadline);
      another = wants_turn();
      if (another) ++turns_;
    }
  }
  if (another) context_->executor.post(shared_from_this());
  if (finishes) finish();
}

std::unique_ptr<ActorJob> ActorHost::take_job(Lane** lane) {
  for (;;) {
    std::unique_ptr<ActorJob> job = lanes_.pop(lane);
    if (!job || job->answer || job->tells_of_drain) return job;
    const bool unread = job->channel->queued_bytes() > context_->options.unread_bytes_max;
    if (!unread && !(parked_ && parked_->has(job->channel.get(), *lane))) return job;
    --(*lane)->active;
    park(std::move(job), std::exchange(*lane, nullptr));
  }
}

void ActorHost::park(std::unique_ptr<ActorJob> job, const Lane* lane) {
  if (!parked_) parked_ = std::make_unique<ParkedCalls>();
  Channel& channel = *job->channel;
  if (!parked_->park(std::move(job), lane)) return;
  // Also when the connection ends: then they are dropped as others of a caller that is gone.
  channel.when_drained(context_->options.unread_bytes_max / 2,
                       [weak = weak_from_this(), raw = &channel] {
                         if (auto self = weak.lock()) self->unpark(raw);
                       });
}

void ActorHost::unpark(const Channel* channel) {
  bool another = false;
  {
    std::lock_guard lock(mutex_);
    take_back(channel, nullptr);
    another = wants_turn();
    if (another) ++turns_;
  }
  if (another) context_->executor.post(shared_from_this());
}

void ActorHost::take_back(const Channel* channel, const Lane* lane) {
  std::unique_ptr<JobLine> line = parked_ ? parked_->release(channel, lane) : nullptr;
  if (!line) return;
  if (parked_->empty()) parked_.reset();
  lanes_.put_back(*line);
}

void ActorHost::save_at_end() {
  if (!actor_ || !saves_) return;
  ActorScope scope({id_, incarnation_});
  // The head may be away for a moment; a node that is drained can wait for it.
  const std::optional<DrainNotice> drain = context_->process.drain_notice();
  const Deadline until =
      std::max(deadline_after(kSaveTime), drain ? drain->deadline : Deadline::min());
  Status saved;
  try {
    saved = save_state_of(actor_.get(), class_->state_hooks(), {id_, incarnation_},
                          context_->states, until);
  } catch (...) {
    saved = thrown().with_context("save_state");
  }
  if (!saved.ok())
    LOG(warn, "{} {}: its last state is not kept: {}", class_->name(), id_.short_hex(),
        saved.message());
}

void ActorHost::tell_of_drain() {
  auto job = std::make_unique<ActorJob>();
  job->tells_of_drain = true;
  bool another = false;
  {
    std::lock_guard lock(mutex_);
    if (stopping_ || stops_after_calls_) return;
    if (class_ && !class_->drain_hook()) return;
    if (class_) {
      JobLine first;
      first.push(std::move(job));
      lanes_.put_back(first);
    } else {
      lanes_.push(std::move(job));  // behind the constructor
    }
    another = wants_turn();
    if (another) ++turns_;
  }
  if (another) context_->executor.post(shared_from_this());
}

void ActorHost::run_drain_hook() {
  const std::optional<DrainNotice> notice = context_->process.drain_notice();
  const DrainHook hook = class_ ? class_->drain_hook() : nullptr;
  if (!actor_ || !hook || !notice) return;
  try {
    hook(actor_.get(), *notice);
  } catch (...) {
    LOG(warn, "{} {}: on_drain: {}", class_->name(), id_.short_hex(), thrown().message());
  }
}

void ActorHost::finish() {
  if (stops_after_calls_) save_at_end();
  actor_.reset();
  activity::ActorSlot* slot = nullptr;
  {
    std::lock_guard lock(mutex_);
    slot = activity_.take_slot();
  }
  activity_.give_back(slot);
  JobLine dropped;
  std::deque<UniqueFunction<void()>>
      tasks;  // of coroutines that a process which ends left suspended
  std::function<void()> stopped;
  {
    std::lock_guard lock(mutex_);
    if (coroutines_) tasks.swap(coroutines_->tasks);
    while (auto job = lanes_.take_any()) dropped.push(std::move(job));
    while (auto job = parked_ ? parked_->take_any() : nullptr) dropped.push(std::move(job));
    stopped = std::move(stopped_);
  }
  while (auto job = dropped.pop()) {
    if (job->tells_of_drain) continue;
    if (job->answer)
      job->answer(cancelled("the actor was ended before it was built"));
    else
      refuse_call(*job, not_found("the actor has ended"), true,
                  dropped.empty() ? Flush::kNow : Flush::kSoon);
  }
  if (stopped) stopped();
}

void ActorHost::stop(std::function<void()> done) {
  bool first = false;
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    first = !std::exchange(stopping_, true);
    if (first) {
      if (done && stopped_) {  // that of stop_after_calls()
        stopped_ = [stopped = std::move(stopped_), done = std::move(done)] {
          stopped();
          done();
        };
      } else if (done) {
        stopped_ = std::move(done);
      }
      idle = turns_ == 0;  // else the thread that has a turn sees
      if (idle) ++turns_;
    }
  }
  if (idle) context_->executor.post(shared_from_this());
  if (first)
    context_->active.cancel_all(id_);
  else if (done)
    done();
}

void ActorHost::abandon(const std::vector<std::shared_ptr<Channel>>& channels) {
  std::vector<Running> calls;
  {
    std::lock_guard lock(mutex_);
    if (!stopping_ || abandoned_.exchange(true)) return;
    calls = running_;
  }
  for (const Running& call : calls) {
    const auto open = std::ranges::find_if(
        channels, [&](const auto& channel) { return channel.get() == call.channel; });
    if (open == channels.end()) continue;  // or a constructor
    ActorJob job;
    job.channel = *open;
    job.request.kind = call.kind;
    job.request.id = call.request;
    refuse_call(job, actor_died("the actor was ended during the call, which keeps running"), false,
                Flush::kNow);
  }
}

void ActorHost::stop_after_calls(std::function<void()> done) {
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    if (!stopping_ && !stops_after_calls_) {
      stops_after_calls_ = true;
      stopped_ = std::exchange(done, nullptr);
      idle = turns_ == 0;  // else the thread that has a turn comes to the end of the line
      if (idle) ++turns_;
    }
  }
  if (idle) context_->executor.post(shared_from_this());
  if (done) done();
}

void ActorHost::run_in_turn(UniqueFunction<void()> task) {
  bool idle = false;
  {
    std::lock_guard lock(mutex_);
    if (finished_) return;  // the coroutine is destroyed with its task
    coroutines_->tasks.push_back(std::move(task));
    idle = turns_ == 0;
    if (idle) ++turns_;
  }
  if (idle) context_->executor.post(shared_from_this());
}

void ActorHost::begin_coroutine(Turn& turn) {
  ActorJob& job = *turn.job;
  const Deadline now = steady_now();
  if (Status status = check_call(job, now); !status.ok()) {
    if (turn.registered) context_->active.end(turn.running.channel, id_, turn.running.sequence);
    return send_reply(std::move(turn.job), std::move(status), {},
                      turn.last ? Flush::kNow : Flush::kSoon);
  }
  auto call =
      std::make_shared<CoroutineCall>(actor_, job.method->key, job.arguments.refs, turn.context);
  call->host = shared_from_this();
  call->begun_ns = ActorActivity::nanoseconds_of(now);
  call->fetches = job.arguments.stored != nullptr;
  {
    std::lock_guard lock(mutex_);
    ++coroutines_->in_progress;
    std::erase(running_, turn.running);
    call->lane = std::exchange(turn.lane, nullptr);  // stays active until the end
    if (call->lane->limit == 1)
      coroutines_->alone.push_back({turn.running.channel, turn.running.sequence, call->lane});
    if (call->fetches) {
      if (!parked_) parked_ = std::make_unique<ParkedCalls>();
      parked_->hold(job.channel.get(), call->lane);
    }
  }
  call->job = std::move(turn.job);
  const ServedCall served{{id_, call->job->channel.get(), call->job->call.sequence},
                          &class_name(),
                          &call->job->method->name};
  start_coroutine(std::move(call), served, context_->object_context);
}

void ActorHost::end_fetch(CoroutineCall& call) {
  if (!std::exchange(call.fetches, false)) return;
  std::lock_guard lock(mutex_);
  take_back(call.job->channel.get(), call.lane);
}

void ActorHost::end_coroutine(CoroutineCall& call, Status status) {
  end_fetch(call);
  ObjectValue value = store_result(status, call.output, call.context);
  context_->active.end(call.job->channel.get(), id_, call.job->call.sequence);
  const bool failed = !status.ok();
  const std::uint64_t took_ns = activity_.end_call(*call.job, call.begun_ns, failed);
  send_reply(std::move(call.job), std::move(status), std::move(value), Flush::kSoon);
  std::lock_guard lock(mutex_);
  activity_.count_call(took_ns, failed);
  activity_.show_line(in_line());
  --coroutines_->in_progress;
  std::erase_if(coroutines_->alone,
                [&](const Running& running) { return running.lane == call.lane; });
  --call.lane->active;
}

void ActorHost::stop_at_rest() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = stops_after_calls_ = true;
    if (std::exchange(finished_, true)) return;
  }
  finish();
}

void ActorHost::push(std::unique_ptr<ActorJob> job) {
  bool gone = false;
  bool another = false;
  {
    std::lock_guard lock(mutex_);
    gone = stopping_ || stops_after_calls_;
    if (!gone && in_line() < context_->options.calls_max) {
      if (class_) job->method = class_->find(job->call.method);
      lanes_.push(std::move(job));
      activity_.show_line(in_line());
      another = wants_turn();
      if (another) ++turns_;
    }
  }
  if (another) return context_->executor.post(shared_from_this());
  if (!job) return;
  if (gone)
    refuse_call(*job, not_found("the actor has ended"), true, Flush::kSoon);
  else
    refuse_call(
        *job,
        resource_exhausted(std::to_string(context_->options.calls_max) + " calls wait already"),
        false, Flush::kSoon);
}

void ActorHost::cancel(const Channel* channel, std::uint64_t sequence, CancelMode mode) {
  std::unique_ptr<ActorJob> waiting;
  bool runs = false;
  {
    std::lock_guard lock(mutex_);
    waiting = lanes_.take(channel, sequence);
    if (!waiting && parked_) waiting = parked_->take(channel, sequence);
    runs = find_running(channel, sequence) != nullptr;
  }
  if (waiting)
    return refuse_call(*waiting, cancelled("the call was cancelled before it ran"), false,
                       Flush::kSoon);
  if (runs && mode == CancelMode::kForce && !shared_) {
    LOG(error, "a caller cancelled call {} by force: this process ends", sequence);
    end_process(SIGKILL);
  }
  context_->active.cancel(channel, id_, sequence);
}

const ActorHost::Running* ActorHost::find_running(const Channel* channel,
                                                  std::uint64_t sequence) const {
  auto found = std::find_if(running_.begin(), running_.end(), [&](const Running& running) {
    return running.channel == channel && running.sequence == sequence;
  });
  return found == running_.end() ? nullptr : &*found;
}

void ActorHost::on_waits(const Channel* channel, std::uint64_t sequence,
                         const std::vector<WaitStep>& waits) {
  ServedCall::Key held_by{id_, channel, sequence};  // unless it stands in line: itself
  {
    std::lock_guard lock(mutex_);
    if (const Lane* lane = lanes_.find(channel, sequence); lane && lane->limit == 1) {
      const auto take = [&](const std::vector<Running>& calls) {
        for (const Running& call : calls)
          if (call.lane == lane) held_by = {id_, call.channel, call.sequence};
      };
      take(running_);
      if (coroutines_) take(coroutines_->alone);
    }
  }
  context_->blocked_calls.on_waits(held_by, waits);
}

const std::string& ActorHost::class_name() const { return class_->name(); }

void ActorHost::build(ActorSpec spec, std::function<void(Status)> answer) {
  auto job = std::make_unique<ActorJob>();
  job->spec = std::make_unique<const ActorSpec>(std::move(spec));
  job->answer = std::move(answer);
  push(std::move(job));
}

Status ActorHost::prepare(const ExecutionOptions& execution, bool one_thread) const {
  if (!execution.cpu_affinity.empty()) {
    if (shared_)
      return invalid_argument(
          "cpu_affinity needs a process of the actor's own (Isolation::kProcess)");
    if (Status status = pin_process(execution.cpu_affinity); !status.ok()) return status;
  }
  std::size_t threads = execution.max_concurrency;
  for (const auto& [name, limit] : execution.concurrency_groups) threads += limit;
  if (threads > 1 && !one_thread) context_->executor.want_threads(threads);
  return {};
}

Status ActorHost::construct(ActorJob& job) {
  auto found = context_->registry.find(job.spec->class_name);
  if (!found.ok()) return found.status();
  const ActorActivity::Building shown = activity_.build(**found, steady_now());
  std::string signature;
  ObjectValue arguments;
  ExecutionOptions execution;
  Status status = decode_constructor(job.spec->constructor_args, context_->object_context,
                                     &signature, &arguments, &execution);
  if (!status.ok()) return status;
  if (status = prepare(execution, (*found)->has_coroutines()); !status.ok())
    return status.with_context(job.spec->class_name);
  const ActorMaker make_actor = context_->actor_makers((*found)->type(), signature);
  if (!make_actor) {
    return invalid_argument("this program makes no " + job.spec->class_name +
                            " from such arguments: it is not the program that called spawn");
  }
  Result<Buffer> bytes = argument_bytes(arguments, job.deadline);
  if (!bytes.ok()) return bytes.status();
  try {
    Decoder decoder(*std::move(bytes), arguments.refs, context_->object_context);
    const RunningCall running({{id_, nullptr, 0}, &(*found)->name(), &kConstructor});
    auto made = make_actor(decoder, job.deadline);
    if (!made.ok()) return made.status().with_context(job.spec->class_name);
    actor_ = *std::move(made);
    if (job.spec->saved_state) {
      try {
        status = restore_state_of(actor_.get(), (*found)->state_hooks(), *job.spec->saved_state,
                                  context_->object_context);
      } catch (...) {
        status = thrown().with_context("restore_state");
      }
      if (!status.ok()) {
        actor_.reset();
        return status.with_context(job.spec->class_name);
      }
    }
    if (job.spec->class_name == TaskRunner::kClassName) give_up_resources_while_waiting();
    saves_ = job.spec->max_restarts != 0 && (*found)->state_hooks();
    std::lock_guard lock(mutex_);
    activity_.show_actor();
    class_ = *found;
    lanes_.configure(execution, *class_);
    if (class_->has_coroutines())
      coroutines_ = std::make_unique<Coroutines>();
    else
      turns_max_ = lanes_.limit();
    return {};
  } catch (...) {
    return thrown().with_context("constructor of " + job.spec->class_name);
  }
}

// A task may wait for others that need what it has. It gives its share of the node back, and
// continues without one when they are done.
void ActorHost::give_up_resources_while_waiting() {
  context_->executor.set_on_long_wait([weak = std::weak_ptr(context_), id = id_] {
    if (auto context = weak.lock()) context->process.park(id);
  });
}

Status ActorHost::check_call(const ActorJob& job, Deadline now) const {
  if (job.channel->closed()) return cancelled("the caller gave up");
  if (now >= job.deadline)
    return deadline_exceeded("the call's time was up while it waited in line; it did not run");
  if (!actor_) return unavailable("the actor is not built");
  if (!job.method) {
    return invalid_argument(
        "class " + class_->name() +
        " of the actor's program has no method of this name and signature (it has " +
        std::to_string(class_->methods().size()) + " others)");
  }
  return {};
}

Status ActorHost::execute(ActorJob& job, const CallContext& context, InvokeOutput& output,
                          Deadline now) {
  if (Status status = check_call(job, now); !status.ok()) return status;
  Result<Buffer> bytes = argument_bytes(job.arguments, job.deadline);
  if (!bytes.ok()) return bytes.status().with_context("arguments");
  try {
    Decoder decoder(*std::move(bytes), job.arguments.refs, context_->object_context);
    std::shared_ptr<StreamSender> stream;
    if (job.method->is_stream) {
      if (job.call.stream_window == 0)
        return invalid_argument("the method yields values, and the call has no room for them");
      stream = std::make_shared<StreamSender>(
          StreamSender::Shared{context_->loop, context_->shut_down, context_->objects,
                               context_->held},
          job.channel, id_, job.call.sequence, job.call.stream_window, context);
      context_->active.set_stream(job.channel.get(), id_, job.call.sequence, stream);
    }
    const RunningCall running(
        {{id_, job.channel.get(), job.call.sequence}, &class_->name(), &job.method->name});
    Invocation invocation{actor_.get(), job.method->key, decoder, context, output};
    invocation.stream = stream.get();
    invocation.states = &context_->states;
    return job.method->invoke(invocation);
  } catch (...) {
    return thrown();
  }
}

ObjectValue ActorHost::store_result(Status& status, InvokeOutput& output, const CallContext& call) {
  if (!status.ok()) return {};
  Result<ObjectValue> stored =
      context_->objects.store(output.encoder, room_deadline(call.deadline()), call.stop_token());
  if (stored.ok()) return *std::move(stored);
  status = stored.status().with_context("result");
  return {};
}

void ActorHost::send_reply(std::unique_ptr<ActorJob> job, Status status, ObjectValue value,
                           Flush flush) {
  // What the result refers to must be settled before the caller hears of it; that may take other
  // calls, so no thread waits here.
  if (ObjectStatePtr blocker = first_unsettled(value.refs)) {
    auto later = [self = shared_from_this(), job = std::move(job),
                  value = std::move(value)]() mutable {
      self->send_reply(std::move(job), {}, std::move(value), Flush::kNow);
    };
    return blocker->then(std::move(later));
  }
  CallReply reply{.status = std::move(status),
                  .lends = value.refers(),
                  .actor = id_,
                  .sequence = job->call.sequence};
  Result<Buffer> meta = encode_reply(reply, value);
  if (!meta.ok()) {
    value = {};
    reply = {.status = meta.status().with_context("result")};
    meta = encode_reply(reply, value);
    CHECK(meta.ok());
  }
  Message message = reply_to(job->request, *std::move(meta), Payload(value.bytes));
  if (reply.lends && !context_->held.hold(*job->channel, id_, job->call.sequence, std::move(value)))
    return;
  if (Status sent = job->channel->send(std::move(message), flush);
      !sent.ok() && !job->channel->closed()) {
    // Too large, or the caller does not read: let it see a broken connection rather than wait.
    job->channel->close(sent.with_context("reply"));
  }
}

}  // namespace runtime
