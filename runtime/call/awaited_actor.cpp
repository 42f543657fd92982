#include "runtime/call/awaited_actor.h"

#include <utility>

#include "runtime/call/actor_options.h"
#include "runtime/call/blocked_calls.h"
#include "runtime/call/call_wire.h"
#include "runtime/control/actor_directory.h"

namespace runtime {

AwaitedActor::AwaitedActor(NodeClient& node, ObjectStatePtr built, const std::string& who,
                           control::ConstructorAwaited actor, bool has_own_limit)
    : node_(node),
      built_(std::move(built)),
      constructor_(who + ": " + kConstructor),
      actor_(std::move(actor)),
      has_own_limit_(has_own_limit) {}

void AwaitedActor::tell(const std::vector<WaitStep>& waits) const {
  if (!built_->is_settled()) tell_builder(node_, actor_, waits);
}

void AwaitedActor::on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                            bool fails) {
  cycle_ = cycle;
  if (!fails) return;
  built_->fail(invalid_argument(constructor_ + ": " + cycle));
  (void)cancel(self, CancelMode::kForce);
}

Status AwaitedActor::cancel(const std::shared_ptr<Producer>& /*self*/, CancelMode /*mode*/) {
  return {};
}

Status AwaitedActor::with_cycle(const Status& why) const {
  return cycle_.empty() ? why : Status(why.code(), why.message() + ": " + cycle_);
}

void AwaitedActor::tell_builder(NodeClient& node, control::ConstructorAwaited actor,
                                const std::vector<WaitStep>& waits) {
  CallNotice notice{actor.actor, 0, CallNotice::Kind::kWaits};
  notice.waits = waits;
  actor.notice = encode_notice(notice).text();
  ActorDirectory(node).tell_builder(std::move(actor));
}

}  // namespace runtime
