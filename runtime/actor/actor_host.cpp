#include "runtime/actor/actor_host.h"

#include <exception>
#include <utility>

#include "runtime/actor/actor_executor.h"
#include "runtime/actor/process.h"
#include "runtime/actor/stored_object.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

/// The exception being handled, as what a caller is told. Call it in a catch block.
Status thrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    return task_failed(std::string("threw: ") + e.what());
  } catch (...) {
    return task_failed("threw something that is no std::exception");
  }
}

}  // namespace

void refuse_call(const ActorJob& job, Status why, bool gone, Flush flush) {
  Result<Buffer> meta = encode_reply({.status = std::move(why), .gone = gone}, {});
  CHECK(meta.ok());
  (void)job.channel->send(reply_to(job.request, *std::move(meta)), flush);  // not sent: the connection is gone, and the caller knows
}

bool ActorHost::run(std::size_t jobs_max) {
  bool last = false;
  for (std::size_t i = 0; i < jobs_max; ++i) {
    auto job = pop(&last);
    if (!job) return false;
    if (job->answer) {
      Status status = construct(*job);
      job->answer(std::move(status));
      continue;
    }
    InvokeOutput output;
    Status status = execute(*job, output);
    // While more calls wait, replies gather; the last one takes them along.
    reply(std::move(job), std::move(status), output, last ? Flush::kNow : Flush::kSoon);
  }
  return true;
}

std::unique_ptr<ActorJob> ActorHost::pop(bool* last) {
  {
    std::lock_guard lock(mutex_);
    if (!stopping_) {
      auto job = line_.pop();
      *last = line_.empty();
      if (!job) scheduled_ = false;
      return job;
    }
  }
  finish();
  return nullptr;
}

void ActorHost::finish() {
  actor_.reset();
  JobLine dropped;
  std::function<void()> stopped;
  {
    std::lock_guard lock(mutex_);
    scheduled_ = false;
    while (auto job = line_.pop()) dropped.push(std::move(job));
    stopped = std::move(stopped_);
  }
  while (auto job = dropped.pop()) {
    if (job->answer) job->answer(cancelled("the actor was ended before it was built"));
    else refuse_call(*job, not_found("the actor has ended"), true, dropped.empty() ? Flush::kNow : Flush::kSoon);
  }
  if (stopped) stopped();
}

void ActorHost::stop(std::function<void()> done) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    first = !std::exchange(stopping_, true);
    if (first) {
      stopped_ = std::move(done);
      if (std::exchange(scheduled_, true)) return;  // whoever runs it sees
    }
  }
  if (first) context_->executor.post(shared_from_this());
  else if (done) done();
}

void ActorHost::stop_at_rest() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  finish();
}

void ActorHost::push(std::unique_ptr<ActorJob> job) {
  bool gone = false;
  {
    std::lock_guard lock(mutex_);
    gone = stopping_;
    if (!gone && line_.size() < context_->options.calls_max) {
      line_.push(std::move(job));
      if (std::exchange(scheduled_, true)) return;
    }
  }
  if (!job) return context_->executor.post(shared_from_this());
  if (gone) refuse_call(*job, not_found("the actor has ended"), true, Flush::kSoon);
  else refuse_call(*job, resource_exhausted(std::to_string(context_->options.calls_max) + " calls wait already"), false, Flush::kSoon);
}

void ActorHost::cancel(const Channel* channel, std::uint64_t sequence) {
  std::lock_guard lock(mutex_);
  line_.for_each([&](ActorJob& job) {
    if (job.channel.get() == channel && job.call.sequence == sequence) job.cancelled = true;
  });
}

void ActorHost::build(ActorSpec spec, std::function<void(Status)> answer) {
  auto job = std::make_unique<ActorJob>();
  job->spec = std::make_unique<const ActorSpec>(std::move(spec));
  job->answer = std::move(answer);
  push(std::move(job));
}

Status ActorHost::construct(ActorJob& job) {
  auto found = context_->process->registry().find(job.spec->class_name);
  if (!found.ok()) return found.status();
  std::string signature;
  ObjectValue arguments;
  Status status = decode_constructor(job.spec->constructor_args, context_->process, &signature, &arguments);
  if (!status.ok()) return status;
  const ConstructorEntry* constructor = find_constructor((*found)->type(), signature);
  if (!constructor) {
    return invalid_argument("this program makes no " + job.spec->class_name + " from such arguments: it is not the program that called spawn");
  }
  Buffer bytes = arguments.bytes;
  if (arguments.stored) {
    Result<Buffer> opened = arguments.stored->open(job.deadline);
    if (!opened.ok()) return opened.status();
    bytes = *std::move(opened);
  }
  try {
    Decoder decoder(std::move(bytes), arguments.refs, context_->process);
    auto made = constructor->construct(context_->runtime, decoder, job.deadline);
    if (!made.ok()) return made.status().with_context(job.spec->class_name);
    actor_ = *std::move(made);
    class_ = *found;
    return {};
  } catch (...) {
    return thrown().with_context("constructor of " + job.spec->class_name);
  }
}

Status ActorHost::execute(ActorJob& job, InvokeOutput& output) {
  if (job.cancelled || job.channel->closed()) return cancelled("the caller gave up");
  if (std::chrono::steady_clock::now() >= job.deadline) return deadline_exceeded("the call's time was up while it waited in line; it did not run");
  if (!actor_) return unavailable("the actor is not built");
  const MethodEntry* method = class_->find(job.call.method);
  if (!method) {
    return invalid_argument("class " + class_->name() + " of the actor's program has no method of this name and signature (it has " +
                            std::to_string(class_->methods().size()) + " others)");
  }
  Buffer bytes = std::move(job.arguments.bytes);
  if (job.arguments.stored) {
    Result<Buffer> opened = job.arguments.stored->open(job.deadline);
    if (!opened.ok()) return opened.status().with_context("arguments");
    bytes = *std::move(opened);
  }
  try {
    Decoder decoder(std::move(bytes), job.arguments.refs, context_->process);
    return method->invoke(actor_.get(), method->key, decoder, job.deadline, output);
  } catch (...) {
    return thrown();
  }
}

void ActorHost::reply(std::unique_ptr<ActorJob> job, Status status, InvokeOutput& output, Flush flush) {
  ObjectValue value;
  if (status.ok()) {
    Result<ObjectValue> stored = context_->process->store(output.encoder);
    if (stored.ok()) value = *std::move(stored);
    else status = stored.status().with_context("result");
  }
  send_reply(std::move(job), std::move(status), std::move(value), flush);
}

void ActorHost::send_reply(std::unique_ptr<ActorJob> job, Status status, ObjectValue value, Flush flush) {
  // What the result refers to must be settled before the caller hears of it; that may take other calls, so nobody waits here.
  for (const ObjectStatePtr& ref : value.refs) {
    if (ref->is_settled()) continue;
    ObjectStatePtr blocker = ref;
    auto later = [self = shared_from_this(), job = std::move(job), value = std::move(value)]() mutable {
      self->send_reply(std::move(job), {}, std::move(value), Flush::kNow);
    };
    return blocker->then(std::move(later));
  }
  CallReply reply{.status = std::move(status), .lends = value.refers()};
  Result<Buffer> meta = encode_reply(reply, value);
  if (!meta.ok()) {
    value = {};
    reply = {.status = meta.status().with_context("result")};
    meta = encode_reply(reply, value);
    CHECK(meta.ok());
  }
  Message message = reply_to(job->request, *std::move(meta), Payload(value.bytes));
  if (reply.lends && !context_->held.hold(*job->channel, id_, job->call.sequence, std::move(value))) return;
  if (Status sent = job->channel->send(std::move(message), flush); !sent.ok() && !job->channel->closed()) {
    // Too large, or the caller does not read: let it see a broken connection rather than wait.
    job->channel->close(sent.with_context("reply"));
  }
}

}  // namespace runtime
