#include "runtime/call/death_ref.h"

#include <utility>

#include "runtime/call/process.h"
#include "runtime/control/actor_directory.h"

namespace runtime {

namespace {

/// How long one question to the head stays open; then it is asked again, if a caller still waits.
constexpr std::chrono::minutes kDeathPollTime{10};

/// Asks the head for what is newer until the actor is dead. Kept alive by the question that is
/// open.
class DeathPoll : public std::enable_shared_from_this<DeathPoll> {
 public:
  DeathPoll(const std::shared_ptr<Process>& process, ActorId actor, const ObjectStatePtr& object)
      : process_(process), actor_(actor), object_(object) {}

  void ask() {
    auto process = process_.lock();
    if (!process || object_.expired()) return;
    ActorDirectory(process->node())
        .watch(actor_, version_, deadline_after(kDeathPollTime),
               [self = shared_from_this()](Result<ActorState> state) {
                 self->on_answer(std::move(state));
               });
  }

 private:
  void on_answer(Result<ActorState> state) {
    ObjectStatePtr object = object_.lock();
    auto process = process_.lock();
    if (!object || !process) return;
    if (state.ok() && state->phase == ActorPhase::kDead) {
      return settle(
          *process, *object,
          {death_status(*state), state->death.exit_code, state->death.signal, state->restarts});
    }
    if (state.ok()) {
      version_ = state->version;
      return ask();
    }
    switch (state.status().code()) {
      case ErrorCode::kDeadlineExceeded: return ask();
      // The head remembers a bounded number of the dead.
      case ErrorCode::kNotFound:
        return settle(*process, *object,
                      {actor_died("actor " + actor_.short_hex() + " has ended")});
      default:
        return object->fail(
            state.status().with_context("waiting for the end of actor " + actor_.short_hex()));
    }
  }

  static void settle(Process& process, ObjectState& object, ActorDeath death) {
    Encoder encoder;
    encode_value(encoder, death);
    object.fulfil(process.inlined(encoder));
  }

  const std::weak_ptr<Process> process_;
  const ActorId actor_;
  const std::weak_ptr<ObjectState> object_;
  std::uint64_t version_ = 0;  // touched on the loop once the first question is asked
};

}  // namespace

ObjectStatePtr death_of(const std::shared_ptr<Process>& process, ActorId actor) {
  auto object = std::make_shared<ObjectState>(process->object_context());
  std::make_shared<DeathPoll>(process, actor, object)->ask();
  return object;
}

}  // namespace runtime
