#include "runtime/head/actor_requests.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/head/actor_rules.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

Status no_such_actor(ActorId actor) { return not_found("no actor has the id " + actor.hex()); }

}  // namespace

// -- Creation and names

Status ActorRequests::complete(const HeadCall& call, ActorSpec& spec) const {
  const bool named_none = spec.name_space.empty();
  spec.name_space = spec.name.empty() ? "" : context_.name_space(call, spec.name_space);
  spec.saved_state.reset();
  spec.outlives_job = spec.detached;
  if (spec.detached) {
    spec.owner = {};
    const JobRecord* job = context_.tables.jobs().find(call.job);
    if (named_none && job && job->driver.name_space.empty()) {
      return invalid_argument(describe(spec) +
                              " is to be detached: give it or its driver a namespace, so that "
                              "other drivers can name it "
                              "(ActorOptions::name_space, RuntimeOptions::name_space)");
    }
  }
  if (spec.owner.is_none()) return {};
  const ActorRecord* owner = context_.tables.actors().find(spec.owner);
  if (!owner || !is_started(owner->phase) || owner->incarnation != spec.owner_incarnation ||
      owner->ending) {
    return cancelled(describe(spec) + " is not created: its owner, actor " +
                     spec.owner.short_hex() + ", has ended");
  }
  spec.outlives_job = owner->spec.outlives_job;
  return {};
}

Status ActorRequests::check_new(const HeadCall& call, const ActorSpec& spec) const {
  const ClusterTables& tables = context_.tables;
  if (spec.actor.is_none()) return invalid_argument("an actor needs an id");
  if (spec.class_name.empty()) return invalid_argument("an actor needs a class");
  if (!tables.jobs().runs(call.job) && !(spec.outlives_job && !spec.owner.is_none())) {
    return invalid_argument(describe(spec) + ": job " + call.job.short_hex() +
                            " is not running; register a driver first");
  }
  if (spec.detached && spec.name.empty()) {
    return invalid_argument(
        describe(spec) + " is to be detached: give it a name, so that others can find and end it");
  }
  const GroupState* group =
      spec.detached && spec.bundle ? tables.groups().find(spec.bundle->group) : nullptr;
  if (spec.detached && spec.bundle && !(group && group->spec.detached)) {
    return invalid_argument(describe(spec) +
                            " is to be detached: it cannot stand on a placement group that ends "
                            "with its job (GroupSpec::detached)");
  }
  if (!spec.name.empty()) {
    if (const ActorRecord* other = tables.actors().named(spec.name_space, spec.name)) {
      return invalid_argument("the actor name '" + spec.name + "' is taken by " +
                              describe(other->spec) + " of job " + other->job.short_hex() +
                              " in namespace '" + spec.name_space + "'");
    }
  }
  if (queue_.actors().size() >= context_.options.pending_max) {
    return resource_exhausted(std::to_string(queue_.actors().size()) +
                              " actors wait for a place already");
  }
  return {};
}

void ActorRequests::serve(const HeadCall& call, control::CreateActor& body,
                          ControlAnswerer answer) {
  const ActorId id = body.spec.actor;
  const ActorRecord* known = context_.tables.actors().find(id);
  // The same request again (its first answer was lost): join the first.
  if (known && known->job == call.job) {
    queue_.extend(id, call.deadline);
    return waiters_.add_for_address(id, call.deadline, std::move(answer));
  }
  if (known) return answer(invalid_argument("actor " + id.short_hex() + " exists in another job"));
  if (Status status = complete(call, body.spec); !status.ok()) return answer(status);
  if (body.spec.get_if_exists) {
    if (body.spec.name.empty())
      return answer(
          invalid_argument(describe(body.spec) + ": get_if_exists needs a name to look for"));
    const ActorRecord* other = context_.tables.actors().named(body.spec.name_space, body.spec.name);
    if (other && other->spec.class_name == body.spec.class_name)
      return waiters_.add_for_address(other->spec.actor, call.deadline, std::move(answer));
  }
  if (Status status = check_new(call, body.spec); !status.ok()) return answer(status);
  context_.commit(command::AddActor{call.job, std::move(body.spec)});
  waiters_.add_for_address(id, call.deadline + kAnswerGrace, std::move(answer));
  actors_.begin(id, call.deadline);
}

// -- Questions

const ActorRecord* ActorRequests::named(const HeadCall& call, const std::string& name,
                                        const std::string& name_space) const {
  return context_.tables.actors().named(context_.name_space(call, name_space), name);
}

void ActorRequests::serve(const HeadCall& call, control::ResolveActor& body,
                          ControlAnswerer answer) {
  const ActorRecord* record = body.actor.is_none() ? named(call, body.name, body.name_space)
                                                   : context_.tables.actors().find(body.actor);
  if (!record) {
    std::string what = body.actor.is_none() ? "actor is named '" + body.name + "' in namespace '" +
                                                  context_.name_space(call, body.name_space) + "'"
                                            : "actor has the id " + body.actor.hex();
    return answer(not_found("no " + what + " (a dead actor's name is free again)"));
  }
  waiters_.add_for_address(record->spec.actor, call.deadline, std::move(answer));
}

void ActorRequests::serve(const HeadCall& call, control::QueryActor& body, ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record) return answer(no_such_actor(body.actor));
  const bool other = body.incarnation != 0 && body.incarnation != record->incarnation;
  if (other || record->phase == ActorPhase::kDead || record->state().is_restarting())
    return answer(ControlAnswer{record->state()});
  const Deadline until = std::min(call.deadline, context_.now() + context_.options.death_wait);
  waiters_.add_for_end(
      body.actor, until,
      [this, actor = body.actor, answer = std::move(answer)](const ActorRecord* ended) mutable {
        const ActorRecord* current = ended ? ended : context_.tables.actors().find(actor);
        if (current)
          answer(ControlAnswer{current->state()});
        else
          answer(no_such_actor(actor));
      });
}

void ActorRequests::serve(const HeadCall& call, control::WatchActor& body, ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record) return answer(no_such_actor(body.actor));
  if (record->version != body.version) return answer(ControlAnswer{record->state()});
  waiters_.add_for_change(body.actor, call.deadline, std::move(answer));
}

void ActorRequests::serve(const HeadCall& call, control::ConstructorAwaited& body,
                          ControlAnswerer answer) {
  if (body.notice.size() > control::ConstructorAwaited::kNoticeBytesMax)
    return answer(invalid_argument("the notice about an awaited constructor is too long"));
  answer(ControlAnswer{});
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record && !body.name.empty()) record = named(call, body.name, body.name_space);
  if (!record || record->phase != ActorPhase::kStarting) return;
  body.actor = record->spec.actor;
  ControlRequest request{record->job, time_left(context_.now(), call.deadline), std::move(body)};
  context_.links.request(record->node, std::move(request), [](const Result<ControlAnswer>&) {});
}

void ActorRequests::serve(const HeadCall&, control::SaveState& body, ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record || !is_started(record->phase) || record->incarnation != body.incarnation) {
    return answer(cancelled("actor " + body.actor.short_hex() +
                            " has been replaced: its state is no longer saved"));
  }
  const std::size_t bytes_max = context_.options.state_bytes_max;
  if (body.state.size() > bytes_max) {
    return answer(resource_exhausted("the state of " + describe(record->spec) + " has " +
                                     std::to_string(body.state.size()) + " bytes; at most " +
                                     std::to_string(bytes_max) +
                                     " are kept (write more to a file, and save its name)"));
  }
  context_.commit(command::ActorStateSaved{body.actor, std::move(body.state)});
  answer(ControlAnswer{});
}

// -- Ends

void ActorRequests::answer_at_end(ActorId actor, Deadline deadline, ControlAnswerer answer) {
  waiters_.add_for_end(
      actor, deadline, [actor, answer = std::move(answer)](const ActorRecord* ended) mutable {
        if (ended)
          answer(ControlAnswer{});
        else
          answer(deadline_exceeded("actor " + actor.short_hex() + " has not ended yet"));
      });
}

void ActorRequests::serve(const HeadCall& call, control::KillActor& body, ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record) return answer(no_such_actor(body.actor));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{});
  if (call.has_begun && call.about != record->incarnation) return answer(ControlAnswer{});
  if (!body.may_restart) context_.commit(command::ActorEnds{body.actor});
  if (record->phase == ActorPhase::kPending) {
    if (body.may_restart && record->restarts > 0)
      return answer(ControlAnswer{});  // as good as killed already
    actors_.die(body.actor, cause_of("killed before it had a place"),
                cancelled(describe(record->spec) + " was killed before it had a place"));
    return answer(ControlAnswer{});
  }
  ledger_.note_begun(call, record->incarnation);
  answer_at_end(body.actor, call.deadline, std::move(answer));
  actors_.stop(*record, {}, "killed on request", false);
}

void ActorRequests::serve(const HeadCall& call, control::TerminateActor& body,
                          ControlAnswerer answer) {
  const ActorRecord* record = context_.tables.actors().find(body.actor);
  if (!record) return answer(no_such_actor(body.actor));
  if (call.has_begun && call.about != record->incarnation) return answer(ControlAnswer{});
  if (record->phase == ActorPhase::kDead && body.restart && !call.has_begun)
    return answer(actor_died(describe(record->spec) + " cannot be started again: it has ended"));
  if (record->phase == ActorPhase::kDead) return answer(ControlAnswer{});
  if (record->phase != ActorPhase::kAlive) {           // no calls wait at it yet
    if (body.restart) return answer(ControlAnswer{});  // as good as started again
    control::KillActor kill{body.actor, false};
    return serve(call, kill, std::move(answer));
  }
  if (body.restart && !may_restart(context_.tables, *record)) {
    return answer(invalid_argument(describe(record->spec) +
                                   " cannot be started again: it has used " +
                                   std::to_string(record->restarts - record->moves) + " of " +
                                   std::to_string(record->spec.max_restarts) +
                                   " restarts, or is being ended (ActorOptions::max_restarts)"));
  }
  if (!body.restart) context_.commit(command::ActorEnds{body.actor});
  ledger_.note_begun(call, record->incarnation);
  answer_at_end(body.actor, call.deadline + kEndGrace, std::move(answer));
  actors_.stop(*record, time_left(context_.now(), call.deadline),
               body.restart ? "restarted on request" : "terminated", true);
}

}  // namespace runtime
