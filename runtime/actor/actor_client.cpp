#include "runtime/actor/actor_client.h"

#include <algorithm>
#include <cstring>

#include "runtime/actor/call_wire.h"
#include "runtime/actor/lineage.h"
#include "runtime/actor/outgoing_call.h"
#include "runtime/actor/process.h"
#include "runtime/actor/registry.h"
#include "runtime/actor/stored_object.h"
#include "runtime/actor/stream_state.h"
#include "runtime/actor/worker_link.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/node/actor_directory.h"
#include "runtime/transport/channel.h"

namespace runtime {

namespace {
/// How long the head may take to say what became of an actor; it may be asked about a hundred
/// thousand at once.
constexpr std::chrono::seconds kCausePatience{30};
}  // namespace

ObjectStatePtr OutgoingCall::blocker() const { return first_unsettled(arguments.refs); }

/// While no calls may be made.
struct ActorClient::Hold {
  Status why;
  std::size_t holders = 0;
  std::vector<std::function<void()>> quiet;  // to be called
};

/// Keeps the objects of a result alive at the actor's process, by telling it when the last state
/// that came with the result is gone. The process may outlive the actor, when it is shared; with
/// the connection that the result came over it forgets the result.
class ActorClient::ResultLease {
 public:
  ResultLease(std::shared_ptr<ActorClient> client, std::weak_ptr<Channel> channel,
              std::uint64_t sequence)
      : client_(std::move(client)), channel_(std::move(channel)), sequence_(sequence) {
    ++client_->results_held_;
  }
  ResultLease(const ResultLease&) = delete;
  ResultLease& operator=(const ResultLease&) = delete;
  ~ResultLease() {
    --client_->results_held_;
    if (auto channel = channel_.lock())
      send_notice(*channel, {client_->id_, sequence_, CallNotice::Kind::kResultReleased});
  }

 private:
  std::shared_ptr<ActorClient> client_;
  std::weak_ptr<Channel> channel_;
  std::uint64_t sequence_;
};

/// Holds the mutex; calls that fail meanwhile are settled, and what is dropped is destroyed, when
/// it is released. Keeps the client alive till then, and beyond it as long as there is work.
class ActorClient::Section {
 public:
  explicit Section(ActorClient& client)
      : client_(client.shared_from_this()), lock_(client.mutex_) {}
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    const bool busy =
        client_->is_waiting() || !client_->orphans_.empty() || !client_->lent_.empty();
    std::vector<std::function<void()>> quiet;
    if (client_->hold_ && client_->is_quiet()) quiet.swap(client_->hold_->quiet);
    std::shared_ptr<ActorClient> idle;
    if (!busy)
      idle.swap(client_->self_while_busy_);
    else if (!client_->self_while_busy_)
      client_->self_while_busy_ = client_;
    lock_.unlock();
    if (!lingering_.empty()) client_->process_->linger(std::move(lingering_));
    for (const auto& [call, why] : failed_) client_->settle(call, why);
    for (const auto& tell : quiet) tell();
  }

  void fail(CallPtr call, Status why) { failed_.emplace_back(std::move(call), std::move(why)); }
  void fail_all(std::vector<CallPtr>& calls, const Status& why) {
    for (CallPtr& call : std::exchange(calls, {})) fail(std::move(call), why);
  }
  void fail_all(std::list<CallPtr>& calls, const Status& why) {
    for (CallPtr& call : std::exchange(calls, {})) fail(std::move(call), why);
  }
  void drop(ObjectValue value) { dropped_.push_back(std::move(value)); }
  /// The actor's process, or the way to it, is gone.
  void drop_lent() {
    for (auto& [sequence, value] : std::exchange(client_->lent_, {}))
      lingering_.push_back(std::move(value));
  }

  std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::shared_ptr<ActorClient> client_;  // first: the mutex is in it
  std::vector<std::pair<CallPtr, Status>> failed_;
  std::vector<ObjectValue> dropped_;
  std::vector<ObjectValue> lingering_;
  std::unique_lock<std::mutex> lock_;
};

ActorClient::ActorClient(std::shared_ptr<Process> process, std::shared_ptr<WorkerLink> worker,
                         const ActorAddress& address)
    : process_(std::move(process)),
      id_(address.actor),
      class_name_(address.class_name),
      encoded_caller_options_(address.caller_options),
      worker_(std::move(worker)),
      incarnation_(address.incarnation) {
  Result<CallerOptions> options = decode_caller_options(address.caller_options);
  if (!options.ok())
    LOG(warn, "{}: {}", describe(), options.status().message());
  else if (!options->is_default())
    caller_options_ = std::make_unique<const CallerOptions>(*std::move(options));
}

ActorClient::~ActorClient() {
  if (process_->is_forked()) {
    (void)new std::shared_ptr<Timer>(
        std::move(timer_));  // never destroyed: its loop's lock is not ours
    return;
  }
  worker_->detach(id_);  // nobody else has this client any more
  process_->forget_client(id_);
}

ActorAddress ActorClient::address() const {
  ActorAddress address;
  address.actor = id_;
  address.class_name = class_name_;
  address.caller_options = encoded_caller_options_;
  std::lock_guard lock(mutex_);
  address.incarnation = incarnation_;
  worker_->describe(address);
  return address;
}

std::shared_ptr<const WorkerLink> ActorClient::worker() const {
  std::lock_guard lock(mutex_);
  return worker_;
}

std::string ActorClient::describe() const { return class_name_ + " " + id_.short_hex(); }

Result<const MethodEntry*> ActorClient::find_method(std::type_index type, const MethodKey& key) {
  const ActorClass* known = nullptr;
  {
    std::lock_guard lock(mutex_);
    known = class_;
  }
  if (!known || known->type() != type) {
    auto found = process_->registry().find(type);
    if (!found.ok()) return found.status();
    known = *found;
    if (known->name() != class_name_) {
      return invalid_argument("actor " + id_.short_hex() + " is a " + class_name_ + ", not a " +
                              known->name());
    }
    std::lock_guard lock(mutex_);
    class_ = known;
  }
  const MethodEntry* method = known->find(key);
  if (!method) {
    return invalid_argument("a method of " + known->name() +
                            " is called that is not registered: add it to register_actor<" +
                            known->name() + ">(...) in main");
  }
  return method;
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
  if (process_->is_forked()) return ObjectState::failed(process_, forked_status());
  Result<const MethodEntry*> method = find_method(type, key);
  if (!method.ok()) return ObjectState::failed(process_, method.status());
  const TimeLimit deadline(limit(**method, timeout));
  if (!worker()->is_local()) {
    ObjectValue arguments;
    arguments.bytes = encoder.to_buffer();  // the frame carries them to the other node
    arguments.refs = encoder.take_refs();
    return submit(*method, std::move(arguments), deadline, retries, std::move(stream));
  }
  Result<ObjectValue> arguments = process_->store(encoder, room_deadline(deadline.deadline));
  if (!arguments.ok())
    return ObjectState::failed(process_,
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
  if (const auto& process = clients.front()->process_; process->is_forked()) {
    results.assign(clients.size(), ObjectState::failed(process, forked_status()));
    return results;
  }
  // On other nodes too large arguments are read from the store: each node fetches them once,
  // however many members it has.
  Result<ObjectValue> arguments =
      clients.front()->process_->store(encoder, room_deadline(deadline_after(timeout)));
  for (ActorClient* client : clients) {
    Result<const MethodEntry*> method = client->find_method(type, key);
    if (!method.ok())
      results.push_back(ObjectState::failed(client->process_, method.status()));
    else if (!arguments.ok())
      results.push_back(ObjectState::failed(
          client->process_, arguments.status().with_context("arguments of " + (*method)->name)));
    else
      results.push_back(client->submit(*method, *arguments,
                                       TimeLimit(client->limit(**method, timeout)), retries));
  }
  return results;
}

ActorClient::TimeLimit::TimeLimit(std::chrono::milliseconds time)
    : deadline(deadline_after(time)), timeout(time) {}

std::chrono::milliseconds ActorClient::limit(const MethodEntry& method,
                                             std::chrono::milliseconds timeout) const {
  if (method.timeout.count() > 0) timeout = std::min(timeout, method.timeout);
  if (!caller_options_) return timeout;
  auto found = caller_options_->method_timeouts.find(method.name);
  return found == caller_options_->method_timeouts.end() ? timeout
                                                         : std::min(timeout, found->second);
}

ObjectStatePtr ActorClient::submit(const MethodEntry* method, ObjectValue arguments,
                                   TimeLimit limit, std::int32_t retries,
                                   std::shared_ptr<StreamState> stream) {
  auto call = std::make_shared<OutgoingCall>();
  call->client = shared_from_this();
  call->method = method;
  call->arguments = std::move(arguments);
  call->deadline = limit.deadline;
  call->timeout = limit.timeout;
  call->retries_left = retries;
  call->result = std::make_shared<ObjectState>(process_);
  call->result->set_producer(call);
  if (stream) stream->set_call(call);
  call->stream = std::move(stream);
  ObjectStatePtr result = call->result;

  Section section(*this);
  if (!closed_.ok()) {
    section.fail(std::move(call), closed_);
    return result;
  }
  if (hold_) {
    section.fail(std::move(call), hold_->why);
    return result;
  }
  call->order = ++order_;
  line_.push_back(std::move(call));
  pump(section);
  if (is_waiting()) arm_timer(limit.deadline);
  return result;
}

void ActorClient::pump(Section& section) {
  if (link_ == Link::kNone && !line_.empty() && stale_) resolve();
  if (link_ == Link::kNone && !line_.empty()) {
    channel_ = worker_->attach(id_, shared_from_this());
    link_ = channel_ ? Link::kOpen : Link::kConnecting;
  }
  while (link_ == Link::kOpen && !line_.empty() && older_in_flight_ == 0) {
    CallPtr call = line_.front();
    if (ObjectStatePtr blocker = call->blocker()) {
      if (is_out_of_order()) {
        line_.pop_front();
        set_aside(std::move(call), std::move(blocker), section);
        continue;
      }
      if (watched_ == blocker.get()) break;
      watched_ = blocker.get();
      section.lock().unlock();  // the action may run at once
      watch(blocker);
      section.lock().lock();
      continue;
    }
    line_.pop_front();
    send(call, section);
  }
}

void ActorClient::set_aside(CallPtr call, ObjectStatePtr blocker, Section& section) {
  if (!aside_) aside_ = std::make_unique<std::map<std::uint64_t, CallPtr>>();
  std::weak_ptr<OutgoingCall> waiting = call;
  aside_->emplace(call->order, call);
  section.lock().unlock();  // the action may run at once
  blocker->then([weak = weak_from_this(), waiting = std::move(waiting)] {
    auto self = weak.lock();
    if (auto ready = waiting.lock(); self && ready) self->go_on(ready);
  });
  section.lock().lock();
}

void ActorClient::go_on(const CallPtr& call) {
  Section section(*this);
  if (!aside_ || aside_->erase(call->order) == 0) return;  // its time was up, or it was cancelled
  if (aside_->empty()) aside_.reset();
  line_.push_back(call);
  pump(section);
}

bool ActorClient::is_quiet() const {
  return !closed_.ok() || (!is_waiting() && orphans_.empty() && acknowledged_ == sequence_);
}

void ActorClient::fail_waiting(Section& section, const Status& why) {
  section.fail_all(line_, why);
  if (!aside_) return;
  for (const auto& [order, call] : *aside_) section.fail(call, why);
  aside_.reset();
}

Deadline ActorClient::earliest_deadline() const {
  Deadline earliest = Deadline::max();
  for (const CallPtr& call : line_) earliest = std::min(earliest, call->deadline);
  for (const CallPtr& call : orphans_) earliest = std::min(earliest, call->deadline);
  if (!aside_) return earliest;
  for (const auto& [order, call] : *aside_) earliest = std::min(earliest, call->deadline);
  return earliest;
}

void ActorClient::hold_calls(Status why, std::function<void()> quiet) {
  Section section(*this);  // tells at its end, if nothing is outstanding
  if (!hold_) hold_ = std::make_unique<Hold>();
  ++hold_->holders;
  hold_->why = std::move(why);
  hold_->quiet.push_back(std::move(quiet));
}

void ActorClient::resume_calls() {
  Section section(*this);
  if (hold_ && --hold_->holders == 0) hold_.reset();
}

void ActorClient::watch(const ObjectStatePtr& blocker) {
  blocker->then([weak = weak_from_this(), watched = blocker.get()] {
    auto self = weak.lock();
    if (!self) return;
    Section section(*self);
    if (self->watched_ == watched) self->watched_ = nullptr;
    self->pump(section);
  });
}

Status ActorClient::cancel(const CallPtr& call, CancelMode mode) {
  ActorClient& self = *call->client;
  if (self.process_->is_forked()) return forked_status();
  std::shared_ptr<Channel> channel;
  bool shared = false;
  {
    Section section(self);
    auto waiting = std::find(self.line_.begin(), self.line_.end(), call);
    if (waiting != self.line_.end()) {
      self.line_.erase(waiting);
      section.fail(call, cancelled("the call was cancelled before it was sent"));
      self.pump(section);
      return {};
    }
    if (self.aside_ && self.aside_->erase(call->order) > 0) {
      if (self.aside_->empty()) self.aside_.reset();
      section.fail(call, cancelled("the call was cancelled before it was sent"));
      return {};
    }
    channel = call->channel;
    shared = self.worker_->is_shared();
  }
  if (!channel) return {};  // it has failed
  const bool forced = mode == CancelMode::kForce && !shared;
  if (forced) call->forced = true;
  send_notice(*channel,
              {self.id_, call->sequence,
               forced ? CallNotice::Kind::kForceCancel : CallNotice::Kind::kCancel},
              Flush::kNow);
  if (mode != CancelMode::kForce || !shared) return {};
  return invalid_argument(self.describe() +
                          " shares its process with other actors: a call that it runs is asked to "
                          "end but cannot be forced to; that takes a "
                          "process of its own (Isolation::kProcess)");
}

void ActorClient::settle(const CallPtr& call, const Status& why) {
  if (call->forced &&
      (why.code() == ErrorCode::kActorDied || why.code() == ErrorCode::kUnavailable)) {
    return call->result->fail(cancelled(describe() + ": " + call->method->name +
                                        ": cancelled by force: " + why.message()));
  }
  call->result->fail(why.with_context(describe() + ": " + call->method->name));
}

void ActorClient::send(const CallPtr& call, Section& section) {
  const Deadline now = steady_now();
  auto left = std::chrono::ceil<std::chrono::milliseconds>(call->deadline - now);
  if (left.count() <= 0) {
    return section.fail(call, call->late("the call's time was up before it could be sent"));
  }
  CallRequest request{
      .actor = id_,
      .incarnation = incarnation_,
      .method = call->method->id,
      .deadline_ms = static_cast<std::uint64_t>(left.count()),
      .session = process_->session(),
      .sequence = sequence_ + 1,
      .acknowledged = acknowledged_,
      .lends = call->arguments.refers(),
      .stream_window = call->stream ? call->stream->window() : 0,
  };
  Result<Buffer> meta = encode_call(request, call->arguments);
  if (!meta.ok()) return section.fail(call, meta.status());
  call->sequence = ++sequence_;
  call->channel = channel_;
  const auto now_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
  const bool records = process_->activity() && process_->activity()->records(now_ns);
  call->sent_ns = records ? now_ns : 0;
  if (records) call->sent_by = ActivityPage::thread_id();
  call->incarnation = incarnation_;
  ++in_flight_;
  if (call->stream) {
    if (!streams_)
      streams_ = std::make_unique<std::map<std::uint64_t, std::weak_ptr<StreamState>>>();
    std::erase_if(*streams_, [](const auto& entry) { return entry.second.expired(); });
    streams_->emplace(call->sequence, call->stream);
  }
  Message message;
  message.kind = FrameKind::kCall;
  message.meta = *std::move(meta);
  message.payload = call->arguments.bytes;  // kept: it may have to be sent again
  if (request.lends) lent_.emplace(call->sequence, call->arguments);
  channel_->request(std::move(message), call->deadline, [call](Result<Message> reply) {
    call->client->on_reply(call, std::move(reply));
  });
}

void ActorClient::on_connected(const WorkerLink* worker, Result<std::shared_ptr<Channel>> channel) {
  Section section(*this);
  if (link_ != Link::kConnecting || worker != worker_.get())
    return;  // closed meanwhile, or the actor was started again elsewhere
  if (channel.ok()) {
    link_ = Link::kOpen;
    channel_ = *std::move(channel);
    return pump(section);
  }
  for (CallPtr& call : std::exchange(line_, {})) orphans_.push_back(std::move(call));
  ask_cause(channel.status());
}

void ActorClient::on_channel_closed(const Channel* channel, Status reason) {
  Section section(*this);
  if (channel_ && channel_.get() != channel) return;
  section.drop_lent();
  if (link_ != Link::kOpen) return;
  if (!orphans_.empty() || !line_.empty()) return ask_cause(std::move(reason));
  // Nobody waits for anything here: the next call will find out.
  link_ = Link::kNone;
  channel_.reset();
}

void ActorClient::ask_cause(Status reason, std::uint64_t refused_by) {
  link_ = Link::kAsking;
  channel_.reset();
  arm_timer(earliest_deadline());  // the answer may take longer than the calls have
  const bool refused = refused_by != 0;
  const std::uint64_t incarnation = refused ? refused_by : incarnation_;
  ActorDirectory(process_->node())
      .state(id_, incarnation, deadline_after(kCausePatience),
             [self = shared_from_this(), incarnation, reason = std::move(reason),
              refused](Result<ActorState> state) {
               self->on_cause(incarnation, reason, refused, std::move(state));
             });
}

void ActorClient::on_cause(std::uint64_t incarnation, Status reason, bool refused,
                           Result<ActorState> state) {
  Section section(*this);
  if (link_ != Link::kAsking) return;
  // An actor that takes no more calls is about to end; the head waits a moment for that, and is
  // asked again as long as a call has time.
  const bool ending = refused && state.ok() && state->phase == ActorPhase::kAlive &&
                      state->incarnation == incarnation && incarnation_ == incarnation;
  if (ending && is_waiting()) return ask_cause(std::move(reason), incarnation);
  const bool dead = state.ok() && state->phase == ActorPhase::kDead;
  const bool restarts =
      state.ok() && !dead && (state->is_restarting() || state->incarnation != incarnation);
  // The head knows every living actor, and of dead ones the last.
  const bool forgotten = state.status().code() == ErrorCode::kNotFound;
  Status why = dead || restarts ? death_status(*state)
               : forgotten ? actor_died("actor " + describe() + " has ended: " + reason.message())
               : state.status().code() == ErrorCode::kActorDied ? state.status()
               : reason.code() == ErrorCode::kInvalidArgument
                   ? reason
                   : unavailable("connection lost, the call may have run: " + reason.message());
  if (why.code() == ErrorCode::kActorDied && !restarts) {
    section.fail_all(orphans_, why);
    end_for_good(why);
    fail_waiting(section, why);
    section.drop_lent();
    return;
  }
  settle_orphans(section, why, restarts);
  stale_ = restarts && incarnation_ == incarnation;  // else a newer address came meanwhile
  link_ = Link::kNone;
  if (!restarts && incarnation_ == incarnation && !line_.empty()) return try_again_later();
  pump(section);
}

// The way to the actor is broken, or its node is: trying at full speed would help nobody.
void ActorClient::try_again_later() {
  link_ = Link::kPausing;
  process_->loop().post([weak = weak_from_this(), pause = backoff_.next()] {
    auto self = weak.lock();
    if (!self) return;
    auto timer = std::make_shared<Timer>(self->process_->loop().executor(), pause);
    timer->async_wait([weak, timer](const boost::system::error_code&) {
      if (auto client = weak.lock()) client->on_pause_over();
    });
  });
}

void ActorClient::on_pause_over() {
  Section section(*this);
  if (link_ != Link::kPausing) return;  // closed, or the actor was found elsewhere
  link_ = Link::kNone;
  pump(section);
}

void ActorClient::settle_orphans(Section& section, const Status& why, bool keep_unsent) {
  std::vector<CallPtr> again;
  for (CallPtr& call : std::exchange(orphans_, {})) {
    const bool unsent = call->sequence == 0;
    if (!unsent) acknowledge(call->sequence);  // sent again it has another number
    const bool may_go = unsent && keep_unsent ? true : call->retries_left != 0;
    if (!may_go || call->forced) {
      section.fail(std::move(call), why);
      continue;
    }
    if (!unsent || !keep_unsent) call->retries_left -= call->retries_left > 0 ? 1 : 0;
    call->sequence = 0;
    call->channel.reset();
    again.push_back(std::move(call));
  }
  if (again.empty()) return;
  line_.insert(line_.end(), std::make_move_iterator(again.begin()),
               std::make_move_iterator(again.end()));
  line_.sort([](const CallPtr& a, const CallPtr& b) { return a->order < b->order; });
  watched_ = nullptr;
  arm_timer(earliest_deadline());
}

void ActorClient::end_for_good(const Status& why) {
  link_ = Link::kClosed;
  closed_ = why;
  is_closed_ = true;
}

void ActorClient::resolve() {
  // Asked again as long as calls wait; each of them ends at its own deadline.
  constexpr std::chrono::seconds kPatience{60};
  link_ = Link::kResolving;
  ActorDirectory(process_->node())
      .resolve(id_, deadline_after(kPatience),
               [self = shared_from_this()](Result<ActorAddress> address) {
                 self->on_resolved(std::move(address));
               });
}

void ActorClient::on_resolved(Result<ActorAddress> address) {
  Section section(*this);
  if (link_ != Link::kResolving) return;
  link_ = Link::kNone;
  if (address.ok()) {
    if (address->incarnation > incarnation_) move_to(*address, section);
    stale_ = false;
  } else if (address.status().code() == ErrorCode::kUnavailable) {
    section.fail_all(line_, address.status());
  } else if (address.status().code() != ErrorCode::kDeadlineExceeded) {
    end_for_good(address.status());
    fail_waiting(section, closed_);
    return;
  }
  pump(section);
}

void ActorClient::move_to(const ActorAddress& newer, Section& section) {
  auto worker = process_->link_for(newer);
  if (worker == worker_)
    drained_.reset();  // calls to the new one run on the same connection
  else
    section.drop_lent();  // that process has ended, and may have had no time to say so
  worker_ = std::move(worker);
  older_in_flight_ += std::exchange(in_flight_, 0);
  incarnation_ = newer.incarnation;
  stale_ = false;
}

void ActorClient::adopt(const ActorAddress& newer) {
  std::shared_ptr<WorkerLink> older;
  {
    Section section(*this);
    if (link_ == Link::kClosed || newer.incarnation <= incarnation_) return;
    older = worker_;
    move_to(newer, section);
    if (older == worker_) older = nullptr;
    if (link_ != Link::kAsking) {  // else it goes on with the new address once it has its answer
      if (link_ == Link::kOpen) section.drop_lent();
      channel_.reset();
      link_ = Link::kNone;
      pump(section);
    }
  }
  // That process is gone, or cut off from the cluster: nobody should wait for its replies.
  if (older) older->close(unavailable("the actor was started again"));
}

void ActorClient::record(const OutgoingCall& call, bool failed) const {
  auto of_class = process_->registry().find(class_name_);
  if (!of_class.ok()) return;
  ActivityPage& page = *process_->activity();
  const auto method = static_cast<std::size_t>(call.method - (*of_class)->methods().data());
  activity::TraceEvent event;
  event.kind = activity::EventKind::kCalled;
  event.begin_ns = call.sent_ns;
  event.duration_ns = activity_now() - call.sent_ns;
  event.flow = call_flow(process_->session(), id_, call.sequence);
  std::memcpy(&event.actor, id_.bytes.data(), sizeof event.actor);
  event.tid = call.sent_by;
  event.method =
      method < (*of_class)->methods().size() ? page.class_of(**of_class).method(method) : 0;
  event.failed = failed;
  page.record(event);
}

void ActorClient::on_reply(const CallPtr& call, Result<Message> reply) {
  if (call->sent_ns != 0) record(*call, !reply.ok());
  if (!reply.ok() && reply.status().code() == ErrorCode::kDeadlineExceeded) {
    send_notice(*call->channel, {id_, call->sequence, CallNotice::Kind::kCancel});
    reply = call->late("no reply in time; the call may have run");
  }
  bool last_of_older = false;
  {
    Section section(*this);
    if (call->incarnation == incarnation_)
      --in_flight_;
    else
      last_of_older = --older_in_flight_ == 0;
    if (!reply.ok() && (reply.status().code() == ErrorCode::kUnavailable ||
                        reply.status().code() == ErrorCode::kCancelled)) {
      if (closed_.ok() && call->channel == drained_.lock()) {
        acknowledge(call->sequence);
        return put_back(call, reply.status());
      }
      if (closed_.ok()) {
        orphans_.push_back(call);
        arm_timer(call->deadline);
        // Usually on_channel_closed() is about to come; but not if this was sent on a connection
        // that had ended already.
        if (link_ == Link::kNone) {
          ask_cause(reply.status());
        } else if (link_ != Link::kAsking && call->channel != channel_) {
          settle_orphans(
              section,
              unavailable("connection lost, the call may have run: " + reply.status().message()),
              true);
          pump(section);
        }
        return;
      }
      reply = closed_;
    }
    acknowledge(call->sequence);
    if (reply.ok()) backoff_.reset();
    if (!reply.ok()) {
      // The actor may still get and keep what was lent to a call whose time is up; one that was
      // never sent it cannot.
      auto lent = reply.status().code() == ErrorCode::kDeadlineExceeded
                      ? lent_.end()
                      : lent_.find(call->sequence);
      if (lent != lent_.end()) {
        section.drop(std::move(lent->second));
        lent_.erase(lent);
      }
      section.fail(call, reply.status());
      if (last_of_older) pump(section);
      return;
    }
  }
  // Small results leave the block they were received in, which may be much larger.
  Buffer payload = reply->payload.first();
  if (payload.size() <= 1024) payload = Buffer::copy_of(payload.bytes());
  CallReply decoded;
  ObjectValue value;
  Status status = decode_reply(
      reply->meta, std::move(payload), process_,
      [&] {
        return std::make_shared<const ResultLease>(shared_from_this(), call->channel,
                                                   call->sequence);
      },
      &decoded, &value);
  if (status.ok() && decoded.gone) return on_gone(call, decoded.status);
  if (last_of_older) {
    Section section(*this);
    pump(section);
  }
  if (status.ok()) status = decoded.status;
  // The actor's clock was faster than ours.
  const bool late = status.code() == ErrorCode::kDeadlineExceeded && steady_now() >= call->deadline;
  if (late) status = call->late(std::string(status.message()));
  if (!status.ok()) return settle(call, status);
  if (value.stored)
    value.stored->set_lineage(
        std::make_shared<CallLineage>(describe() + ": " + call->method->name));
  call->result->fulfil(std::move(value));
}

void ActorClient::on_gone(const CallPtr& call, const Status& reason) {
  Section section(*this);
  if (!closed_.ok()) return section.fail(call, closed_);
  put_back(call, reason);
}

// It has not run: back in line, behind those that came back before it, for the next incarnation if
// there is one.
void ActorClient::put_back(const CallPtr& call, const Status& reason) {
  call->sequence = 0;
  call->channel.reset();
  auto place = line_.begin();
  while (place != line_.end() && (*place)->order < call->order) ++place;
  line_.insert(place, call);
  watched_ = nullptr;
  arm_timer(call->deadline);
  // Of the incarnation that refused it: the next one may be known already, and nothing is to be
  // asked of that. Others that were refused come back meanwhile.
  if (link_ == Link::kOpen || link_ == Link::kNone) ask_cause(reason, call->incarnation);
}

void ActorClient::acknowledge(std::uint64_t sequence) {
  if (sequence <= acknowledged_) return;
  if (sequence != acknowledged_ + 1) {
    ended_beyond_.insert(sequence);
    return;
  }
  ++acknowledged_;
  while (!ended_beyond_.empty() && *ended_beyond_.begin() == acknowledged_ + 1) {
    ++acknowledged_;
    ended_beyond_.erase(ended_beyond_.begin());
  }
}

void ActorClient::tell_taken(const CallPtr& call, std::uint64_t count) {
  ActorClient& self = *call->client;
  CallNotice notice;
  std::shared_ptr<Channel> channel;
  {
    std::lock_guard lock(self.mutex_);
    channel = call->channel;
    notice = {self.id_, call->sequence, CallNotice::Kind::kStreamTaken, count};
  }
  send_notice(*channel, notice);
}

void ActorClient::on_stream_item(const std::shared_ptr<Channel>& from, std::uint64_t sequence,
                                 const Message& message) {
  std::shared_ptr<StreamState> stream;
  {
    std::lock_guard lock(mutex_);
    if (streams_) {
      if (auto found = streams_->find(sequence); found != streams_->end())
        stream = found->second.lock();
    }
  }
  Buffer payload = message.payload.first();
  if (payload.size() <= 1024) payload = Buffer::copy_of(payload.bytes());  // as small results
  Result<ObjectValue> value =
      decode_stream_item(message.meta, std::move(payload), process_, [&](std::uint64_t lend_id) {
        return std::make_shared<const ResultLease>(shared_from_this(), from, lend_id);
      });
  if (!stream) return;  // nobody reads it any more; the value's lease has told the actor
  if (value.ok())
    stream->put(*std::move(value));
  else
    stream->end(value.status());
}

void ActorClient::on_notice(const std::shared_ptr<Channel>& from, const CallNotice& notice,
                            const Message& message) {
  if (notice.kind == CallNotice::Kind::kDrained) {
    std::lock_guard lock(mutex_);
    drained_ = from;
    return;
  }
  if (notice.kind == CallNotice::Kind::kStreamItem)
    return on_stream_item(from, notice.sequence, message);
  if (notice.kind != CallNotice::Kind::kArgumentsReleased) return;
  Section section(*this);
  if (auto found = lent_.find(notice.sequence); found != lent_.end()) {
    section.drop(std::move(found->second));
    lent_.erase(found);
  }
}

namespace {

void visit_stored(const ObjectValue& value, bool in_flight,
                  const std::function<void(const ObjectLocation&, bool)>& visit) {
  if (value.stored) visit(value.stored->location(), in_flight);
  for (const ObjectStatePtr& ref : value.refs) {
    if (ref->is_settled() && ref->failure().ok()) visit_stored(ref->value(), in_flight, visit);
  }
}

}  // namespace

void ActorClient::visit_lent(const std::function<void(const ObjectLocation&, bool)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const auto& [sequence, value] : lent_)
    visit_stored(value, sequence > acknowledged_ && !ended_beyond_.contains(sequence), visit);
}

void ActorClient::arm_timer(Deadline at) {
  if (at >= timer_at_) return;
  timer_at_ = at;
  if (!timer_) timer_ = std::make_shared<Timer>(process_->loop().executor());
  process_->loop().post([timer = timer_, weak = weak_from_this(), at] {
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
  auto now = steady_now();
  const auto expire = [&](const CallPtr& call) {
    if (call->deadline > now) return false;
    const char* why = link_ == Link::kResolving ? ": the actor is being restarted"
                      : call->blocker()         ? ": an argument was not there"
                                                : "";
    section.fail(call,
                 call->late(std::string("the call's time was up before it could be sent") + why));
    return true;
  };
  std::erase_if(line_, expire);
  if (aside_) {
    std::erase_if(*aside_, [&](const auto& entry) { return expire(entry.second); });
    if (aside_->empty()) aside_.reset();
  }
  std::erase_if(orphans_, [&](const CallPtr& call) {
    if (call->deadline > now) return false;
    if (call->sequence != 0) acknowledge(call->sequence);
    section.fail(
        call,
        call->late(call->sequence != 0
                       ? "the connection was lost, and no reply came in time; the call may have run"
                       : "the call's time was up before it could be sent"));
    return true;
  });
  pump(section);
  arm_timer(earliest_deadline());
}

void ActorClient::close(Status reason) {
  Section section(*this);
  if (link_ == Link::kClosed) return;
  end_for_good(reason);
  fail_waiting(section, reason);
  section.fail_all(orphans_, reason);
  section.drop_lent();
  channel_.reset();
}

}  // namespace runtime
