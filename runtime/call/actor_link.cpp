#include "runtime/call/actor_link.h"

#include <utility>

#include "runtime/call/worker_link.h"
#include "runtime/control/node_client.h"

namespace runtime {

CauseVerdict judge(const CauseQuestion& question, const Result<ActorState>& state,
                   const std::string& actor) {
  const bool dead = state.ok() && state->phase == ActorPhase::kDead;
  CauseVerdict verdict;
  verdict.restarts =
      state.ok() && !dead && (state->is_restarting() || state->incarnation != question.incarnation);
  // The head knows every living actor, and of dead ones the last.
  const bool forgotten = state.status().code() == ErrorCode::kNotFound;
  const Status& reason = question.reason;
  verdict.why = dead || verdict.restarts ? death_status(*state)
                : forgotten ? actor_died("actor " + actor + " has ended: " + reason.message())
                : state.status().code() == ErrorCode::kActorDied ? state.status()
                : reason.code() == ErrorCode::kInvalidArgument
                    ? reason
                    : unavailable("connection lost, the call may have run: " + reason.message());
  verdict.has_ended = verdict.why.code() == ErrorCode::kActorDied && !verdict.restarts;
  return verdict;
}

ActorLink::ActorLink(Requests& requests, std::shared_ptr<WorkerLink> worker,
                     std::uint64_t incarnation)
    : requests_(requests), worker_(std::move(worker)), incarnation_(incarnation) {}

ActorLink::~ActorLink() = default;

void ActorLink::open() {
  if (state_ != State::kIdle) return;
  if (stale_) {
    state_ = State::kResolving;
    return requests_.ask_address();
  }
  channel_ = requests_.connect_to(*worker_);
  state_ = channel_ ? State::kOpen : State::kConnecting;
}

void ActorLink::set_connected(std::shared_ptr<Channel> channel) {
  state_ = State::kOpen;
  channel_ = std::move(channel);
}

void ActorLink::reset() {
  state_ = State::kIdle;
  channel_.reset();
}

void ActorLink::close(Status why) {
  state_ = State::kClosed;
  closed_ = std::move(why);
  is_closed_ = true;
  channel_.reset();
}

bool ActorLink::on_answered(std::uint64_t incarnation) {
  if (incarnation != incarnation_) return --older_in_flight_ == 0;
  --in_flight_;
  return false;
}

void ActorLink::ask(Status reason, std::uint64_t refused_by) {
  state_ = State::kAsking;
  channel_.reset();
  const bool refused = refused_by != 0;
  requests_.ask_cause({refused ? refused_by : incarnation_, std::move(reason), refused});
}

bool ActorLink::is_ending(const CauseQuestion& question, const Result<ActorState>& state) const {
  return question.refused && state.ok() && state->phase == ActorPhase::kAlive &&
         state->incarnation == question.incarnation && incarnation_ == question.incarnation;
}

void ActorLink::on_cause(const CauseQuestion& question, bool restarts, bool calls_wait) {
  const bool is_newest = incarnation_ == question.incarnation;  // else a newer address came
  stale_ = restarts && is_newest;
  state_ = State::kIdle;
  if (restarts || !is_newest || !calls_wait) return;
  // The way to the actor is broken, or its node is: attempts at full speed would not help.
  state_ = State::kPausing;
  requests_.pause(backoff_.next());
}

void ActorLink::on_address(const Status& status) {
  state_ = State::kIdle;
  if (status.ok())
    stale_ = false;
  else if (status.code() != ErrorCode::kUnavailable &&
           status.code() != ErrorCode::kDeadlineExceeded)
    close(status);
}

void ActorLink::on_pause_over() {
  if (state_ == State::kPausing) state_ = State::kIdle;  // else the actor was found elsewhere
}

bool ActorLink::move_to(std::shared_ptr<WorkerLink> worker, std::uint64_t incarnation) {
  const bool elsewhere = worker != worker_;
  if (!elsewhere) drained_.reset();  // calls to the new one run on the same connection
  worker_ = std::move(worker);
  older_in_flight_ += std::exchange(in_flight_, 0);
  incarnation_ = incarnation;
  stale_ = false;
  return elsewhere;
}

}  // namespace runtime
