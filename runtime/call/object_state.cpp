#include "runtime/call/object_state.h"

#include "runtime/call/blocked_calls.h"
#include "runtime/call/countdown.h"
#include "runtime/call/object_context.h"
#include "runtime/call/stored_object.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

ObjectState::ObjectState(ObjectContextPtr context) : context_(std::move(context)) {
  if (context_) context_->count_inline(1);
}

ObjectState::~ObjectState() {
  if (context_ && !value_.stored) context_->count_inline(-1);
}

ObjectStatePtr ObjectState::ready(ObjectContextPtr context, ObjectValue value) {
  auto state = std::make_shared<ObjectState>(std::move(context));
  state->fulfil(std::move(value));
  return state;
}

ObjectStatePtr ObjectState::failed(ObjectContextPtr context, Status why) {
  auto state = std::make_shared<ObjectState>(std::move(context));
  state->fail(std::move(why));
  return state;
}

void ObjectState::fulfil(ObjectValue value) {
  std::unique_lock lock(mutex_);
  if (settled_) return;
  value_ = std::move(value);
  if (context_ && value_.stored) context_->count_inline(-1);
  settle(lock);
}

void ObjectState::fail(Status why) {
  std::unique_lock lock(mutex_);
  if (settled_) return;
  CHECK(!why.ok());
  failure_ = std::move(why);
  settle(lock);
}

void ObjectState::settle(std::unique_lock<std::mutex>& lock) {
  settled_.store(true, std::memory_order_release);
  // Under the lock, so that a waiter whose time is up cannot leave its stack frame meanwhile.
  for (WaitNode* node = waiters_; node != nullptr;) {
    WaitNode* next = node->next;
    node->sink->on_settled(*node, *this);
    node = next;
  }
  auto actions = std::move(actions_);
  producer_.reset();
  lock.unlock();
  for (auto& action : actions) action();
}

std::shared_ptr<Producer> ObjectState::producer() const {
  std::lock_guard lock(mutex_);
  return producer_.lock();
}

bool ObjectState::add_waiter(WaitNode& node) const {
  std::lock_guard lock(mutex_);
  if (settled_) return false;
  node.next = waiters_;
  if (waiters_) waiters_->previous = &node;
  waiters_ = &node;
  return true;
}

void ObjectState::remove_waiter(WaitNode& node) const {
  std::lock_guard lock(mutex_);
  if (node.previous)
    node.previous->next = node.next;
  else
    waiters_ = node.next;
  if (node.next) node.next->previous = node.previous;
}

bool ObjectState::wait(Deadline deadline) const {
  if (is_settled()) return true;
  CHECK(context_ != nullptr);
  if (context_->loop.is_forked()) return false;
  Countdown countdown(context_->loop, 1);
  WaitNode node{.sink = &countdown};
  if (!add_waiter(node)) return true;
  const ObjectState* self = this;
  context_->blocked_calls.wait(context_->loop, countdown.event(), &self, 1, deadline);
  remove_waiter(node);
  return is_settled();
}

void ObjectState::then(UniqueFunction<void()> action) const {
  {
    std::lock_guard lock(mutex_);
    if (!settled_) {
      actions_.push_back(std::move(action));
      return;
    }
  }
  action();
}

namespace {

/// The view keeps the process's event loop alive, because giving up the pin needs it.
Buffer with_context(const ObjectContextPtr& context, const Buffer& bytes) {
  struct Pinned {
    ObjectContextPtr context;
    Buffer bytes;
  };
  auto owner = std::make_shared<const Pinned>(Pinned{context, bytes});
  return Buffer(owner->bytes.bytes(), owner);
}

}  // namespace

Result<Buffer> ObjectState::open(Deadline deadline) const {
  if (context_ && context_->loop.is_forked()) return forked_status();
  if (!wait(deadline)) {
    if (context_->shut_down)
      return cancelled("the runtime was stopped while an object was awaited");
    return deadline_exceeded("the object was not there in time" + BlockedCalls::take_cycle());
  }
  if (!failure_.ok()) return failure_;
  if (!value_.stored) return value_.bytes;
  Result<Buffer> bytes = value_.stored->open(deadline);
  if (!bytes.ok()) return bytes.status();
  return with_context(context_, *bytes);
}

void ObjectState::open(Deadline deadline, UniqueFunction<void(Result<Buffer>)> done) const {
  CHECK(is_settled());
  if (context_ && context_->loop.is_forked()) return done(forked_status());
  if (!failure_.ok()) return done(failure_);
  if (!value_.stored) return done(value_.bytes);
  value_.stored->open(deadline,
                      [context = context_, done = std::move(done)](Result<Buffer> bytes) mutable {
                        if (bytes.ok())
                          done(with_context(context, *bytes));
                        else
                          done(bytes.status());
                      });
}

Decoder ObjectState::decoder(Buffer bytes) const {
  return Decoder(std::move(bytes), value_.refs, context_);
}

std::vector<ObjectStatePtr> referred_objects(std::vector<ReferentPtr> referents) {
  std::vector<ObjectStatePtr> objects;
  objects.reserve(referents.size());
  for (ReferentPtr& referent : referents) objects.push_back(referred_object(std::move(referent)));
  return objects;
}

}  // namespace runtime
