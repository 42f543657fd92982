#include "runtime/node/head_link.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/control/request_ids.h"
#include "runtime/core/log.h"
#include "runtime/node/head_restart.h"
#include "runtime/transport/listener.h"

namespace runtime {

namespace {

constexpr std::chrono::milliseconds kPauseFirst{10};
constexpr std::chrono::milliseconds kHeadPauseMax{500};
static_assert(2 * kHeadPauseMax < kHeadFoundMax,
              "the node next to the head and then the others look for it once in this time");
constexpr std::chrono::seconds kConnectTime{5};
constexpr std::chrono::seconds kRegisterTime{10};

/// Whether the same request twice is as good as once, to a head that may be of an older release.
bool may_be_repeated(const ControlRequest& request, std::uint32_t protocol) {
  return protocol >= kProtocolRequestIds || !std::holds_alternative<control::KvAdd>(request.body);
}

}  // namespace

HeadLink::HeadLink(EventLoop& loop, Endpoint head, Credentials credentials, Callbacks callbacks,
                   HeadLinkOptions options)
    : loop_(loop),
      head_(std::move(head)),
      credentials_(std::move(credentials)),
      callbacks_(std::move(callbacks)),
      options_(options),
      absence_(head_, options_, callbacks_.head_trouble),
      retry_timer_(loop.context()),
      beat_timer_(loop.context()),
      expiry_timer_(loop.context()) {}

HeadLink::~HeadLink() {
  lifetime_.end();
  if (channel_) channel_->close(cancelled("the node has stopped"));
}

// -- Connecting

void HeadLink::join(std::chrono::milliseconds timeout, UniqueFunction<void(Status)> done) {
  join_.on_end = std::move(done);
  join_.deadline = deadline_after(timeout);
  absence_.begin();
  connect();
}

void HeadLink::connect() {
  if (state_ == State::kClosed) return;
  state_ = State::kConnecting;
  ConnectOptions connecting;
  connecting.deadline =
      std::min(deadline_after(kConnectTime), join_.done ? Deadline::max() : join_.deadline);
  connecting.lasting = true;
  runtime::connect(loop_, head_, credentials_, connecting,
                   [this, alive = lifetime_.alive()](Result<std::shared_ptr<Channel>> channel) {
                     if (*alive)
                       on_connected(std::move(channel));
                     else if (channel.ok())
                       (*channel)->close(cancelled("the node has stopped"));
                   });
}

void HeadLink::on_connected(Result<std::shared_ptr<Channel>> channel) {
  if (state_ != State::kConnecting) {
    if (channel.ok()) (*channel)->close(cancelled("the node has stopped"));
    return;
  }
  if (!channel.ok()) return again_later(channel.status());
  channel_ = std::move(*channel);
  protocol_ = channel_->peer().protocol;
  ++life_;
  channel_->set_handler(
      lifetime_.guard([this](const std::shared_ptr<Channel>& from, Message message) {
        if (from == channel_) on_message(from, std::move(message));
      }));
  channel_->set_on_close(lifetime_.guard([this, raw = channel_.get()](const Status& why) {
    if (channel_.get() == raw) on_closed(why);
  }));
  close_unless_back(loop_, channel_);
  register_node();
}

void HeadLink::register_node() {
  state_ = State::kRegistering;
  control::RegisterNode registration = callbacks_.registration();
  registration.returns = join_.done;
  send_request(*channel_, ControlRequest{{}, kRegisterTime, std::move(registration)},
               lifetime_.guard([this, life = life_](Result<ControlAnswer> answer) {
                 on_registered(life, std::move(answer));
               }));
}

void HeadLink::on_registered(std::uint64_t life, Result<ControlAnswer> answer) {
  if (life != life_ || state_ != State::kRegistering) return;
  if (!answer.ok()) {
    const bool passing = answer.status().code() == ErrorCode::kUnavailable ||
                         answer.status().code() == ErrorCode::kDeadlineExceeded;
    if (!passing) return end(answer.status());
    channel_->close(answer.status());  // on_closed() tries again
    return;
  }
  state_ = State::kUp;
  const auto* durable = std::get_if<std::int64_t>(&*answer);
  absence_.set_durable(durable && *durable != 0);
  absence_.heard();
  pause_ = {};
  if (std::exchange(join_.done, true)) LOG(info, "the head is back");
  if (callbacks_.registered) callbacks_.registered();
  std::vector<std::uint64_t> waiting;
  for (const auto& [number, outstanding] : outstanding_) waiting.push_back(number);
  for (std::uint64_t number : waiting) send(number);
  beat();
  if (join_.on_end) std::exchange(join_.on_end, nullptr)(Status());
}

void HeadLink::on_closed(const Status& why) {
  channel_.reset();
  beat_timer_.cancel();
  if (state_ == State::kClosed) return;
  if (state_ == State::kUp) {
    LOG(warn, "the head is away: {}", why.message());
    absence_.begin();
  }
  std::vector<ControlAnswerer> unsure;
  for (auto at = outstanding_.begin(); at != outstanding_.end();) {
    const bool is_lost = at->second.sent != 0 && !may_be_repeated(at->second.request, protocol_);
    at->second.sent = 0;
    if (is_lost) unsure.push_back(std::move(at->second.answer));
    at = is_lost ? outstanding_.erase(at) : std::next(at);
  }
  for (ControlAnswerer& answer : unsure)
    answer(unavailable(
        "the head died before it had answered; whether it has done what was asked is not known"));
  again_later(why);
}

void HeadLink::again_later(const Status& why) {
  state_ = State::kDown;
  absence_.set_reason(why);
  const bool any_urgent =
      std::any_of(outstanding_.begin(), outstanding_.end(),
                  [](const auto& entry) { return entry.second.urgency == Urgency::kNow; });
  if (any_urgent) arm_expiry(absence_.too_long_at(contact()));
  const Deadline now = steady_now();
  // A wrong token, or another cluster, stays wrong; a head that is being started again is not there
  // for a moment.
  const bool passing = why.code() == ErrorCode::kUnavailable ||
                       why.code() == ErrorCode::kDeadlineExceeded || join_.done;
  if (!join_.done && (!passing || now >= join_.deadline)) return end(why);
  if (Status patience = join_.done ? absence_.check_patience() : Status(); !patience.ok())
    return end(patience);
  pause_ = std::clamp(2 * pause_, kPauseFirst, kHeadPauseMax);
  retry_timer_.expires_after(pause_);
  retry_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec && state_ == State::kDown) connect();
  }));
}

void HeadLink::end(const Status& why) {
  const bool was_joined = join_.done;
  auto on_joined = std::exchange(join_.on_end, nullptr);
  close(why);
  if (on_joined)
    on_joined(why);
  else if (was_joined)
    callbacks_.lost(why);
}

void HeadLink::close(const Status& reason) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  retry_timer_.cancel();
  beat_timer_.cancel();
  expiry_timer_.cancel();
  if (auto channel = std::exchange(channel_, nullptr)) channel->close(reason);
  for (auto& [number, outstanding] : std::exchange(outstanding_, {}))
    outstanding.answer(unavailable("the node has left its cluster: " + reason.message()));
  if (auto on_joined = std::exchange(join_.on_end, nullptr)) on_joined(reason);
}

// -- Both ways

void HeadLink::on_message(const std::shared_ptr<Channel>& channel, Message message) {
  absence_.heard();
  if (message.kind == FrameKind::kControlEvent) {
    auto event = decode_control_event(message.meta);
    if (!event.ok()) return LOG(warn, "{}: {}", channel->describe_peer(), event.status().message());
    return callbacks_.event(*event);
  }
  if (message.kind != FrameKind::kControl) {
    return LOG(warn, "{} sent a frame of kind {}, which a node does not serve",
               channel->describe_peer(), static_cast<int>(message.kind));
  }
  ControlAnswerer answer = answerer_for(channel, message);
  auto request = decode_control_request(message.meta);
  if (!request.ok()) return answer(request.status());
  callbacks_.request(std::move(*request), std::move(answer));
}

void HeadLink::request(ControlRequest request, ControlAnswerer answer, Urgency urgency) {
  if (state_ == State::kClosed) {
    return loop_.post([answer = std::move(answer)]() mutable {
      answer(unavailable("the node has left its cluster"));
    });
  }
  identify(request);
  const std::uint64_t number = next_++;
  const Deadline deadline = deadline_after(request.timeout + kControlGrace);
  outstanding_.emplace(number,
                       Outstanding{std::move(request), std::move(answer), deadline, urgency, 0});
  if (state_ == State::kUp) send(number);
  arm_expiry(urgency == Urgency::kNow ? std::min(deadline, absence_.too_long_at(contact()))
                                      : deadline);
}

void HeadLink::send(std::uint64_t number) {
  auto found = outstanding_.find(number);
  if (found == outstanding_.end() || !channel_) return;
  Outstanding& outstanding = found->second;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(outstanding.deadline - steady_now()) -
      kControlGrace;
  outstanding.sent = life_;
  outstanding.request.timeout = std::max(
      left, std::chrono::milliseconds(1));  // one at its deadline, as of terminate(), counts too
  send_request(*channel_, outstanding.request,
               lifetime_.guard([this, number, life = life_](Result<ControlAnswer> answer) {
                 on_answer(number, life, std::move(answer));
               }));
}

void HeadLink::on_answer(std::uint64_t number, std::uint64_t life, Result<ControlAnswer> answer) {
  auto found = outstanding_.find(number);
  if (found == outstanding_.end() || found->second.sent != life) return;
  // Of a connection that has ended: on_closed() decides what becomes of it.
  if (!answer.ok() && answer.status().code() == ErrorCode::kUnavailable &&
      (!channel_ || channel_->closed()))
    return;
  ControlAnswerer told = std::move(found->second.answer);
  outstanding_.erase(found);
  told(std::move(answer));
}

void HeadLink::event(const ControlEvent& event) {
  if (state_ == State::kUp) send_event(*channel_, event);
}

Status HeadLink::attach(const Inbound& inbound, FileDescriptor& socket) {
  // Also before it has registered: the others have to reach a head that has just been started
  // again.
  if (!channel_ || channel_->closed())
    return unavailable("the head of the cluster is not up at present");
  return channel_->send(encode_attach(inbound, std::move(socket)));
}

// -- Time

void HeadLink::beat() {
  beat_timer_.expires_after(options_.heartbeat);
  beat_timer_.async_wait(lifetime_.guard([this, life = life_](boost::system::error_code ec) {
    if (ec || life != life_ || state_ != State::kUp) return;
    if (steady_now() - absence_.heard_at() > options_.silence_max) {
      return channel_->close(unavailable("it has answered nothing for " +
                                         std::to_string(options_.silence_max.count() / 1000) +
                                         " s"));
    }
    send_request(*channel_, ControlRequest{{}, options_.silence_max, control::Heartbeat{}},
                 lifetime_.guard([this](const Result<ControlAnswer>& answer) {
                   if (answer.ok()) absence_.heard();
                 }));
    beat();
  }));
}

void HeadLink::arm_expiry(Deadline at) {
  if (at >= expiry_at_) return;
  expiry_at_ = at;
  expiry_timer_.expires_at(at);
  expiry_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec) return;
    expiry_at_ = Deadline::max();
    expire();
  }));
}

HeadAbsence::Contact HeadLink::contact() const {
  switch (state_) {
    case State::kUp: return HeadAbsence::Contact::kUp;
    case State::kRegistering: return HeadAbsence::Contact::kRegistering;
    case State::kDown:
    case State::kConnecting:
    case State::kClosed: break;
  }
  return HeadAbsence::Contact::kNone;
}

// While the head is there, its own reason at the deadline comes first.
void HeadLink::expire() {
  const Deadline now = steady_now();
  const Deadline too_long = absence_.too_long_at(contact());
  Deadline next = Deadline::max();
  std::vector<ControlAnswerer> in_vain;
  std::vector<ControlAnswerer> late;
  for (auto at = outstanding_.begin(); at != outstanding_.end();) {
    Outstanding& outstanding = at->second;
    const bool urgent = outstanding.urgency == Urgency::kNow, is_late = outstanding.deadline <= now,
               is_vain = urgent && too_long <= now;
    if (is_vain)
      in_vain.push_back(std::move(outstanding.answer));
    else if (is_late)
      late.push_back(std::move(outstanding.answer));
    else
      next = std::min({next, outstanding.deadline, urgent ? too_long : Deadline::max()});
    at = is_late || is_vain ? outstanding_.erase(at) : std::next(at);
  }
  const Status absence = in_vain.empty() ? Status() : absence_.describe(contact());
  for (ControlAnswerer& answer : in_vain) answer(absence);
  const std::string why = state_ == State::kUp ? "the head does not answer"
                                               : "the head is away: " + absence_.reason().message();
  for (ControlAnswerer& answer : late) answer(deadline_exceeded(why));
  arm_expiry(next);
}

}  // namespace runtime
