#include "runtime/actor/outgoing_call.h"

#include "runtime/actor/actor_options.h"
#include "runtime/actor/blocked_calls.h"

namespace runtime {

std::string OutgoingCall::constructor() const { return client->describe() + ": " + kConstructor; }

// The limit of a task's call is the task's.
bool OutgoingCall::has_own_limit() const {
  return timeout.count() > 0 ? timeout < kDefaultCallTimeout
                             : deadline < deadline_after(kDefaultCallTimeout / 2);
}

void OutgoingCall::on_cycle(const std::shared_ptr<Producer>& self, const std::string& text,
                            bool fails) {
  cycle = text;
  if (!fails) return;
  result->fail(invalid_argument(describe() + ": " + text));
  (void)cancel(self, CancelMode::kCooperative);
}

}  // namespace runtime
