#include "runtime/control/actor_directory.h"

#include <utility>

namespace runtime {

namespace {
/// What is told is old then.
constexpr std::chrono::seconds kTellPatience{2};
}  // namespace

void ActorDirectory::create(ActorSpec spec, Deadline deadline, Callback<ActorAddress> done) {
  node_.ask(control::CreateActor{std::move(spec)}, deadline, std::move(done));
}

void ActorDirectory::resolve(ActorId actor, Deadline deadline, Callback<ActorAddress> done) {
  node_.ask(control::ResolveActor{actor, "", ""}, deadline, std::move(done));
}

void ActorDirectory::resolve_name(std::string name, std::string name_space, Deadline deadline,
                                  Callback<ActorAddress> done) {
  node_.ask(control::ResolveActor{{}, std::move(name), std::move(name_space)}, deadline,
            std::move(done));
}

void ActorDirectory::state(ActorId actor, std::uint64_t incarnation, Deadline deadline,
                           Callback<ActorState> done) {
  node_.ask(control::QueryActor{actor, incarnation}, deadline, std::move(done));
}

void ActorDirectory::kill(ActorId actor, bool may_restart, Deadline deadline, Done done) {
  node_.tell(control::KillActor{actor, may_restart}, deadline, std::move(done));
}

void ActorDirectory::tell_builder(control::ConstructorAwaited awaited) {
  if (awaited.notice.size() > control::ConstructorAwaited::kNoticeBytesMax) return;
  node_.tell(std::move(awaited), deadline_after(kTellPatience), [](const Status&) {});
}

void ActorDirectory::park(ActorId actor, Deadline deadline, Done done) {
  node_.tell(control::ParkActor{actor}, deadline, std::move(done));
}

void ActorDirectory::terminate(ActorId actor, bool restart, Deadline deadline, Done done) {
  node_.tell(control::TerminateActor{actor, restart}, deadline, std::move(done));
}

void ActorDirectory::watch(ActorId actor, std::uint64_t version, Deadline deadline,
                           Callback<ActorState> done) {
  node_.ask(control::WatchActor{actor, version}, deadline, std::move(done));
}

void ActorDirectory::save_state(ActorId actor, std::uint64_t incarnation, std::string state,
                                Deadline deadline, Done done) {
  node_.tell(control::SaveState{actor, incarnation, std::move(state)}, deadline, std::move(done));
}

}  // namespace runtime
