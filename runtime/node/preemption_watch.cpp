#include "runtime/node/preemption_watch.h"

#include <utility>

#include "runtime/core/log.h"

namespace runtime {

namespace {
// A source that fails stays in the log without filling it.
constexpr std::chrono::minutes kSameAgain{10};
constexpr std::chrono::minutes kAnotherAgain{1};
}  // namespace

PreemptionWatch::PreemptionWatch(EventLoop& loop, std::unique_ptr<PreemptionSource> source,
                                 std::chrono::milliseconds poll, std::chrono::milliseconds timeout,
                                 OnNotice on_notice)
    : source_(std::move(source)),
      poll_(poll),
      timeout_(timeout),
      on_notice_(std::move(on_notice)),
      timer_(loop.context()) {
  LOG(info, "watching {} for preemption", source_->name());
  look();
}

void PreemptionWatch::stop() {
  stopped_ = true;
  timer_.cancel();
}

void PreemptionWatch::look() {
  source_->ask(deadline_after(timeout_), lifetime_.guard([this](Result<PreemptionAnswer> answer) {
    on_answer(std::move(answer));
  }));
}

void PreemptionWatch::look_later() {
  if (stopped_) return;
  timer_.expires_after(poll_);
  timer_.async_wait(lifetime_.guard([this](const boost::system::error_code& ec) {
    if (!ec) look();
  }));
}

void PreemptionWatch::on_answer(Result<PreemptionAnswer> answer) {
  if (stopped_) return;
  if (!answer.ok()) warn(answer.status());
  if (!answer.ok() || !*answer) return look_later();
  LOG(warn, "{} announces the preemption of this machine: {}", source_->name(), (*answer)->reason);
  on_notice_(**answer, lifetime_.guard([this](bool done) {
    if (!done) look_later();
  }));
}

void PreemptionWatch::warn(const Status& why) {
  ++unheard_;
  const Deadline now = steady_now();
  const bool is_first = warned_at_ == Deadline::min();
  if (!is_first && now - warned_at_ < (why.message() == warned_of_ ? kSameAgain : kAnotherAgain))
    return;
  LOG(warn, "{} cannot tell whether this machine will be preempted ({} failures): {}",
      source_->name(), unheard_, why.message());
  warned_of_ = why.message();
  warned_at_ = now;
  unheard_ = 0;
}

}  // namespace runtime
