#include "runtime/call/process.h"

#include <algorithm>
#include <cstring>

#include "runtime/call/actor_client.h"
#include "runtime/call/actor_creation.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/countdown.h"
#include "runtime/call/object_table.h"
#include "runtime/call/stored_object.h"
#include "runtime/call/worker_link.h"
#include "runtime/control/actor_directory.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/core/timer.h"

namespace runtime {

namespace {

/// Enough for a process that has just got a reference to say so, also on a machine that is very
/// busy.
constexpr std::chrono::seconds kLinger{2};
/// How long making a lost object again may take on behalf of another process, which has its own
/// deadline.
constexpr std::chrono::minutes kRecoverPatience{10};
// Objects of a node that leaves.
constexpr std::size_t kDrainingMax = 1000;
constexpr std::size_t kEvacuateAtOnce = 16;
constexpr std::chrono::minutes kEvacuateTime{1};

std::uint64_t random_process_session() {
  auto bytes = ids_detail::random_bytes();
  std::uint64_t session = 0;
  std::memcpy(&session, bytes.data(), sizeof session);
  return session;
}
}  // namespace

Deadline bounded(Deadline deadline) {
  return std::min(deadline, deadline_after(std::chrono::hours(24 * 7)));
}

Process::Process(std::shared_ptr<const Registry> registry)
    : registry_(std::move(registry)),
      session_(random_process_session()),
      object_table_(std::make_shared<ObjectTable>()),
      blocked_calls_(session_),
      object_context_{loop_, blocked_calls_, shut_down_, *this} {}

Process::~Process() { shut_down(); }

std::shared_ptr<Process> Process::make(std::shared_ptr<const Registry> registry) {
  return std::shared_ptr<Process>(new Process(std::move(registry)), [](Process* process) {
    if (!process->is_forked()) delete process;
  });
}

void Process::show_activity() {
  if (simulation() || !node_->channel()->is_unix()) return;
  auto page = ActivityPage::create();
  Result<FileDescriptor> copy = page.ok() ? (*page)->duplicate() : page.status();
  if (!copy.ok())
    return LOG(warn, "what this process does will not be seen: {}", copy.status().message());
  Message message;
  message.kind = FrameKind::kActivity;
  message.fds.push_back(*std::move(copy));
  if (node_->channel()->send(std::move(message)).ok())
    activity_ = *std::move(page);  // else the connection has ended, and the process will
}

void Process::attach(std::unique_ptr<NodeClient> node) {
  CHECK(!node_);
  node_ = std::move(node);
  show_activity();
  node_of_callers_ = std::make_unique<NodeOfCallers>(loop_, *node_);
  callers_ = std::make_unique<const CallerContext>(
      CallerContext{loop_, *registry_, session_, activity_, shut_down_, blocked_calls_,
                    *object_table_, clients_, *this, *node_of_callers_});
  queries_ = std::make_unique<const QueryContext>(
      QueryContext{*node_, object_context_, *object_table_, callbacks_});
  objects_ = std::make_shared<ObjectClient>(node_->channel());
  ObjectClient::OwnerHooks hooks;
  hooks.hold = [table = object_table_](const ObjectLocation& location) { table->hold(location); };
  hooks.unhold = [table = object_table_](const ObjectLocation& location) {
    table->unhold(location);
  };
  hooks.remake = [table = object_table_, here = node_->node_id()](
                     const ObjectLocation& lost,
                     UniqueFunction<void(Result<ObjectLocation>)> done) {
    auto object = table->find_remakeable(lost.id);
    if (!object) return done(not_found("this process does not own the task that made it"));
    if (lost.node == here)
      return object->recover(deadline_after(kRecoverPatience), std::move(done));
    object->replace(lost, object_lost("its copies are gone"), std::move(done));
  };
  hooks.evacuate = [weak = weak_from_this()](NodeId leaving,
                                             UniqueFunction<void(std::uint64_t)> done) {
    if (auto self = weak.lock())
      self->evacuate(leaving, std::move(done));
    else
      done(0);
  };
  hooks.report = [weak = weak_from_this()] {
    auto self = weak.lock();
    return self ? self->report() : object_wire::ProcessReport{};
  };
  objects_->set_owner_hooks(std::move(hooks));
  node_->set_on_message([weak = std::weak_ptr<ObjectClient>(objects_)](
                            const std::shared_ptr<Channel>& channel, Message message) {
    if (auto objects = weak.lock()) objects->handle(channel, message);
  });
  node_->set_on_node_drains([weak = weak_from_this()](NodeId leaving, const NodeDrain& drain) {
    if (auto self = weak.lock()) self->on_node_drains(leaving, drain);
  });
}

// -- Nodes that leave

void Process::on_node_drains(NodeId node, const NodeDrain& drain) {
  std::vector<std::function<void(NodeId)>> handlers;
  {
    std::lock_guard lock(mutex_);
    if (node == node_->node_id())
      drain_notice_ = DrainNotice{drain.reason, deadline_after(drain.left)};
    if (std::find(draining_.begin(), draining_.end(), node) == draining_.end())
      draining_.push_back(node);
    if (draining_.size() > kDrainingMax) draining_.erase(draining_.begin());
    handlers = drain_handlers_;
  }
  for (const auto& handler : handlers) handler(node);
}

std::optional<DrainNotice> Process::drain_notice() const {
  std::lock_guard lock(mutex_);
  return drain_notice_;
}

void Process::hear_of_drains(std::function<void(NodeId)> handler) {
  std::vector<NodeId> known;
  {
    std::lock_guard lock(mutex_);
    drain_handlers_.push_back(handler);
    known = draining_;
  }
  for (const NodeId& node : known) handler(node);
}

void Process::evacuate(NodeId node, UniqueFunction<void(std::uint64_t)> done) {
  struct Evacuation : std::enable_shared_from_this<Evacuation> {
    std::weak_ptr<Process> process;
    std::vector<std::shared_ptr<StoredObject>> objects;  // still to be moved
    UniqueFunction<void(std::uint64_t)> done;
    std::size_t under_way = 0;
    std::uint64_t failed = 0;

    void go_on() {
      auto self = process.lock();
      while (self && !objects.empty() && under_way < kEvacuateAtOnce) {
        const std::shared_ptr<StoredObject> object = std::move(objects.back());
        objects.pop_back();
        ++under_way;
        object->move_to_own_node(
            deadline_after(kEvacuateTime),
            [process = process](ObjectValue kept) {
              return ObjectState::ready(runtime::object_context(process.lock()), std::move(kept));
            },
            [all = shared_from_this(), id = object->location().id](Status status) {
              --all->under_way;
              // One that has ended need not be kept.
              if (!status.ok() && status.code() != ErrorCode::kObjectLost) {
                ++all->failed;
                LOG(warn, "object {} cannot be moved off the node that is about to leave: {}",
                    id.hex(), status.message());
              }
              all->go_on();
            });
      }
      if (under_way == 0 && done) std::exchange(done, nullptr)(failed);
    }
  };
  if (node == node_->node_id()) return done(0);  // this process leaves with it
  auto evacuation = std::make_shared<Evacuation>();
  evacuation->process = weak_from_this();
  evacuation->objects = object_table_->borrowed_from(node);
  evacuation->done = std::move(done);
  evacuation->go_on();
}

void Process::shut_down() {
  if (is_forked()) return;
  if (shut_down_.exchange(true)) return;
  // What others refer to is copied from the node after this process's end.
  if (objects_ && drain_notice()) objects_->keep_all();
  const std::vector<std::shared_ptr<ActorClient>> clients = clients_.clients();
  const std::vector<std::shared_ptr<WorkerLink>> links = clients_.links();
  std::unordered_map<std::uint64_t, std::vector<ObjectValue>>
      lingering;  // dropped outside of the lock
  {
    std::lock_guard lock(mutex_);
    lent_to_constructors_.clear();
    lingering.swap(lingering_values_);
  }
  lingering.clear();
  object_table_->clear();
  for (const auto& client : clients) client->close(cancelled("the runtime was stopped"));
  for (const auto& link : links) link->close(cancelled("the runtime was stopped"));
  if (node_) node_->channel()->close(cancelled("the runtime was stopped"));
  // Let the closes run their handlers, so that nothing waits for ever.
  Event drained(loop_);
  loop_.post([&] { loop_.post([&] { drained.set(); }); });
  loop_.run_until(drained, Deadline::max());
  loop_.stop();
  callbacks_.stop();
}

ObjectStatePtr Process::pending() { return std::make_shared<ObjectState>(object_context()); }

Status Process::decode_reply(const Buffer& meta, Buffer payload,
                             const std::function<std::shared_ptr<const void>()>& make_loan,
                             CallReply* reply, ObjectValue* value) {
  return runtime::decode_reply(meta, std::move(payload), object_context(), make_loan, reply, value);
}

Result<ObjectValue> Process::decode_stream_item(
    const Buffer& meta, Buffer payload,
    const std::function<std::shared_ptr<const void>(std::uint64_t)>& make_loan) {
  return runtime::decode_stream_item(meta, std::move(payload), object_context(), make_loan);
}

Result<ObjectValue> Process::store(Encoder& encoder, Deadline deadline,
                                   const std::stop_token& stop) {
  ObjectValue value;
  if (encoder.size() < kLargeArrayBytes) {
    value.bytes = encoder.to_buffer();
  } else {
    if (!objects_)
      return unavailable("the runtime is not started: call start() or run() before making objects");
    Result<WritableObject> object = objects_->create(encoder.size(), {}, deadline, stop);
    if (!object.ok()) return object.status();
    encoder.gather(object->data());
    value.stored = StoredObject::make(objects_, object_table_, objects_->seal(*std::move(object)),
                                      StoredObject::Kind::kOwned);
  }
  value.refs = referred_objects(encoder.take_refs());
  return value;
}

ObjectValue Process::inlined(Encoder& encoder) {
  ObjectValue value;
  value.bytes = encoder.to_buffer();
  value.refs = referred_objects(encoder.take_refs());
  return value;
}

void Process::set_resident(ActorInstance actor) {
  std::lock_guard lock(mutex_);
  resident_ = actor;
}

ActorInstance Process::current_actor() const {
  if (ActorInstance scoped = ActorScope::current(); !scoped.actor.is_none()) return scoped;
  std::lock_guard lock(mutex_);
  return resident_;
}

Status Process::keep_state(ActorInstance actor, std::string state, Deadline deadline) {
  return ask([&](NodeClient::Done done) {
    ActorDirectory(*node_).save_state(actor.actor, actor.incarnation, std::move(state),
                                      bounded(deadline), std::move(done));
  });
}

std::shared_ptr<StoredObject> Process::borrow(ObjectLocation location, bool indirect) {
  return StoredObject::make(
      objects_, object_table_, std::move(location),
      indirect ? StoredObject::Kind::kPassedOn : StoredObject::Kind::kBorrowed);
}

void Process::borrow_confirmed(const ObjectLocation& location, Deadline deadline,
                               UniqueFunction<void(Result<std::shared_ptr<StoredObject>>)> done) {
  objects_->borrow_and_confirm(
      location, deadline,
      [self = shared_from_this(), location, done = std::move(done)](const Status& status) mutable {
        // Dropped, it says that this process does not have it after all.
        auto stored = StoredObject::make(self->objects_, self->object_table_, location,
                                         StoredObject::Kind::kConfirmed);
        if (!status.ok()) return done(status);
        done(std::move(stored));
      });
}

void Process::linger(std::vector<ObjectValue> lent) {
  std::erase_if(lent, [](const ObjectValue& value) { return !value.refers(); });
  if (lent.empty()) return;
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (shut_down_) return;
    number = ++lingering_;
    lingering_values_.emplace(number, std::move(lent));
    if (drain_notice_) return;  // until the node has left
  }
  loop_.post([weak = weak_from_this(), number] {
    auto self = weak.lock();
    if (!self) return;
    auto timer = std::make_shared<Timer>(self->loop_.context(), kLinger);
    timer->async_wait([weak, number, timer](const boost::system::error_code&) {
      auto process = weak.lock();
      if (!process) return;
      std::vector<ObjectValue> dropped;  // outside of the lock
      std::lock_guard lock(process->mutex_);
      if (auto found = process->lingering_values_.find(number);
          found != process->lingering_values_.end()) {
        dropped = std::move(found->second);
        process->lingering_values_.erase(found);
      }
    });
  });
}

object_wire::ProcessReport Process::report() const {
  const std::vector<std::shared_ptr<ActorClient>> clients = clients_.clients();
  object_wire::ProcessReport report =
      object_table_->report([&](const std::function<void(const ObjectLocation&, bool)>& visit) {
        for (const auto& client : clients) client->visit_lent(visit);
      });
  report.inline_objects = object_context_.inline_objects.load(std::memory_order_relaxed);
  return report;
}

PendingActor Process::start_actor(ActorSpec spec, ObjectValue arguments,
                                  std::chrono::milliseconds timeout) {
  auto self = shared_from_this();
  PendingActor pending{spec.actor, std::make_shared<ObjectState>(object_context()),
                       std::make_shared<ActorAddress>()};
  ActorId actor = spec.actor;
  auto creation = ActorCreation::of(*node_, pending.created, spec, timeout);
  if (arguments.refers()) {
    ObjectStatePtr lent = ObjectState::ready(object_context(), std::move(arguments));
    std::lock_guard lock(mutex_);
    lent_to_constructors_[actor] = {std::move(lent)};
  }
  ActorDirectory(*node_).create(
      std::move(spec), deadline_after(timeout),
      [self, pending, actor, creation](Result<ActorAddress> address) {
        if (address.ok()) {
          std::vector<ObjectStatePtr>
              unused;  // get_if_exists found another; dropped outside of the lock
          if (address->actor != actor) {
            std::lock_guard lock(self->mutex_);
            if (auto found = self->lent_to_constructors_.find(actor);
                found != self->lent_to_constructors_.end()) {
              unused = std::move(found->second);
              self->lent_to_constructors_.erase(found);
            }
          }
          *pending.address = *std::move(address);
          pending.created->fulfil({});
        } else {
          {
            std::lock_guard lock(self->mutex_);
            self->lent_to_constructors_.erase(actor);
          }
          pending.created->fail(creation->with_cycle(address.status()));
        }
      });
  return pending;
}

PendingActor Process::find_actor(const std::string& class_name, std::string name,
                                 std::string name_space, Deadline deadline, bool has_own_limit) {
  PendingActor pending{
      {}, std::make_shared<ObjectState>(object_context()), std::make_shared<ActorAddress>()};
  auto search = std::make_shared<AwaitedActor>(
      *node_, pending.created, class_name + " \"" + name + '"',
      control::ConstructorAwaited{{}, name, name_space}, has_own_limit);
  pending.created->set_producer(search);
  ActorDirectory(*node_).resolve_name(
      std::move(name), std::move(name_space), deadline,
      [pending, search](Result<ActorAddress> address) {
        if (!address.ok()) return pending.created->fail(search->with_cycle(address.status()));
        *pending.address = *std::move(address);
        pending.created->fulfil({});
      });
  return pending;
}

void Process::on_actor_died(ActorId actor) {
  std::vector<ObjectStatePtr> lent;  // dropped outside of the lock
  {
    std::lock_guard lock(mutex_);
    if (auto found = lent_to_constructors_.find(actor); found != lent_to_constructors_.end()) {
      lent = std::move(found->second);
      lent_to_constructors_.erase(found);
    }
  }
  std::vector<ObjectValue> values;
  for (const ObjectStatePtr& object : lent) values.push_back(object->value());
  linger(std::move(values));
}

void Process::wait(std::span<const ObjectStatePtr> objects, std::size_t count, Deadline deadline,
                   OnFailure on_failure) {
  std::size_t settled = 0;
  for (const auto& object : objects) {
    if (!object->is_settled()) continue;
    ++settled;
    if (on_failure == OnFailure::kReturn && !object->failure().ok()) return;
  }
  count = std::min(count, objects.size());
  if (settled >= count || is_forked()) return;
  Countdown countdown(loop_, count, on_failure);
  std::vector<WaitNode> nodes(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    nodes[i].sink = &countdown;
    if (!objects[i]->add_waiter(nodes[i])) {
      nodes[i].sink = nullptr;
      countdown.on_settled(nodes[i], *objects[i]);
    }
  }
  if (count == objects.size() && RunningCall::current()) {  // it needs each of them
    std::vector<const ObjectState*> awaited;
    for (const auto& object : objects) awaited.push_back(object.get());
    blocked_calls_.wait(loop_, countdown.event(), awaited.data(), awaited.size(), deadline);
  } else {
    block_until(loop_, countdown.event(), deadline);
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (nodes[i].sink) objects[i]->remove_waiter(nodes[i]);
  }
}

Status Process::ask(const std::function<void(NodeClient::Done)>& make) {
  Result<bool> result = ask<bool>([&](NodeClient::Callback<bool> done) {
    make([done](Status status) { done(status.ok() ? Result<bool>(true) : Result<bool>(status)); });
  });
  return result.status();
}

}  // namespace runtime
