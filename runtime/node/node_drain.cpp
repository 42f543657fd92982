// A node's part in leaving the cluster: it asks to be drained, tells its processes, ends what stays
// to the last, and goes when the head says so.
#include <algorithm>
#include <csignal>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"
#include "runtime/core/simulation.h"
#include "runtime/node/node.h"

namespace runtime {

namespace {

// Between the end that a drain was promised and the node's own: the head's word comes first, if the
// head is there.
constexpr std::chrono::milliseconds kLeaveMargin{3000};
// Drivers are told so long before the node goes, or when half of the time is over.
constexpr std::chrono::milliseconds kJobsWarned{10'000};
constexpr std::chrono::milliseconds kPreemptionMargin{5'000};

}  // namespace

void Node::drain(std::string reason, std::chrono::milliseconds time) {
  loop_.post([this, alive = alive_, reason = std::move(reason), time] {
    if (*alive) drain_on_loop(reason, time, [](const Status&) {});
  });
}

void Node::drain_on_loop(const std::string& reason, std::chrono::milliseconds time,
                         UniqueFunction<void(Status)> done) {
  if (stopping_) return done({});
  LOG(info, "asking the head to drain this node: {} ({} ms)", reason, time.count());
  // Also when the head is away, or does not come back.
  leave_by(deadline_after(time) + kLeaveMargin, reason);
  ControlRequest request{{}, time + kLeaveMargin, control::DrainNode{options_.node, time, reason}};
  to_head(std::move(request),
          [this, alive = alive_, done = std::move(done)](Result<ControlAnswer> answer) mutable {
            if (*alive && !answer.ok())
              LOG(warn, "this node is not drained: {}", answer.status().message());
            done(answer.status());
          });
}

void Node::leave_by(Deadline deadline, const std::string& reason) {
  if (deadline >= leave_at_) return;
  leave_at_ = deadline;
  leave_timer_.expires_at(deadline);
  leave_timer_.async_wait([this, alive = alive_, reason](boost::system::error_code ec) {
    if (!ec && *alive)
      stop_on_loop(cancelled("drained (" + reason + "), and the head has not said more in time"));
  });
}

void Node::on_node_drains(const control::NodeDrains& drains) {
  drains_[drains.node] = {drains, deadline_after(drains.drain.left)};
  const Deadline long_ago = steady_now() - kDrainsKept;
  std::erase_if(drains_, [&](const auto& entry) { return entry.second.second < long_ago; });
  for (auto& [channel, client] : clients_) {
    if (channel->peer().role == Role::kWorker || channel->peer().role == Role::kDriver)
      send_event(*client.channel, drains);
  }
  if (drains.node != options_.node) return;
  const bool first = !drained_;
  drained_ = drains.drain.reason;
  objects_->keep_what_ends();
  workers_->begin_drain();
  const Deadline deadline = deadline_after(drains.drain.left);
  leave_by(deadline + kLeaveMargin, drains.drain.reason);
  jobs_timer_.expires_at(deadline - std::min(drains.drain.left / 2, kJobsWarned));
  jobs_timer_.async_wait([this, alive = alive_](boost::system::error_code ec) {
    if (!ec && *alive) warn_jobs();
  });
  if (first)
    LOG(info, "this node is drained ({}): it leaves within {} ms", drains.drain.reason,
        drains.drain.left.count());
}

void Node::tell_of_drains(Channel& channel) {
  const Deadline now = steady_now();
  for (const auto& [node, known] : drains_) {
    control::NodeDrains event = known.first;
    event.drain.left = std::max(std::chrono::milliseconds(0),
                                std::chrono::ceil<std::chrono::milliseconds>(known.second - now));
    send_event(channel, event);
  }
}

void Node::warn_jobs() {
  for (const JobId& job : jobs_->running()) {
    LOG(info, "job {}: SIGTERM, since this node is about to leave", job.short_hex());
    (void)jobs_->cancel(job, "its node is about to leave");
  }
  if (simulation()) return;  // its drivers are no processes of the machine's
  for (const auto& [channel, client] : clients_) {
    const PeerInfo& peer = channel->peer();
    if (peer.role != Role::kDriver || client.job.is_none() || jobs_->runs(client.job) ||
        peer.pid <= 0 || !channel->is_unix())
      continue;
    LOG(info, "job {}: SIGTERM to its driver (pid {}), since this node is about to leave",
        client.job.short_hex(), peer.pid);
    ::kill(peer.pid, SIGTERM);
  }
}

Status Node::watch_for_preemption() {
  auto sources = preemption_sources(loop_, options_.preemption);
  if (!sources.ok()) return sources.status();
  for (auto& source : *sources) {
    const auto on_notice = [this](const PreemptionNotice& notice,
                                  UniqueFunction<void(bool)> answer) {
      // Of what the machine has left, a part for the end of its processes.
      auto time = notice.left ? *notice.left - std::min(*notice.left / 4, kPreemptionMargin)
                              : options_.drain_time;
      time = std::max(time, std::chrono::milliseconds(1));
      drain_on_loop(
          notice.reason, time, [answer = std::move(answer)](const Status& status) mutable {
            const bool is_final = status.ok() || status.code() == ErrorCode::kInvalidArgument ||
                                  status.code() == ErrorCode::kUnimplemented;
            answer(is_final);  // else it is asked for again
          });
    };
    watches_.push_back(std::make_unique<PreemptionWatch>(loop_, std::move(source),
                                                         options_.preemption.poll,
                                                         options_.preemption.timeout, on_notice));
  }
  return {};
}

Status Node::refuse_while_drained(const std::string& what) const {
  if (!drained_) return {};
  return unavailable("node " + options_.node.short_hex() + " (" + address_ + ") is drained (" +
                     *drained_ + ") and takes no " + what + "; use another node");
}

void Node::take_over(const control::TakeOver& body, std::chrono::milliseconds timeout,
                     ControlAnswerer answer) {
  objects_->take_over_from(
      body.node, timeout, [answer = std::move(answer)](std::uint64_t failed) mutable {
        answer(ControlAnswer{static_cast<std::int64_t>(std::min<std::uint64_t>(failed, 1u << 30))});
      });
}

void Node::find_moved(const ObjectLocation& lost,
                      UniqueFunction<void(Result<ObjectLocation>)> done) {
  ControlRequest request{
      {}, std::chrono::seconds(10), ObjectControl{control::FindObject{lost.id, lost.node}}};
  to_head(std::move(request), [done = std::move(done)](Result<ControlAnswer> answer) mutable {
    if (!answer.ok()) return done(answer.status());
    auto* objects = std::get_if<ObjectControlAnswer>(&*answer);
    auto* location = objects ? std::get_if<ObjectLocation>(objects) : nullptr;
    if (location)
      done(std::move(*location));
    else
      done(internal_error("the head answered something else than was asked"));
  });
}

}  // namespace runtime
