#include "runtime/node/hosted_actors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/control/control_channel.h"

namespace runtime {

namespace {
constexpr std::size_t kTailBytesMax = 1 << 20;  // of a process's last output, over all copies
}

struct HostedActors::Start {
  ActorSpec spec;  // until it is sent
  std::string class_name;
  Deadline deadline;
  ControlAnswerer answer;
};

struct HostedActors::Ending {
  explicit Ending(EventLoop& loop) : timer(loop.context()) {}
  Timer timer;  // of the grace
};

HostedActors::Actor::Actor() = default;
HostedActors::Actor::Actor(Actor&&) noexcept = default;
HostedActors::Actor& HostedActors::Actor::operator=(Actor&&) noexcept = default;
HostedActors::Actor::~Actor() = default;

HostedActors::HostedActors(EventLoop& loop, JobId job, ActorAddress process, Callbacks callbacks)
    : loop_(loop),
      job_(job),
      process_(std::move(process)),
      callbacks_(std::move(callbacks)),
      timer_(loop.context()) {}

HostedActors::~HostedActors() = default;

void HostedActors::start(ActorSpec spec, std::uint64_t incarnation, Deadline deadline,
                         ControlAnswerer answer) {
  const ActorId id = spec.actor;
  if (auto known = find(id, incarnation); known != actors_.end()) {
    if (known->second.start)
      known->second.start->answer = std::move(answer);
    else
      answer(ControlAnswer{address_of(id, incarnation, spec.class_name)});
    return;
  }
  Actor& actor = actors_[id];
  if (actor.start)
    std::exchange(actor.start, nullptr)->answer(cancelled("the actor was started again"));
  actor.ending.reset();
  actor.incarnation = incarnation;
  actor.start = std::make_unique<Start>();
  actor.start->class_name = spec.class_name;
  actor.start->spec = std::move(spec);
  actor.start->deadline = deadline;
  actor.start->answer = std::move(answer);
  if (channel_)
    build(id, actor);
  else if (deadline < timer_.expiry() || actors_.size() == 1)
    arm_timer();
}

std::vector<HostedActors::Unsent> HostedActors::take_unsent() {
  std::vector<Unsent> unsent;
  if (channel_) return unsent;
  timer_.cancel();
  for (auto& [id, actor] : std::exchange(actors_, {})) {
    if (actor.start)
      unsent.push_back(
          {std::move(actor.start->spec), actor.incarnation, std::move(actor.start->answer)});
  }
  return unsent;
}

void HostedActors::on_connected(const std::shared_ptr<Channel>& channel) {
  channel_ = channel;
  timer_.cancel();
  std::vector<ActorId> waiting;  // a request that cannot be sent takes its actor out at once
  for (const auto& [id, actor] : actors_) waiting.push_back(id);
  for (ActorId id : waiting) {
    if (auto found = actors_.find(id); found != actors_.end()) build(id, found->second);
  }
}

void HostedActors::build(ActorId id, Actor& actor) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(actor.start->deadline - steady_now());
  control::BuildActor body{std::exchange(actor.start->spec, {}), actor.incarnation};
  ControlRequest request{job_, std::max(left, std::chrono::milliseconds(1)), std::move(body)};
  send_request(
      *channel_, request,
      lifetime_.guard([this, id, incarnation = actor.incarnation](Result<ControlAnswer> built) {
        on_built(id, incarnation, built);
      }));
}

HostedActors::Actors::iterator HostedActors::find(ActorId id, std::uint64_t incarnation) {
  auto found = actors_.find(id);
  return found != actors_.end() && found->second.incarnation == incarnation ? found : actors_.end();
}

void HostedActors::on_built(ActorId id, std::uint64_t incarnation,
                            const Result<ControlAnswer>& built) {
  auto found = find(id, incarnation);
  if (found == actors_.end() || !found->second.start) return;
  // When the process died while building, its end says more than the broken connection does;
  // on_exit() answers.
  if (!built.ok() && built.status().code() == ErrorCode::kUnavailable && channel_->closed()) return;
  std::unique_ptr<Start> start = std::move(found->second.start);
  if (built.ok()) {
    return start->answer(ControlAnswer{address_of(id, incarnation, start->class_name)});
  }
  actors_.erase(found);
  if (built.status().code() == ErrorCode::kDeadlineExceeded) tell_stop(id, incarnation);
  start->answer(built.status());
  if (actors_.empty()) callbacks_.emptied();
}

ActorAddress HostedActors::address_of(ActorId id, std::uint64_t incarnation,
                                      const std::string& class_name) const {
  ActorAddress address = process_;
  address.actor = id;
  address.class_name = class_name;
  address.incarnation = incarnation;
  address.shared = true;
  return address;
}

void HostedActors::list(std::vector<control::ActorInstance>& to) const {
  for (const auto& [id, actor] : actors_) {
    if (!actor.start) to.push_back({id, actor.incarnation});
  }
}

bool HostedActors::stop(const control::StopActor& stop) {
  auto found = find(stop.actor, stop.incarnation);
  if (found == actors_.end()) return false;
  Actor& actor = found->second;
  if (stop.drain && !actor.start && channel_ && !channel_->closed()) {
    drain(stop.actor, actor, stop.grace, stop.reason);
    return true;
  }
  if (channel_) tell_stop(stop.actor, stop.incarnation);
  end(found, stop.reason);
  return true;
}

void HostedActors::drain(ActorId id, Actor& actor, std::chrono::milliseconds grace,
                         const std::string& reason) {
  const std::uint64_t incarnation = actor.incarnation;
  const Deadline by = deadline_after(grace);
  const bool first = !actor.ending;
  if (!first && by >= actor.ending->timer.expiry()) return;
  if (first) actor.ending = std::make_unique<Ending>(loop_);
  actor.ending->timer.expires_at(by);
  actor.ending->timer.async_wait(
      lifetime_.guard([this, id, incarnation, reason](boost::system::error_code ec) {
        if (!ec) on_drained(id, incarnation, reason, false);
      }));
  if (!first) return;
  ControlRequest request{job_, std::max(grace, std::chrono::milliseconds(1)),
                         control::DrainActor{id, incarnation}};
  send_request(*channel_, request,
               lifetime_.guard([this, id, incarnation, reason](Result<ControlAnswer> answer) {
                 on_drained(id, incarnation, reason, answer.ok());
               }));
}

void HostedActors::on_drained(ActorId id, std::uint64_t incarnation, std::string reason,
                              bool in_time) {
  auto found = find(id, incarnation);
  if (found == actors_.end() || channel_->closed())
    return;  // it was killed meanwhile, or its process has ended
  if (!in_time) {
    tell_stop(id, incarnation);
    reason += "; it had not served its calls in time and was killed";
  }
  end(found, std::move(reason));
}

void HostedActors::end(Actors::iterator actor, std::string reason) {
  const ActorId id = actor->first;
  const std::uint64_t incarnation = actor->second.incarnation;
  std::unique_ptr<Start> start = std::move(actor->second.start);
  actors_.erase(actor);
  if (start) {
    start->answer(cancelled(std::move(reason)));
  } else {
    DeathCause cause;
    cause.text = std::move(reason);
    cause.pid = process_.pid;
    callbacks_.exited(control::ActorsExited{{{id, incarnation}}, std::move(cause)});
  }
  if (actors_.empty()) callbacks_.emptied();
}

void HostedActors::tell_stop(ActorId id, std::uint64_t incarnation) {
  control::StopActor body;
  body.actor = id;
  body.incarnation = incarnation;
  send_request(*channel_, ControlRequest{job_, std::chrono::seconds(30), std::move(body)},
               [](Result<ControlAnswer>) {});
}

void HostedActors::on_exit(const DeathCause& cause) {
  timer_.cancel();
  control::ActorsExited exited{{}, cause};
  auto actors = std::exchange(actors_, {});
  if (actors.size() > 1)
    exited.cause.text += ", a process of " + std::to_string(actors.size()) + " shared actors";
  for (auto& [id, actor] : actors) {
    if (!actor.start) {
      exited.actors.push_back({id, actor.incarnation});
      continue;
    }
    std::string text = "actor " + actor.start->class_name + " " + id.short_hex() + " (pid " +
                       std::to_string(cause.pid) + " on node " + process_.node.short_hex() +
                       ") died while it was built: " + exited.cause.text;
    if (!cause.output_tail.empty()) text += "\n" + cause.output_tail;
    actor.start->answer(actor_died(std::move(text)));
  }
  if (exited.actors.empty()) return;
  // Every actor's record, and every caller, gets a copy of the cause.
  if (exited.cause.output_tail.size() * exited.actors.size() > kTailBytesMax)
    exited.cause.output_tail.clear();
  callbacks_.exited(std::move(exited));
}

void HostedActors::fail_late() {
  const Deadline now = steady_now();
  std::vector<ControlAnswerer> late;
  for (auto at = actors_.begin(); at != actors_.end();) {
    const bool is_late = at->second.start && at->second.start->deadline <= now;
    if (is_late) late.push_back(std::move(at->second.start->answer));
    at = is_late ? actors_.erase(at) : std::next(at);
  }
  for (ControlAnswerer& answer : late)
    answer(deadline_exceeded(
        "a shared actor was not ready at the deadline: its process has not connected"));
  if (!late.empty() && actors_.empty()) callbacks_.emptied();
}

void HostedActors::arm_timer() {
  Deadline earliest = Deadline::max();
  for (const auto& [id, actor] : actors_) {
    if (actor.start) earliest = std::min(earliest, actor.start->deadline);
  }
  timer_.expires_at(earliest);
  if (earliest == Deadline::max()) return;
  timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec || channel_) return;
    fail_late();
    arm_timer();
  }));
}

}  // namespace runtime
