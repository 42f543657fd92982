#include "runtime/actor/actor_host.h"

#include <exception>

#include "runtime/actor/process.h"
#include "runtime/actor/stored_object.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

/// Tells the caller that nothing here refers to its arguments any more, when the last state made from them goes.
class ArgumentsLease {
 public:
  ArgumentsLease(std::weak_ptr<Channel> channel, ActorId actor, std::uint64_t sequence)
      : channel_(std::move(channel)), actor_(actor), sequence_(sequence) {}
  ArgumentsLease(const ArgumentsLease&) = delete;
  ArgumentsLease& operator=(const ArgumentsLease&) = delete;
  ~ArgumentsLease() {
    auto channel = channel_.lock();
    if (!channel) return;
    Message notice;
    notice.kind = FrameKind::kCancel;
    notice.meta = encode_notice({actor_, sequence_, CallNotice::Kind::kArgumentsReleased});
    (void)channel->send(std::move(notice), Flush::kSoon);  // not sent: the connection is gone, and the caller knows
  }

 private:
  std::weak_ptr<Channel> channel_;
  ActorId actor_;
  std::uint64_t sequence_;
};

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

/// A call, or the constructor.
struct ActorHost::Job {
  // Of a call.
  std::shared_ptr<Channel> channel;
  Message request;  // without its payload; its id and kind make the reply
  CallRequest call;
  bool cancelled = false;
  // Of a constructor.
  ActorSpec spec;
  std::function<void(Status)> answer;

  ObjectValue arguments;
  Deadline deadline = Deadline::max();
};

ActorHost::ActorHost(std::shared_ptr<Process> process, Runtime& runtime, ActorHostOptions options)
    : process_(std::move(process)), runtime_(runtime), options_(options), work_(process_->loop()) {}

ActorHost::~ActorHost() = default;

void ActorHost::run() {
  for (;;) {
    // The result does not matter: a stopped loop sets nothing, and stop() is what ends this.
    if (!process_->loop().run_until(work_, Deadline::max())) break;
    work_.reset();
    bool last = false;
    while (auto job = pop(&last)) {
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
    std::lock_guard lock(mutex_);
    if (stopping_) break;
  }
  std::deque<std::unique_ptr<Job>> dropped;
  std::map<HeldKey, ObjectValue> held;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(line_);
    held.swap(held_);
  }
  dropped.clear();
  actor_.reset();
}

void ActorHost::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  work_.set();
}

void ActorHost::push(std::unique_ptr<Job> job) {
  std::unique_ptr<Job> refused;
  {
    std::lock_guard lock(mutex_);
    if (line_.size() < options_.calls_max && !stopping_) {
      line_.push_back(std::move(job));
      work_.set();
      return;
    }
    refused = std::move(job);
  }
  if (!refused->channel) return;
  send_reply(std::move(refused), resource_exhausted(std::to_string(options_.calls_max) + " calls wait already"), {}, Flush::kSoon);
}

std::unique_ptr<ActorHost::Job> ActorHost::pop(bool* last) {
  std::lock_guard lock(mutex_);
  if (line_.empty() || stopping_) return nullptr;
  auto job = std::move(line_.front());
  line_.pop_front();
  *last = line_.empty();
  return job;
}

void ActorHost::build(ActorSpec spec, std::uint64_t incarnation, std::function<void(Status)> answer) {
  {
    std::lock_guard lock(mutex_);
    id_ = spec.actor;
    incarnation_ = incarnation;
  }
  auto job = std::make_unique<Job>();
  job->spec = std::move(spec);
  job->answer = std::move(answer);
  push(std::move(job));
}

Status ActorHost::construct(Job& job) {
  auto found = process_->registry().find(job.spec.class_name);
  if (!found.ok()) return found.status();
  std::string signature;
  ObjectValue arguments;
  Status status = decode_constructor(job.spec.constructor_args, process_, &signature, &arguments);
  if (!status.ok()) return status;
  const ConstructorEntry* constructor = find_constructor((*found)->type(), signature);
  if (!constructor) {
    return invalid_argument("this program makes no " + job.spec.class_name + " from such arguments: it is not the program that called spawn");
  }
  Buffer bytes = arguments.bytes;
  if (arguments.stored) {
    Result<Buffer> opened = arguments.stored->open(job.deadline);
    if (!opened.ok()) return opened.status();
    bytes = *std::move(opened);
  }
  try {
    Decoder decoder(std::move(bytes), arguments.refs, process_);
    auto made = constructor->construct(runtime_, decoder, job.deadline);
    if (!made.ok()) return made.status().with_context(job.spec.class_name);
    actor_ = *std::move(made);
    class_ = *found;
    return {};
  } catch (...) {
    return thrown().with_context("constructor of " + job.spec.class_name);
  }
}

void ActorHost::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  if (message.kind == FrameKind::kCall) return accept_call(channel, std::move(message));
  if (message.kind != FrameKind::kCancel) return;
  Result<CallNotice> notice = decode_notice(message.meta);
  if (!notice.ok()) return;
  ObjectValue released;  // dropped outside of the lock
  std::lock_guard lock(mutex_);
  if (notice->kind == CallNotice::Kind::kResultReleased) {
    if (auto found = held_.find({channel.get(), notice->sequence}); found != held_.end()) {
      released = std::move(found->second);
      held_.erase(found);
    }
  } else if (notice->kind == CallNotice::Kind::kCancel) {
    for (auto& job : line_) {
      if (job->channel == channel && job->call.sequence == notice->sequence) job->cancelled = true;
    }
  }
}

void ActorHost::accept_call(const std::shared_ptr<Channel>& channel, Message message) {
  auto job = std::make_unique<Job>();
  Status status = decode_call(
      message.meta, message.payload.first(), process_,
      [&](const CallRequest& call) { return std::make_shared<const ArgumentsLease>(channel, call.actor, call.sequence); },
      &job->call, &job->arguments);
  if (status.ok()) {
    std::lock_guard lock(mutex_);
    if (job->call.actor != id_) {
      status = not_found("this process runs no actor " + job->call.actor.short_hex());
    } else if (job->call.incarnation != 0 && job->call.incarnation != incarnation_) {
      status = unavailable("the actor was started again since; its handle is out of date");
    }
  }
  job->channel = channel;
  job->deadline = deadline_after(std::chrono::milliseconds(std::min<std::uint64_t>(job->call.deadline_ms, 1ull << 40)));
  job->request.kind = message.kind;
  job->request.id = message.id;
  if (status.ok()) return push(std::move(job));
  send_reply(std::move(job), std::move(status), {}, Flush::kSoon);
}

void ActorHost::on_channel_closed(const Channel* channel) {
  std::vector<ObjectValue> released;  // dropped outside of the lock
  std::lock_guard lock(mutex_);
  for (auto at = held_.lower_bound({channel, 0}); at != held_.end() && at->first.first == channel;) {
    released.push_back(std::move(at->second));
    at = held_.erase(at);
  }
  for (auto& job : line_) {
    if (job->channel.get() == channel) job->cancelled = true;
  }
}

Status ActorHost::execute(Job& job, InvokeOutput& output) {
  if (job.cancelled) return cancelled("the caller gave up");
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
    Decoder decoder(std::move(bytes), job.arguments.refs, process_);
    return method->invoke(actor_.get(), method->key, decoder, job.deadline, output);
  } catch (...) {
    return thrown();
  }
}

void ActorHost::reply(std::unique_ptr<Job> job, Status status, InvokeOutput& output, Flush flush) {
  ObjectValue value;
  if (status.ok()) {
    Result<ObjectValue> stored = process_->store(output.encoder);
    if (stored.ok()) value = *std::move(stored);
    else status = stored.status().with_context("result");
  }
  send_reply(std::move(job), std::move(status), std::move(value), flush);
}

void ActorHost::send_reply(std::unique_ptr<Job> job, Status status, ObjectValue value, Flush flush) {
  // What the result refers to must be settled before the caller hears of it; that may take other calls, so nobody waits here.
  for (const ObjectStatePtr& ref : value.refs) {
    if (ref->is_settled()) continue;
    ObjectStatePtr blocker = ref;
    auto later = [this, job = std::move(job), value = std::move(value)]() mutable {
      send_reply(std::move(job), {}, std::move(value), Flush::kNow);
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
  if (reply.lends) {
    std::lock_guard lock(mutex_);
    if (job->channel->closed()) return;
    held_.emplace(HeldKey{job->channel.get(), job->call.sequence}, std::move(value));
  }
  if (Status sent = job->channel->send(std::move(message), flush); !sent.ok() && !job->channel->closed()) {
    // Too large, or the caller does not read: let it see a broken connection rather than wait.
    job->channel->close(sent.with_context("reply"));
  }
}

}  // namespace runtime
