#include "runtime/call/state_hooks.h"

#include "runtime/call/object_context.h"
#include "runtime/control/membership.h"

namespace runtime {

namespace {
struct SaveState {};
}  // namespace

MethodKey save_state_key() {
  MethodKey key;
  key.type = typeid(SaveState);
  return key;
}

Status save_state_of(const void* actor, const StateHooks& hooks, ActorInstance self,
                     StateKeeper& keeper, Deadline deadline) {
  if (!hooks) return invalid_argument("the actor's class has no save_state() and restore_state()");
  if (self.actor.is_none()) return invalid_argument("save_state outside of an actor");
  InvokeOutput output;
  if (Status status = hooks.save(actor, output); !status.ok())
    return status.with_context("save_state");
  if (!output.encoder.refs().empty()) {
    return invalid_argument(
        "save_state: the state holds ObjectRefs, whose objects may end with their owner: save "
        "values, or names of files");
  }
  if (output.encoder.size() > kActorStateBytesMax) {
    return resource_exhausted("save_state: the state has " + std::to_string(output.encoder.size()) +
                              " bytes; at most " + std::to_string(kActorStateBytesMax) +
                              " are kept (write more to a file, and save its name)");
  }
  return keeper.keep_state(self, std::string(output.encoder.to_buffer().text()), deadline)
      .with_context("save_state");
}

Status restore_state_of(void* actor, const StateHooks& hooks, const std::string& saved,
                        const ObjectContextPtr& context) {
  if (!hooks)
    return invalid_argument("a state was saved, and the class has no restore_state() any more");
  Decoder decoder(Buffer::copy_of(saved), {}, context);
  return hooks.restore(actor, decoder).with_context("restore_state");
}

}  // namespace runtime
