#include "runtime/call/death_ref.h"

#include <utility>

#include "runtime/call/object_state.h"
#include "runtime/call/query_context.h"
#include "runtime/control/actor_directory.h"

namespace runtime {

namespace {

/// How long one question to the head stays open; then it is asked again, if a caller still waits.
constexpr std::chrono::minutes kDeathPollTime{10};

/// Asks the head for what is newer until the actor is dead. Kept alive by the question that is
/// open.
class DeathPoll : public std::enable_shared_from_this<DeathPoll> {
 public:
  DeathPoll(const QueryContextPtr& queries, ActorId actor, const ObjectStatePtr& object)
      : queries_(queries), actor_(actor), object_(object) {}

  void ask() {
    auto queries = queries_.lock();
    if (!queries || object_.expired()) return;
    ActorDirectory(queries->node)
        .watch(actor_, version_, deadline_after(kDeathPollTime),
               [self = shared_from_this()](Result<ActorState> state) {
                 self->on_answer(std::move(state));
               });
  }

 private:
  void on_answer(Result<ActorState> state) {
    ObjectStatePtr object = object_.lock();
    if (!object) return;
    if (state.ok() && state->phase == ActorPhase::kDead) {
      return settle(*object, {death_status(*state), state->death.exit_code, state->death.signal,
                              state->restarts});
    }
    if (state.ok()) {
      version_ = state->version;
      return ask();
    }
    switch (state.status().code()) {
      case ErrorCode::kDeadlineExceeded: return ask();
      // The head remembers a bounded number of the dead.
      case ErrorCode::kNotFound:
        return settle(*object, {actor_died("actor " + actor_.short_hex() + " has ended")});
      default:
        return object->fail(
            state.status().with_context("waiting for the end of actor " + actor_.short_hex()));
    }
  }

  static void settle(ObjectState& object, ActorDeath death) {
    Encoder encoder;
    encode_value(encoder, death);
    ObjectValue value;
    value.bytes = encoder.to_buffer();
    object.fulfil(std::move(value));
  }

  const std::weak_ptr<const QueryContext> queries_;
  const ActorId actor_;
  const std::weak_ptr<ObjectState> object_;
  std::uint64_t version_ = 0;  // touched on the loop once the first question is asked
};

}  // namespace

ObjectStatePtr death_of(const QueryContextPtr& queries, ActorId actor) {
  auto object = std::make_shared<ObjectState>(object_context(queries));
  std::make_shared<DeathPoll>(queries, actor, object)->ask();
  return object;
}

}  // namespace runtime
