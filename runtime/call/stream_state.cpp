#include "runtime/call/stream_state.h"

#include <algorithm>

#include "runtime/call/actor_options.h"
#include "runtime/call/call_owner.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/outgoing_call.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

StreamState::StreamState(CallerContextPtr context, std::uint32_t window)
    : context_(std::move(context)),
      window_(window),
      event_(std::make_unique<Event>(context_->loop)) {}

StreamState::~StreamState() = default;

BlockedCalls::Producers StreamState::producers() const {
  BlockedCalls::Producers producers;
  if (RunningCall::current()) producers.push_back(std::static_pointer_cast<Producer>(call_.lock()));
  return producers;
}

Result<ObjectStatePtr> StreamState::next(Deadline deadline) {
  if (context_->loop.is_forked()) return forked_status();
  for (;;) {
    std::optional<ObjectValue> value;
    std::uint64_t tell = 0;
    {
      std::lock_guard lock(mutex_);
      if (!values_.empty()) {
        value = std::move(values_.front());
        values_.pop_front();
        ++taken_;
        // Half a window at a time: the producer never waits for a consumer that keeps up.
        if (taken_ - told_ >= std::max(window_ / 2, 1u)) tell = told_ = taken_;
      } else if (end_) {
        return end_->ok() ? Result<ObjectStatePtr>(ObjectStatePtr())
                          : Result<ObjectStatePtr>(*end_);
      } else {
        event_->reset();
      }
    }
    if (value) {
      auto call = tell > 0 ? call_.lock() : nullptr;
      if (call) call->owner->tell_taken(call, tell);
      ObjectStatePtr taken = context_->objects.pending();
      taken->fulfil(*std::move(value));
      return taken;
    }
    if (context_->blocked_calls.wait(context_->loop, *event_, producers(), deadline)) continue;
    if (context_->shut_down) return cancelled("the runtime was stopped while a stream was read");
    return deadline_exceeded("the next value of the stream was not there in time" +
                             BlockedCalls::take_cycle());
  }
}

bool StreamState::ended() const {
  std::lock_guard lock(mutex_);
  return values_.empty() && end_.has_value();
}

void StreamState::abandon() {
  if (context_->loop.is_forked()) return;
  std::deque<ObjectValue> dropped;  // outside of the lock
  std::shared_ptr<OutgoingCall> call;
  {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    dropped.swap(values_);
    if (!end_) call = call_.lock();
  }
  if (call)
    (void)call->owner->cancel(call, CancelMode::kCooperative);  // the actor stops or it is gone
}

void StreamState::put(ObjectValue value) {
  std::lock_guard lock(mutex_);
  if (abandoned_ || end_) return;  // the parameter goes after the lock
  if (values_.size() >= window_) {
    end_ = internal_error("the actor sent more values of a stream than its window of " +
                          std::to_string(window_));
  } else {
    values_.push_back(std::move(value));
  }
  event_->set();
}

void StreamState::end(Status status) {
  std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(status);
  event_->set();
}

}  // namespace runtime
