#include "runtime/worker/actor_table.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "runtime/call/call_wire.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"
#include "runtime/worker/stream_sender.h"

namespace runtime {

namespace {

// A call that does not end must not keep its actor from beginning again.
constexpr std::chrono::seconds kEndTime{1};

/// Tells the caller that nothing here refers to its arguments any more, when the last state made
/// from them goes.
class ArgumentsLoan {
 public:
  ArgumentsLoan(std::weak_ptr<Channel> channel, ActorId actor, std::uint64_t sequence)
      : channel_(std::move(channel)), actor_(actor), sequence_(sequence) {}
  ArgumentsLoan(const ArgumentsLoan&) = delete;
  ArgumentsLoan& operator=(const ArgumentsLoan&) = delete;
  ~ArgumentsLoan() {
    if (auto channel = channel_.lock())
      send_notice(*channel, {actor_, sequence_, CallNotice::Kind::kArgumentsReleased});
  }

 private:
  std::weak_ptr<Channel> channel_;
  ActorId actor_;
  std::uint64_t sequence_;
};

}  // namespace

struct ActorTable::Ending {
  explicit Ending(EventLoop& loop, std::uint64_t of) : incarnation(of), timer(loop.context()) {}

  std::uint64_t incarnation;           // of the latest self that has not been destroyed
  std::weak_ptr<ActorHost> host;       // of that one
  std::function<void()> next;          // the start that waits; empty: none does
  std::function<void(Status)> refuse;  // answers it instead
  std::uint64_t next_incarnation = 0;
  Timer timer;  // how long it waits
};

ActorTable::ActorTable(std::shared_ptr<const HostContext> context) : context_(std::move(context)) {}
ActorTable::~ActorTable() = default;

void ActorTable::build(ActorSpec spec, std::uint64_t incarnation,
                       std::function<void(Status)> answer) {
  const ActorId id = spec.actor;
  if (auto found = hosts_.find(id); found != hosts_.end()) {
    if (found->second->incarnation() >= incarnation)
      return answer(invalid_argument("actor " + id.short_hex() + " is in this process already"));
    stop(id, found->second->incarnation(), {});
  }
  auto ending = endings_.find(id);
  if (ending == endings_.end()) return begin(std::move(spec), incarnation, std::move(answer));
  Ending& last = *ending->second;
  if (last.next && last.next_incarnation >= incarnation)
    return answer(
        invalid_argument("actor " + id.short_hex() + " is about to begin in this process already"));
  if (auto refuse = std::exchange(last.refuse, nullptr))
    refuse(cancelled("the actor was started again"));
  last.next_incarnation = incarnation;
  last.refuse = answer;
  last.next = [this, spec = std::move(spec), incarnation, answer = std::move(answer)]() mutable {
    begin(std::move(spec), incarnation, std::move(answer));
  };
  last.timer.expires_after(kEndTime);
  last.timer.async_wait(
      [self = weak_from_this(), id, of = last.incarnation](boost::system::error_code ec) {
        if (auto table = self.lock(); table && !ec) table->give_up(id, of);
      });
}

void ActorTable::begin(ActorSpec spec, std::uint64_t incarnation,
                       std::function<void(Status)> answer) {
  const ActorId id = spec.actor;
  auto host = std::make_shared<ActorHost>(context_, id, incarnation, spec.shared);
  shared_ = shared_ || spec.shared;
  hosts_[id] = host;
  // In its own process, threads that the actor starts spawn for it; in a shared one, only
  // threads that run actors do.
  context_->process.set_resident(shared_ ? ActorInstance{} : ActorInstance{id, incarnation});
  host->build(std::move(spec), [self = weak_from_this(), id, incarnation,
                                answer = std::move(answer)](Status built) {
    answer(built);
    if (built.ok()) return;
    // On the actor's thread; the table lives on the loop.
    if (auto table = self.lock())
      table->context_->loop.post([table, id, incarnation] { table->stop(id, incarnation, {}); });
  });
  if (drains_) host->tell_of_drain();
}

void ActorTable::tell_of_drain() {
  if (std::exchange(drains_, true)) return;
  for (const auto& [id, host] : hosts_) host->tell_of_drain();
}

void ActorTable::stop(ActorId actor, std::uint64_t incarnation, std::function<void()> done) {
  give_up_start(actor, incarnation);
  auto found = hosts_.find(actor);
  if (found == hosts_.end() || found->second->incarnation() != incarnation) {
    if (done) done();
    return;
  }
  std::shared_ptr<ActorHost> host = std::move(found->second);
  hosts_.erase(found);
  end(host, std::move(done));
}

void ActorTable::give_up_start(ActorId actor, std::uint64_t incarnation) {
  const auto ending = endings_.find(actor);
  if (ending == endings_.end() || !ending->second->next ||
      ending->second->next_incarnation != incarnation)
    return;
  ending->second->timer.cancel();
  ending->second->next = nullptr;
  std::exchange(ending->second->refuse,
                nullptr)(cancelled("the actor was ended before it was built"));
}

void ActorTable::end(const std::shared_ptr<ActorHost>& host, std::function<void()> done) {
  const ActorId actor = host->id();
  const std::uint64_t incarnation = host->incarnation();
  auto ending = std::make_unique<Ending>(context_->loop, incarnation);
  ending->host = host;
  endings_.insert_or_assign(actor, std::move(ending));
  host->stop([self = weak_from_this(), actor, incarnation, done = std::move(done)] {
    if (done) done();
    // On the actor's thread.
    if (auto table = self.lock())
      table->context_->loop.post(
          [table, actor, incarnation] { table->on_ended(actor, incarnation); });
  });
}

void ActorTable::give_up(ActorId actor, std::uint64_t incarnation) {
  auto found = endings_.find(actor);
  if (found == endings_.end() || found->second->incarnation != incarnation) return;
  if (auto host = found->second->host.lock()) {
    std::vector<std::shared_ptr<Channel>> open;
    for (const auto& [serial, weak] : channels_) {
      if (auto channel = weak.lock()) open.push_back(std::move(channel));
    }
    host->abandon(open);
  }
  on_ended(actor, incarnation);
}

void ActorTable::on_ended(ActorId actor, std::uint64_t incarnation) {
  auto found = endings_.find(actor);
  if (found == endings_.end() || found->second->incarnation != incarnation) return;
  const std::unique_ptr<Ending> ending = std::move(found->second);
  endings_.erase(found);
  if (ending->next) ending->next();
}

void ActorTable::stop_after_calls(ActorId actor, std::uint64_t incarnation,
                                  std::function<void()> done) {
  give_up_start(actor, incarnation);
  auto found = hosts_.find(actor);
  if (found == hosts_.end() || found->second->incarnation() != incarnation) return done();
  found->second->stop_after_calls(
      [self = weak_from_this(), actor, incarnation, done = std::move(done)] {
        auto table = self.lock();
        if (!table) return done();
        table->context_->loop.post([table, actor, incarnation, done] {
          table->stop(actor, incarnation, {});
          table->tell_drained(actor);
          done();
        });
      });
}

void ActorTable::on_channel(const std::shared_ptr<Channel>& channel) {
  channels_.emplace(channel->serial(), channel);
  if (!drained_.is_none())
    send_notice(*channel, {drained_, 0, CallNotice::Kind::kDrained}, Flush::kNow);
}

void ActorTable::tell_drained(ActorId actor) {
  if (!shared_)
    drained_ =
        actor;  // this process ends, and takes no more calls to answer that the actor has ended
  for (const auto& [serial, weak] : channels_) {
    if (auto channel = weak.lock())
      send_notice(*channel, {actor, 0, CallNotice::Kind::kDrained}, Flush::kNow);
  }
}

void ActorTable::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  if (message.kind == FrameKind::kCall) return accept_call(channel, std::move(message));
  if (message.kind != FrameKind::kCancel) return;
  Result<CallNotice> notice = decode_notice(message.meta);
  if (!notice.ok()) return;
  if (notice->kind == CallNotice::Kind::kStreamTaken) {
    if (auto stream = context_->active.stream(channel.get(), notice->actor, notice->sequence))
      stream->on_taken(notice->taken);
  } else if (notice->kind == CallNotice::Kind::kWaits) {
    if (auto found = hosts_.find(notice->actor); found != hosts_.end())
      found->second->on_waits(channel.get(), notice->sequence, notice->waits);
  } else if (notice->kind == CallNotice::Kind::kResultReleased) {
    context_->held.release(channel.get(), notice->actor, notice->sequence);
  } else if (notice->kind == CallNotice::Kind::kCancel ||
             notice->kind == CallNotice::Kind::kForceCancel) {
    const CancelMode mode = notice->kind == CallNotice::Kind::kForceCancel
                                ? CancelMode::kForce
                                : CancelMode::kCooperative;
    if (auto found = hosts_.find(notice->actor); found != hosts_.end())
      found->second->cancel(channel.get(), notice->sequence, mode);
  }
}

void ActorTable::on_channel_closed(const Channel* channel) {
  channels_.erase(channel->serial());
  context_->objects.linger(context_->held.release_all(channel));
  context_->active.cancel_all(channel);
}

void ActorTable::accept_call(const std::shared_ptr<Channel>& channel, Message message) {
  auto job = std::make_unique<ActorJob>();
  Status status = decode_call(
      message.meta, message.payload.first(), context_->object_context,
      [&](const CallRequest& call) {
        return std::make_shared<const ArgumentsLoan>(channel, call.actor, call.sequence);
      },
      &job->call, &job->arguments);
  job->channel = channel;
  job->deadline = deadline_after(
      std::chrono::milliseconds(std::min<std::uint64_t>(job->call.deadline_ms, 1ull << 40)));
  job->request.kind = message.kind;
  job->request.id = message.id;
  if (!status.ok()) return refuse_call(*job, std::move(status), false, Flush::kSoon);
  auto found = hosts_.find(job->call.actor);
  if (found == hosts_.end()) {
    return refuse_call(*job, not_found("this process runs no actor " + job->call.actor.short_hex()),
                       true, Flush::kSoon);
  }
  if (job->call.incarnation != 0 && job->call.incarnation != found->second->incarnation()) {
    return refuse_call(*job,
                       not_found("this incarnation of the actor has ended; another has started"),
                       true, Flush::kSoon);
  }
  found->second->push(std::move(job));
}

void ActorTable::clear() {
  for (auto& [id, host] : std::exchange(hosts_, {})) host->stop_at_rest();
  // Open connections hold this table, and through it the process that drives them.
  context_->loop.post([self = shared_from_this()] {
    for (auto& [actor, ending] : std::exchange(self->endings_, {})) {
      if (ending->refuse) ending->refuse(cancelled("the worker process ends"));
    }
    for (auto& [serial, weak] : std::exchange(self->channels_, {})) {
      if (auto channel = weak.lock()) channel->close(unavailable("the worker process ends"));
    }
  });
}

}  // namespace runtime
