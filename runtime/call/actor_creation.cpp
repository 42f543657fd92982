#include "runtime/call/actor_creation.h"

#include <utility>

#include "runtime/call/actor_options.h"
#include "runtime/call/blocked_calls.h"
#include "runtime/call/process.h"
#include "runtime/control/actor_directory.h"
#include "runtime/core/log.h"

namespace runtime {

std::shared_ptr<ActorCreation> ActorCreation::of(const std::shared_ptr<ObjectState>& created,
                                                 const std::string& class_name, ActorId actor,
                                                 std::chrono::milliseconds timeout) {
  std::shared_ptr<ActorCreation> creation(
      new ActorCreation(created, describe_constructor(class_name, actor), actor, timeout));
  created->set_producer(creation);
  return creation;
}

bool ActorCreation::has_own_limit() const { return timeout_ < ActorOptions{}.create_timeout; }

void ActorCreation::on_cycle(const std::shared_ptr<Producer>& self, const std::string& cycle,
                             bool fails) {
  cycle_ = cycle;
  if (!fails) return;
  created_->fail(invalid_argument(constructor_ + ": " + cycle));
  (void)cancel(self, CancelMode::kForce);
}

Status ActorCreation::cancel(const std::shared_ptr<Producer>& /*self*/, CancelMode /*mode*/) {
  ActorDirectory(created_->process()->node())
      .kill(actor_, false, deadline_after(std::chrono::seconds(30)),
            [constructor = constructor_](const Status& status) {
              if (!status.ok()) LOG(debug, "ending {}: {}", constructor, status.message());
            });
  return {};
}

Status ActorCreation::with_cycle(const Status& why) const {
  return cycle_.empty() ? why : Status(why.code(), why.message() + ": " + cycle_);
}

}  // namespace runtime
