#include "runtime/call/outgoing_call.h"

#include <cstddef>
#include <cstring>

#include "runtime/call/actor_options.h"
#include "runtime/call/call_owner.h"
#include "runtime/call/call_target.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/registry.h"
#include "runtime/call/worker_link.h"
#include "runtime/observe/activity_page.h"

namespace runtime {

ObjectStatePtr OutgoingCall::blocker() const { return first_unsettled(arguments.refs); }

Status OutgoingCall::cancel(const std::shared_ptr<Producer>& self, CancelMode mode) {
  return owner->cancel(std::static_pointer_cast<OutgoingCall>(self), mode);
}

std::string OutgoingCall::describe() const {
  return owner->target().describe() + ": " + method->name;
}

// The limit of a task's call is the task's.
bool OutgoingCall::has_own_limit() const {
  return timeout.count() > 0 ? timeout < kDefaultCallTimeout
                             : deadline < deadline_after(kDefaultCallTimeout / 2);
}

// No connection leads to an actor that is not there yet.
void OutgoingCall::tell(const std::vector<WaitStep>& waits) const {
  if (result->is_settled()) return;
  const ActorId actor = owner->target().id();
  if (owner->is_restarting()) return owner->context()->node.tell_builder(actor, waits);
  const std::uint64_t sent_as = sequence.load();
  const std::shared_ptr<Channel> open = sent_as != 0 ? owner->worker()->channel() : nullptr;
  if (!open) return;  // it waits for something else than an actor
  CallNotice notice{actor, sent_as, CallNotice::Kind::kWaits};
  notice.waits = waits;
  send_notice(*open, notice, Flush::kNow);
}

void OutgoingCall::on_cycle(const std::shared_ptr<Producer>& self, const std::string& text,
                            bool fails) {
  cycle = text;
  if (!fails) return;
  result->fail(invalid_argument(describe() + ": " + text));
  (void)cancel(self, CancelMode::kCooperative);
}

void OutgoingCall::fail(const Status& why) const {
  const bool died = why.code() == ErrorCode::kActorDied || why.code() == ErrorCode::kUnavailable;
  if (forced && died)
    result->fail(cancelled(describe() + ": cancelled by force: " + why.message()));
  else
    result->fail(why.with_context(describe()));
}

void OutgoingCall::record_end(bool failed) const {
  if (sent_ns == 0) return;
  const CallerContext& context = *owner->context();
  const ActorId actor = owner->target().id();
  auto of_class = context.registry.find(owner->target().class_name());
  if (!of_class.ok()) return;
  ActivityPage& page = *context.activity;
  const auto number = static_cast<std::size_t>(method - (*of_class)->methods().data());
  activity::TraceEvent event;
  event.kind = activity::EventKind::kCalled;
  event.begin_ns = sent_ns;
  event.duration_ns = activity_now() - sent_ns;
  event.flow = call_flow(context.session, actor, sequence);
  std::memcpy(&event.actor, actor.bytes.data(), sizeof event.actor);
  event.tid = sent_by;
  event.method =
      number < (*of_class)->methods().size() ? page.class_of(**of_class).method(number) : 0;
  event.failed = failed;
  page.record(event);
}

}  // namespace runtime
