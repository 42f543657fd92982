#include "runtime/call/actor_client.h"

#include <utility>

#include "runtime/call/actor_clients.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/lineage.h"
#include "runtime/call/outgoing_call.h"
#include "runtime/call/registry.h"
#include "runtime/call/stored_object.h"
#include "runtime/call/stream_state.h"
#include "runtime/core/timer.h"
#include "runtime/observe/activity_page.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

namespace {

/// How long the head may take to say what became of an actor; it may be asked about a hundred
/// thousand at once.
constexpr std::chrono::seconds kCausePatience{30};
/// For where it is. Asked again as long as calls wait; each of them ends at its own deadline.
constexpr std::chrono::seconds kAddressPatience{60};
/// Smaller results leave the block they were received in, which may be much larger.
constexpr std::size_t kCopiedBytesMax = 1024;

Buffer take_payload(const Message& message) {
  Buffer payload = message.payload.first();
  return payload.size() <= kCopiedBytesMax ? Buffer::copy_of(payload.bytes()) : payload;
}

Status connection_lost(const Status& why) {
  return unavailable("connection lost, the call may have run: " + why.message());
}

}  // namespace

/// Holds the mutex. What must not happen under it happens when it is released: calls are failed,
/// values destroyed, arguments waited for. Keeps the client alive till then, and beyond it as long
/// as there is work.
class ActorClient::Section {
 public:
  explicit Section(ActorClient& client)
      : client_(client.shared_from_this()), lock_(client.mutex_) {}
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();

  void fail(OutgoingCallPtr call, Status why) {
    failed_.push_back({std::move(call), std::move(why)});
  }
  std::vector<FailedCall>& failed() { return failed_; }
  std::vector<BlockedCall>& blocked() { return blocked_; }
  void drop(ObjectValue value) { dropped_.push_back(std::move(value)); }
  /// The actor's process, or the way to it, is gone.
  void drop_lent() {
    for (ObjectValue& value : client_->leases_.take_all_back())
      lingering_.push_back(std::move(value));
  }

 private:
  std::shared_ptr<ActorClient> client_;  // first: the mutex is in it
  std::vector<FailedCall> failed_;
  std::vector<BlockedCall> blocked_;
  std::vector<ObjectValue> dropped_;
  std::vector<ObjectValue> lingering_;
  std::unique_lock<std::mutex> lock_;
};

ActorClient::Section::~Section() {
  const CallQueue& queue = client_->queue_;
  std::vector<std::function<void()>> quiet;
  const bool is_quiet = queue.is_empty() && client_->numbers_.all_ended();
  if (queue.held() && (is_quiet || client_->is_closed())) quiet = client_->queue_.take_quiet();
  std::shared_ptr<ActorClient> idle;
  if (queue.is_empty() && !client_->leases_.lends_arguments())
    idle.swap(client_->self_while_busy_);
  else if (!client_->self_while_busy_)
    client_->self_while_busy_ = client_;
  lock_.unlock();
  for (const BlockedCall& blocked : blocked_) client_->when_settled(blocked);
  if (!lingering_.empty()) client_->context_->objects.linger(std::move(lingering_));
  for (const FailedCall& failed : failed_) failed.call->fail(failed.why);
  for (const auto& tell : quiet) tell();
}

ActorClient::ActorClient(CallerContextPtr context, std::shared_ptr<WorkerLink> worker,
                         const ActorAddress& address)
    : context_(std::move(context)),
      target_(address),
      queue_(numbers_, target_.is_out_of_order()),
      link_(*this, std::move(worker), address.incarnation) {}

ActorClient::~ActorClient() {
  if (context_->loop.is_forked()) {
    (void)new std::shared_ptr<Timer>(
        std::move(timer_));  // never destroyed: its loop's lock is not ours
    return;
  }
  link_.worker()->detach(id());  // no other thread has this client any more
  context_->clients.forget_client(id());
}

ActorAddress ActorClient::address() const {
  ActorAddress address;
  target_.describe(address);
  std::lock_guard lock(mutex_);
  address.incarnation = link_.incarnation();
  link_.worker()->describe(address);
  return address;
}

std::shared_ptr<const WorkerLink> ActorClient::worker() const {
  std::lock_guard lock(mutex_);
  return link_.worker();
}

std::uint64_t ActorClient::incarnation() const {
  std::lock_guard lock(mutex_);
  return link_.incarnation();
}

bool ActorClient::is_restarting() const {
  std::lock_guard lock(mutex_);
  return link_.is_resolving();
}

ObjectStatePtr ActorClient::call(std::type_index type, const MethodKey& key, Encoder& encoder,
                                 std::chrono::milliseconds timeout, std::int32_t retries) {
  return call(type, key, encoder, timeout, retries, nullptr);
}

ObjectStatePtr ActorClient::call_stream(std::type_index type, const MethodKey& key,
                                        Encoder& encoder, std::chrono::milliseconds timeout,
                                        std::shared_ptr<StreamState> stream) {
  // Never sent again: values that were taken would come twice.
  ObjectStatePtr result = call(type, key, encoder, timeout, 0, stream);
  result->then([stream, result = result.get()] { stream->end(result->failure()); });
  return result;
}

ObjectStatePtr ActorClient::call(std::type_index type, const MethodKey& key, Encoder& encoder,
                                 std::chrono::milliseconds timeout, std::int32_t retries,
                                 std::shared_ptr<StreamState> stream) {
  if (context_->loop.is_forked()) return context_->objects.failed(forked_status());
  Result<const MethodEntry*> method = target_.find_method(context_->registry, type, key);
  if (!method.ok()) return context_->objects.failed(method.status());
  const TimeLimit deadline(target_.limit(**method, timeout));
  if (!worker()->is_local()) {
    ObjectValue arguments;
    arguments.bytes = encoder.to_buffer();  // the frame carries them to the other node
    arguments.refs = referred_objects(encoder.take_refs());
    return submit(*method, std::move(arguments), deadline, retries, std::move(stream));
  }
  Result<ObjectValue> arguments =
      context_->objects.store(encoder, room_deadline(deadline.deadline));
  if (!arguments.ok())
    return context_->objects.failed(
        arguments.status().with_context("arguments of " + (*method)->name));
  return submit(*method, *std::move(arguments), deadline, retries, std::move(stream));
}

std::vector<ObjectStatePtr> ActorClient::call_all(std::span<ActorClient* const> clients,
                                                  std::type_index type, const MethodKey& key,
                                                  Encoder& encoder,
                                                  std::chrono::milliseconds timeout,
                                                  std::int32_t retries) {
  std::vector<ObjectStatePtr> results;
  if (clients.empty()) return results;
  const CallerContext& context = *clients.front()->context_;
  if (context.loop.is_forked()) {
    results.assign(clients.size(), context.objects.failed(forked_status()));
    return results;
  }
  // On other nodes too large arguments are read from the store: each node fetches them once,
  // however many members it has.
  Result<ObjectValue> arguments =
      context.objects.store(encoder, room_deadline(deadline_after(timeout)));
  for (ActorClient* client : clients) {
    const CallTarget& target = client->target_;
    Result<const MethodEntry*> method = target.find_method(context.registry, type, key);
    if (!method.ok())
      results.push_back(context.objects.failed(method.status()));
    else if (!arguments.ok())
      results.push_back(context.objects.failed(
          arguments.status().with_context("arguments of " + (*method)->name)));
    else
      results.push_back(
          client->submit(*method, *arguments, TimeLimit(target.limit(**method, timeout)), retries));
  }
  return results;
}

ActorClient::TimeLimit::TimeLimit(std::chrono::milliseconds time)
    : deadline(deadline_after(time)), timeout(time) {}

ObjectStatePtr ActorClient::submit(const MethodEntry* method, ObjectValue arguments,
                                   TimeLimit limit, std::int32_t retries,
                                   std::shared_ptr<StreamState> stream) {
  auto call = std::make_shared<OutgoingCall>();
  call->owner = shared_from_this();
  call->method = method;
  call->arguments = std::move(arguments);
  call->deadline = limit.deadline;
  call->timeout = limit.timeout;
  call->retries_left = retries;
  call->result = context_->objects.pending();
  call->result->set_producer(call);
  if (stream) stream->set_call(call);
  call->stream = std::move(stream);
  ObjectStatePtr result = call->result;

  Section section(*this);
  if (link_.is_closed()) {
    section.fail(std::move(call), link_.closed());
    return result;
  }
  if (const Status* held = queue_.held()) {
    section.fail(std::move(call), *held);
    return result;
  }
  queue_.push(std::move(call));
  pump(section);
  if (queue_.is_waiting()) arm_timer(limit.deadline);
  return result;
}

void ActorClient::pump(Section& section) {
  if (queue_.has_line()) link_.open();
  while (link_.takes_calls()) {
    const OutgoingCallPtr call = queue_.pop(section.blocked());
    if (!call) return;
    send(call, section);
  }
}

void ActorClient::when_settled(const BlockedCall& blocked) {
  blocked.blocker->then(
      [weak = weak_from_this(), blocker = blocked.blocker.get(), aside = blocked.aside] {
        auto self = weak.lock();
        if (!self) return;
        Section section(*self);
        self->queue_.on_settled(blocker, aside);
        self->pump(section);
      });
}

void ActorClient::hold_calls(Status why, std::function<void()> quiet) {
  Section section(*this);  // tells at its end, if nothing is outstanding
  queue_.hold(std::move(why), std::move(quiet));
}

void ActorClient::resume_calls() {
  Section section(*this);
  queue_.resume();
}

Status ActorClient::cancel(const OutgoingCallPtr& call, CancelMode mode) {
  if (context_->loop.is_forked()) return forked_status();
  std::shared_ptr<Channel> channel;
  bool shared = false;
  {
    Section section(*this);
    if (queue_.remove(call)) {
      section.fail(call, cancelled("the call was cancelled before it was sent"));
      pump(section);
      return {};
    }
    channel = call->channel;
    shared = link_.worker()->is_shared();
  }
  if (!channel) return {};  // it has failed
  const bool forced = mode == CancelMode::kForce && !shared;
  if (forced) call->forced = true;
  send_notice(
      *channel,
      {id(), call->sequence, forced ? CallNotice::Kind::kForceCancel : CallNotice::Kind::kCancel},
      Flush::kNow);
  if (mode != CancelMode::kForce || !shared) return {};
  return invalid_argument(
      describe() +
      " shares its process with other actors: a call that it runs is asked to end but cannot be "
      "forced to. That takes a separate process (Isolation::kProcess)");
}

void ActorClient::send(const OutgoingCallPtr& call, Section& section) {
  const Deadline now = steady_now();
  auto left = std::chrono::ceil<std::chrono::milliseconds>(call->deadline - now);
  if (left.count() <= 0) {
    return section.fail(call, call->late("the call's time was up before it could be sent"));
  }
  CallRequest request{
      .actor = id(),
      .incarnation = link_.incarnation(),
      .method = call->method->id,
      .deadline_ms = static_cast<std::uint64_t>(left.count()),
      .session = context_->session,
      .sequence = numbers_.last() + 1,
      .acknowledged = numbers_.ended_up_to(),
      .lends = call->arguments.refers(),
      .stream_window = call->stream ? call->stream->window() : 0,
  };
  Result<Buffer> meta = encode_call(request, call->arguments);
  if (!meta.ok()) return section.fail(call, meta.status());
  call->sequence = numbers_.take();
  call->channel = link_.channel();
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
  const bool records = context_->activity && context_->activity->records(now_ns);
  call->sent_ns = records ? now_ns : 0;
  if (records) call->sent_by = ActivityPage::thread_id();
  call->incarnation = link_.incarnation();
  link_.on_sent();
  if (call->stream) streams_.add(call->sequence, call->stream);
  Message message;
  message.kind = FrameKind::kCall;
  message.meta = *std::move(meta);
  message.payload = call->arguments.bytes;  // kept: it may have to be sent again
  if (request.lends) leases_.lend(call->sequence, call->arguments);
  link_.channel()->request(std::move(message), call->deadline, [this, call](Result<Message> reply) {
    on_reply(call, std::move(reply));  // the call keeps its owner
  });
}

std::shared_ptr<Channel> ActorClient::connect_to(WorkerLink& worker) {
  return worker.attach(id(), shared_from_this());
}

void ActorClient::on_connected(const WorkerLink* worker, Result<std::shared_ptr<Channel>> channel) {
  Section section(*this);
  // Else it was closed meanwhile, or the actor was started again elsewhere.
  if (!link_.is_connecting_to(worker)) return;
  if (channel.ok()) {
    link_.set_connected(*std::move(channel));
    return pump(section);
  }
  queue_.orphan_line();
  link_.ask(channel.status());
}

void ActorClient::on_channel_closed(const Channel* channel, Status reason) {
  Section section(*this);
  if (link_.channel() && link_.channel().get() != channel) return;
  section.drop_lent();
  if (!link_.is_open()) return;
  if (queue_.has_orphans() || queue_.has_line()) return link_.ask(std::move(reason));
  link_.reset();  // no call waits: the next one finds out
}

void ActorClient::ask_cause(CauseQuestion question) {
  arm_timer(queue_.earliest_deadline());  // the answer may take longer than the calls have
  const std::uint64_t incarnation = question.incarnation;
  context_->node.state(id(), incarnation, deadline_after(kCausePatience),
                       [self = shared_from_this(), question = std::move(question)](
                           const Result<ActorState>& state) { self->on_cause(question, state); });
}

void ActorClient::on_cause(const CauseQuestion& question, const Result<ActorState>& state) {
  Section section(*this);
  if (!link_.is_asking()) return;
  if (queue_.is_waiting() && link_.is_ending(question, state))
    return link_.ask(question.reason, question.incarnation);
  const CauseVerdict verdict = judge(question, state, describe());
  if (verdict.has_ended) return end(verdict.why, section);
  settle_orphans(verdict.why, verdict.restarts, section);
  link_.on_cause(question, verdict.restarts, queue_.has_line());
  pump(section);
}

void ActorClient::pause(std::chrono::milliseconds time) {
  context_->loop.post([weak = weak_from_this(), time] {
    auto self = weak.lock();
    if (!self) return;
    auto timer = std::make_shared<Timer>(self->context_->loop.executor(), time);
    timer->async_wait([weak, timer](const boost::system::error_code&) {
      if (auto client = weak.lock()) client->on_pause_over();
    });
  });
}

void ActorClient::on_pause_over() {
  Section section(*this);
  link_.on_pause_over();
  pump(section);
}

void ActorClient::settle_orphans(const Status& why, bool keep_unsent, Section& section) {
  if (queue_.settle_orphans(why, keep_unsent, section.failed()))
    arm_timer(queue_.earliest_deadline());
}

void ActorClient::end(const Status& why, Section& section) {
  link_.close(why);
  queue_.fail_all(why, section.failed());
  section.drop_lent();
}

void ActorClient::ask_address() {
  context_->node.resolve(id(), deadline_after(kAddressPatience),
                         [self = shared_from_this()](const Result<ActorAddress>& address) {
                           self->on_address(address);
                         });
}

void ActorClient::on_address(const Result<ActorAddress>& address) {
  Section section(*this);
  if (!link_.is_resolving()) return;
  if (address.ok() && address->incarnation > link_.incarnation()) move_to(*address, section);
  link_.on_address(address.status());
  if (link_.is_closed()) return queue_.fail_all(link_.closed(), section.failed());
  if (address.status().code() == ErrorCode::kUnavailable)
    queue_.fail_line(address.status(), section.failed());
  pump(section);
}

void ActorClient::move_to(const ActorAddress& newer, Section& section) {
  // A process that has ended may have had no time to say so.
  if (link_.move_to(context_->clients.link_for(context_, newer), newer.incarnation))
    section.drop_lent();
}

void ActorClient::adopt(const ActorAddress& newer) {
  std::shared_ptr<WorkerLink> older;
  {
    Section section(*this);
    if (link_.is_closed() || newer.incarnation <= link_.incarnation()) return;
    older = link_.worker();
    move_to(newer, section);
    if (older == link_.worker()) older = nullptr;
    if (!link_.is_asking()) {  // else it continues with the new address once it has its answer
      if (link_.is_open()) section.drop_lent();
      link_.reset();
      pump(section);
    }
  }
  // That process is gone, or cut off from the cluster: its replies are not to be waited for.
  if (older) older->close(unavailable("the actor was started again"));
}

void ActorClient::on_reply(const OutgoingCallPtr& call, Result<Message> reply) {
  call->record_end(!reply.ok());
  if (reply.ok()) return on_result(call, *std::move(reply));
  Status why = reply.status();
  if (why.code() == ErrorCode::kDeadlineExceeded) {
    send_notice(*call->channel, {id(), call->sequence, CallNotice::Kind::kCancel});
    why = call->late("no reply in time; the call may have run");
  }
  Section section(*this);
  const bool last_of_older = link_.on_answered(call->incarnation);
  if (why.code() == ErrorCode::kUnavailable || why.code() == ErrorCode::kCancelled) {
    if (!link_.is_closed()) return on_lost(call, why, section);
    why = link_.closed();
  }
  numbers_.end(call->sequence);
  // The actor may still get and keep what was lent to a call whose time is up; one that was never
  // sent it cannot.
  if (why.code() != ErrorCode::kDeadlineExceeded) section.drop(leases_.take_back(call->sequence));
  section.fail(call, why);
  if (last_of_older) pump(section);
}

void ActorClient::on_lost(const OutgoingCallPtr& call, const Status& why, Section& section) {
  if (link_.is_drained(call->channel)) {
    numbers_.end(call->sequence);
    return put_back(call, why);
  }
  queue_.add_orphan(call);
  arm_timer(call->deadline);
  // Usually on_channel_closed() is about to come; but not if this was sent on a connection that had
  // ended already.
  if (link_.is_idle()) return link_.ask(why);
  if (link_.is_asking() || call->channel == link_.channel()) return;
  settle_orphans(connection_lost(why), true, section);
  pump(section);
}

void ActorClient::on_result(const OutgoingCallPtr& call, Message reply) {
  bool last_of_older = false;
  {
    Section section(*this);
    last_of_older = link_.on_answered(call->incarnation);
    link_.on_reply();
    numbers_.end(call->sequence);
  }
  CallReply decoded;
  ObjectValue value;
  Status status = context_->objects.decode_reply(
      reply.meta, take_payload(reply), [&] { return hold_result(call->channel, call->sequence); },
      &decoded, &value);
  if (status.ok() && decoded.gone) {
    Section section(*this);
    return link_.is_closed() ? section.fail(call, link_.closed()) : put_back(call, decoded.status);
  }
  if (last_of_older) {
    Section section(*this);
    pump(section);
  }
  if (status.ok()) status = decoded.status;
  // The actor's clock was faster than ours.
  const bool late = status.code() == ErrorCode::kDeadlineExceeded && steady_now() >= call->deadline;
  if (late) status = call->late(std::string(status.message()));
  if (!status.ok()) return call->fail(status);
  if (value.stored) value.stored->set_lineage(std::make_shared<CallLineage>(call->describe()));
  call->result->fulfil(std::move(value));
}

std::shared_ptr<const void> ActorClient::hold_result(const std::shared_ptr<Channel>& from,
                                                     std::uint64_t lend_id) {
  std::shared_ptr<ResultLeases> leases(shared_from_this(), &leases_);
  return ResultLeases::hold(std::move(leases), from, id(), lend_id);
}

void ActorClient::put_back(const OutgoingCallPtr& call, const Status& reason) {
  queue_.put_back(call);
  arm_timer(call->deadline);
  // Of the incarnation that refused it: the next one may be known already, and nothing is to be
  // asked of that. Others that were refused come back meanwhile.
  if (link_.is_open() || link_.is_idle()) link_.ask(reason, call->incarnation);
}

void ActorClient::tell_taken(const OutgoingCallPtr& call, std::uint64_t count) {
  CallNotice notice;
  std::shared_ptr<Channel> channel;
  {
    std::lock_guard lock(mutex_);
    channel = call->channel;
    notice = {id(), call->sequence, CallNotice::Kind::kStreamTaken, count};
  }
  send_notice(*channel, notice);
}

void ActorClient::on_stream_item(const std::shared_ptr<Channel>& from, std::uint64_t sequence,
                                 const Message& message) {
  std::shared_ptr<StreamState> stream;
  {
    std::lock_guard lock(mutex_);
    stream = streams_.find(sequence);
  }
  Result<ObjectValue> value = context_->objects.decode_stream_item(
      message.meta, take_payload(message),
      [&](std::uint64_t lend_id) { return hold_result(from, lend_id); });
  if (!stream) return;  // its reader has given up; the value's loan has told the actor
  if (value.ok())
    stream->put(*std::move(value));
  else
    stream->end(value.status());
}

void ActorClient::on_notice(const std::shared_ptr<Channel>& from, const CallNotice& notice,
                            const Message& message) {
  if (notice.kind == CallNotice::Kind::kDrained) {
    std::lock_guard lock(mutex_);
    link_.set_drained(from);
    return;
  }
  if (notice.kind == CallNotice::Kind::kStreamItem)
    return on_stream_item(from, notice.sequence, message);
  if (notice.kind != CallNotice::Kind::kArgumentsReleased) return;
  Section section(*this);
  section.drop(leases_.take_back(notice.sequence));
}

void ActorClient::visit_lent(const std::function<void(const ObjectLocation&, bool)>& visit) const {
  std::lock_guard lock(mutex_);
  leases_.visit(numbers_, visit);
}

void ActorClient::arm_timer(Deadline at) {
  if (at >= timer_at_) return;
  timer_at_ = at;
  if (!timer_) timer_ = std::make_shared<Timer>(context_->loop.executor());
  context_->loop.post([timer = timer_, weak = weak_from_this(), at] {
    timer->expires_at(at);
    timer->async_wait([weak, timer](const boost::system::error_code& ec) {
      auto self = weak.lock();
      if (self && !ec) self->on_timer();
    });
  });
}

void ActorClient::on_timer() {
  Section section(*this);
  timer_at_ = Deadline::max();
  queue_.expire(steady_now(), link_.is_resolving(), section.failed());
  pump(section);
  arm_timer(queue_.earliest_deadline());
}

void ActorClient::close(Status reason) {
  Section section(*this);
  if (!link_.is_closed()) end(reason, section);
}

}  // namespace runtime
