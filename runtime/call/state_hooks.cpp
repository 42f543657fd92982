#include "runtime/call/state_hooks.h"

#include "runtime/call/process.h"
#include "runtime/control/actor_directory.h"

namespace runtime {

namespace {
struct SaveState {};
}  // namespace

MethodKey save_state_key() {
  MethodKey key;
  key.type = typeid(SaveState);
  return key;
}

Status save_state_of(const void* actor, const StateHooks& hooks, Process& process,
                     Deadline deadline) {
  if (!hooks) return invalid_argument("the actor's class has no save_state() and restore_state()");
  const ActorInstance self = process.current_actor();
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
  const Status saved = process.ask([&](NodeClient::Done done) {
    ActorDirectory(process.node())
        .save_state(self.actor, self.incarnation, std::string(output.encoder.to_buffer().text()),
                    bounded(deadline), std::move(done));
  });
  return saved.with_context("save_state");
}

Status restore_state_of(void* actor, const StateHooks& hooks, const std::string& saved,
                        const std::shared_ptr<Process>& process) {
  if (!hooks)
    return invalid_argument("a state was saved, and the class has no restore_state() any more");
  Decoder decoder(Buffer::copy_of(saved), {}, process);
  return hooks.restore(actor, decoder).with_context("restore_state");
}

}  // namespace runtime
