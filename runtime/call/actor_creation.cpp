#include "runtime/call/actor_creation.h"

#include "runtime/call/actor_options.h"
#include "runtime/control/actor_directory.h"
#include "runtime/core/log.h"

namespace runtime {

ActorCreation::ActorCreation(NodeClient& node, const ObjectStatePtr& created, const ActorSpec& spec,
                             std::chrono::milliseconds timeout)
    : AwaitedActor(node, created, spec.class_name + " " + spec.actor.short_hex(),
                   // The one that exists has another id.
                   {spec.actor, spec.get_if_exists ? spec.name : "", spec.name_space},
                   timeout < ActorOptions{}.create_timeout),
      actor_(spec.actor) {}

std::shared_ptr<ActorCreation> ActorCreation::of(NodeClient& node, const ObjectStatePtr& created,
                                                 const ActorSpec& spec,
                                                 std::chrono::milliseconds timeout) {
  std::shared_ptr<ActorCreation> creation(new ActorCreation(node, created, spec, timeout));
  created->set_producer(creation);
  return creation;
}

Status ActorCreation::cancel(const std::shared_ptr<Producer>& /*self*/, CancelMode /*mode*/) {
  ActorDirectory(node()).kill(actor_, false, deadline_after(std::chrono::seconds(30)),
                              [constructor = describe()](const Status& status) {
                                if (!status.ok())
                                  LOG(debug, "ending {}: {}", constructor, status.message());
                              });
  return {};
}

}  // namespace runtime
