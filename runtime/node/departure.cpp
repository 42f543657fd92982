#include "runtime/node/departure.h"

#include <algorithm>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

// Between the end that a drain was promised and the node's own: the head's word comes first, if the
// head is there.
constexpr std::chrono::milliseconds kLeaveMargin{3000};
// Drivers are told this long before the node goes, or when half of the time is over.
constexpr std::chrono::milliseconds kJobsWarned{10'000};
constexpr std::chrono::milliseconds kPreemptionMargin{5'000};

}  // namespace

Departure::Departure(EventLoop& loop, DepartureOptions options, Callbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      leave_timer_(loop.context()),
      jobs_timer_(loop.context()) {}

void Departure::ask(const std::string& reason, std::chrono::milliseconds time,
                    UniqueFunction<void(Status)> done) {
  if (stopped_) return done({});
  LOG(info, "asking the head to drain this node: {} ({} ms)", reason, time.count());
  // Also when the head is away, or does not come back.
  leave_by(deadline_after(time) + kLeaveMargin, reason);
  ControlRequest request{{}, time + kLeaveMargin, control::DrainNode{options_.node, time, reason}};
  callbacks_.head(std::move(request), [alive = lifetime_.alive(), done = std::move(done)](
                                          Result<ControlAnswer> answer) mutable {
    if (*alive && !answer.ok())
      LOG(warn, "this node is not drained: {}", answer.status().message());
    done(answer.status());
  });
}

void Departure::leave_by(Deadline deadline, const std::string& reason) {
  if (deadline >= leave_at_) return;
  leave_at_ = deadline;
  leave_timer_.expires_at(deadline);
  leave_timer_.async_wait(lifetime_.guard([this, reason](boost::system::error_code ec) {
    if (ec) return;
    callbacks_.leave(cancelled("drained (" + reason + "), and the head has not answered in time"));
  }));
}

void Departure::on_node_drains(const control::NodeDrains& drains) {
  drains_[drains.node] = {drains, deadline_after(drains.drain.left)};
  const Deadline long_ago = steady_now() - kDrainsKept;
  std::erase_if(drains_, [&](const auto& entry) { return entry.second.second < long_ago; });
  callbacks_.node_drains(drains);
  if (drains.node != options_.node) return;
  const bool first = !drained_;
  drained_ = drains.drain.reason;
  callbacks_.begin();
  const Deadline deadline = deadline_after(drains.drain.left);
  leave_by(deadline + kLeaveMargin, drains.drain.reason);
  jobs_timer_.expires_at(deadline - std::min(drains.drain.left / 2, kJobsWarned));
  jobs_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec) callbacks_.warn_jobs();
  }));
  if (first)
    LOG(info, "this node is drained ({}): it leaves within {} ms", drains.drain.reason,
        drains.drain.left.count());
}

void Departure::tell(Channel& channel) const {
  const Deadline now = steady_now();
  for (const auto& [node, known] : drains_) {
    control::NodeDrains event = known.first;
    event.drain.left = std::max(std::chrono::milliseconds(0),
                                std::chrono::ceil<std::chrono::milliseconds>(known.second - now));
    send_event(channel, event);
  }
}

Status Departure::refuse(const std::string& what) const {
  if (!drained_) return {};
  return unavailable("node " + options_.node.short_hex() + " (" + options_.address +
                     ") is drained (" + *drained_ + ") and takes no " + what +
                     "; use another node");
}

Status Departure::watch_for_preemption() {
  auto sources = preemption_sources(loop_, options_.preemption);
  if (!sources.ok()) return sources.status();
  for (auto& source : *sources) {
    watches_.push_back(std::make_unique<PreemptionWatch>(
        loop_, std::move(source), options_.preemption.poll, options_.preemption.timeout,
        [this](const PreemptionNotice& notice, UniqueFunction<void(bool)> answer) {
          on_notice(notice, std::move(answer));
        }));
  }
  return {};
}

void Departure::on_notice(const PreemptionNotice& notice, UniqueFunction<void(bool)> answer) {
  // Of what the machine has left, a part for the end of its processes.
  auto time = notice.left ? *notice.left - std::min(*notice.left / 4, kPreemptionMargin)
                          : options_.drain_time;
  time = std::max(time, std::chrono::milliseconds(1));
  ask(notice.reason, time, [answer = std::move(answer)](const Status& status) mutable {
    const bool is_final = status.ok() || status.code() == ErrorCode::kInvalidArgument ||
                          status.code() == ErrorCode::kUnimplemented;
    answer(is_final);  // else it is asked for again
  });
}

void Departure::stop() {
  stopped_ = true;
  leave_timer_.cancel();
  for (auto& watch : watches_) watch->stop();
  jobs_timer_.cancel();
}

}  // namespace runtime
