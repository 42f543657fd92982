#include "runtime/node/actor_starts.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"

namespace runtime {

ActorStarts::Start::Start(EventLoop& loop, JobId of, control::StartActor wanted, Deadline by,
                          Deadline patience_ends, ControlAnswerer answerer)
    : job(of),
      request(std::move(wanted)),
      actor(request.spec.actor),
      deadline(by),
      patient_until(patience_ends),
      answer(std::move(answerer)),
      timer(loop.context()) {}

ActorStarts::ActorStarts(EventLoop& loop, ActorStartsOptions options, Callbacks callbacks)
    : loop_(loop), options_(options), callbacks_(std::move(callbacks)) {}

void ActorStarts::add(JobId job, control::StartActor request, Deadline deadline,
                      ControlAnswerer answer) {
  // The last attempt is answered in time for the head.
  const Deadline patient_until =
      std::min(deadline - (deadline - steady_now()) / 20, deadline_after(options_.patience));
  starts_.push_back(std::make_shared<Start>(loop_, job, std::move(request), deadline, patient_until,
                                            std::move(answer)));
  attempt(starts_.back());
}

void ActorStarts::add_again(const StartPtr& start, ActorSpec spec, ControlAnswerer answer,
                            const Status& why) {
  start->request.spec = std::move(spec);
  start->answer = std::move(answer);
  starts_.push_back(start);
  fail(start, why);
}

bool ActorStarts::join(const control::StartActor& wanted, ControlAnswerer& answer) {
  for (const StartPtr& start : starts_) {
    if (start->request.spec.actor != wanted.spec.actor ||
        start->request.incarnation != wanted.incarnation)
      continue;
    start->answer = std::move(answer);
    return true;
  }
  return false;
}

void ActorStarts::attempt(const StartPtr& start) {
  const control::StartActor& wanted = start->request;
  const auto found = [this, start](Result<LocalProgram> program) {
    if (!program.ok() || !callbacks_.find_folder || !start->answer) return begin(start, program);
    callbacks_.find_folder(start->job, start->request, start->deadline,
                           lifetime_.guard([this, start, program](Result<std::string> folder) {
                             if (!folder.ok()) return begin(start, folder.status());
                             start->request.driver.working_dir = *std::move(folder);
                             begin(start, program);
                           }));
  };
  callbacks_.find_program(wanted.driver, wanted.driver_node, start->deadline,
                          lifetime_.guard(found));
}

void ActorStarts::begin(const StartPtr& start, const Result<LocalProgram>& program) {
  Status begun;
  if (start->answer) begun = program.ok() ? callbacks_.begin(start, *program) : program.status();
  if (!begun.ok()) return fail(start, begun);
  starts_.remove(start);
}

void ActorStarts::fail(const StartPtr& start, const Status& why) {
  ++start->failures;
  const bool passes = why.code() == ErrorCode::kResourceExhausted;
  start->pause = std::clamp(2 * start->pause, options_.pause_first, options_.pause_max);
  if (!passes || stopped_ || steady_now() + start->pause > start->patient_until) {
    starts_.remove(start);
    return std::exchange(start->answer, nullptr)(
        start->failures == 1 ? why
                             : Status(why.code(), why.message() + " (tried " +
                                                      std::to_string(start->failures) + " times)"));
  }
  if (std::exchange(start->logged, why.message()) != why.message())
    LOG(warn, "actor {} {}: {}; it is tried again", start->request.spec.class_name,
        start->request.spec.actor.short_hex(), why.message());
  start->timer.expires_after(start->pause);
  start->timer.async_wait(lifetime_.guard([this, start](boost::system::error_code ec) {
    if (ec) return;
    if (start->answer) return attempt(start);
    starts_.remove(start);  // it was cancelled meanwhile
  }));
}

std::string ActorStarts::trouble(ActorId actor) const {
  for (const StartPtr& start : starts_) {
    if (start->actor == actor && start->answer && start->failures > 0)
      return start->logged + " (tried " + std::to_string(start->failures) +
             (start->failures == 1 ? " time" : " times") + " so far)";
  }
  return {};
}

void ActorStarts::cancel(ActorId actor, std::uint64_t incarnation, const std::string& reason) {
  for (const StartPtr& start : starts_) {
    const bool wanted =
        start->request.spec.actor == actor && start->request.incarnation == incarnation;
    if (wanted && start->answer) std::exchange(start->answer, nullptr)(cancelled(reason));
  }
}

void ActorStarts::cancel_job(JobId job) {
  for (const StartPtr& start : starts_) {
    if (start->answer && start->job == job && !start->request.spec.outlives_job)
      std::exchange(start->answer, nullptr)(cancelled("its job ended"));
  }
}

}  // namespace runtime
