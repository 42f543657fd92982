#include "runtime/call/worker_link.h"

#include <utility>
#include <vector>

#include "runtime/call/actor_clients.h"
#include "runtime/call/call_wire.h"
#include "runtime/call/caller_context.h"
#include "runtime/core/timer.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/endpoint.h"

namespace runtime {

namespace {
constexpr std::chrono::milliseconds kAskAfter{300};
}

WorkerLink::WorkerLink(CallerContextPtr context, const ActorAddress& address)
    : context_(std::move(context)),
      worker_(address.worker),
      node_(address.node),
      unix_path_(address.unix_path),
      node_address_(address.node_address),
      pid_(address.pid),
      is_shared_(address.shared),
      is_local_(address.node == context_->node.node_id() && !address.unix_path.empty()) {}

WorkerLink::~WorkerLink() {
  if (context_->loop.is_forked()) {
    (void)new std::shared_ptr<Channel>(std::move(channel_));  // never destroyed
    return;
  }
  if (channel_)
    channel_->close(cancelled("the caller has no handle to an actor of worker " +
                              worker_.short_hex() + " any more"));
  context_->clients.forget_link(worker_);
}

void WorkerLink::close(Status reason) {
  std::shared_ptr<Channel> channel;
  {
    std::lock_guard lock(mutex_);
    channel = channel_;
  }
  if (channel) channel->close(std::move(reason));  // on_closed() does the rest
}

void WorkerLink::describe(ActorAddress& address) const {
  address.worker = worker_;
  address.node = node_;
  address.unix_path = unix_path_;
  address.node_address = node_address_;
  address.pid = pid_;
  address.shared = is_shared_;
}

std::shared_ptr<Channel> WorkerLink::attach(ActorId actor, const std::shared_ptr<User>& user) {
  std::lock_guard lock(mutex_);
  if (channel_) {
    users_[actor] = user;
    return channel_;
  }
  waiting_[actor] = user;
  if (!std::exchange(connecting_, true)) connect();
  return nullptr;
}

std::shared_ptr<Channel> WorkerLink::channel() const {
  std::lock_guard lock(mutex_);
  return channel_;
}

void WorkerLink::detach(ActorId actor) {
  std::lock_guard lock(mutex_);
  // Unless a newer client of the actor has taken the place.
  for (Users* users : {&users_, &waiting_}) {
    if (auto found = users->find(actor); found != users->end() && found->second.expired())
      users->erase(found);
  }
}

void WorkerLink::connect() {
  auto done = [weak = weak_from_this()](Result<std::shared_ptr<Channel>> channel) {
    if (auto self = weak.lock())
      self->on_connected(std::move(channel));
    else if (channel.ok())
      (*channel)->close(cancelled("the caller has no handle any more"));
  };
  Result<Endpoint> endpoint =
      is_local_ ? Endpoint::unix_socket(unix_path_) : Endpoint::parse(node_address_);
  if (!endpoint.ok()) {
    context_->loop.post([done, why = endpoint.status()] { done(why); });
    return;
  }
  if (!is_local_) endpoint = endpoint->for_worker(worker_);
  context_->node.connect(*endpoint, done);
}

void WorkerLink::on_connected(Result<std::shared_ptr<Channel>> channel) {
  if (channel.ok()) {
    (*channel)->set_handler(
        [weak = weak_from_this()](const std::shared_ptr<Channel>& from, Message message) {
          if (auto self = weak.lock()) self->on_message(from, message);
        });
    // Its caller has given up and knows of no result; the process that holds it must hear that.
    (*channel)->set_on_late_reply([](const std::shared_ptr<Channel>& from, Message reply) {
      if (std::optional<CallNotice> release = release_of(reply.meta)) send_notice(*from, *release);
    });
    (*channel)->set_on_interrupt(
        [weak = weak_from_this(), connection = std::weak_ptr<Channel>(*channel)] {
          if (auto self = weak.lock()) self->watch_interrupted(connection);
        });
    (*channel)->set_on_close([weak = weak_from_this(), raw = channel->get()](Status reason) {
      if (auto self = weak.lock()) self->on_closed(raw, reason);
    });
  }
  std::vector<std::shared_ptr<User>> users;
  Status why = channel.ok() ? (*channel)->close_reason() : channel.status();
  {
    std::lock_guard lock(mutex_);
    connecting_ = false;
    for (auto& [actor, weak] : waiting_) {
      if (auto user = weak.lock()) users.push_back(std::move(user));
    }
    if (why.ok()) {
      channel_ = *channel;
      users_.merge(waiting_);
    }
    waiting_.clear();
  }
  for (const auto& user : users)
    user->on_connected(this, why.ok() ? channel : Result<std::shared_ptr<Channel>>(why));
}

void WorkerLink::on_message(const std::shared_ptr<Channel>& from, const Message& message) {
  if (message.kind != FrameKind::kCancel) return;
  Result<CallNotice> notice = decode_notice(message.meta);
  if (!notice.ok()) return;
  std::shared_ptr<User> user;
  {
    std::lock_guard lock(mutex_);
    if (auto found = users_.find(notice->actor); found != users_.end()) user = found->second.lock();
  }
  if (user) user->on_notice(from, *notice, message);
}

void WorkerLink::watch_interrupted(std::weak_ptr<Channel> channel) {
  // Most come back before that.
  auto timer = std::make_shared<Timer>(context_->loop.executor(), kAskAfter);
  timer->async_wait([weak = weak_from_this(), channel = std::move(channel),
                     timer](const boost::system::error_code& ec) {
    auto self = weak.lock();
    if (self && !ec) self->probe_peer(channel);
  });
}

void WorkerLink::probe_peer(const std::weak_ptr<Channel>& channel) {
  auto connection = channel.lock();
  if (!connection || !connection->is_interrupted() || context_->shut_down) return;
  ActorId actor;
  std::shared_ptr<User> user;
  {
    std::lock_guard lock(mutex_);
    for (auto& [of, weak] : users_) {
      actor = of;
      if ((user = weak.lock())) break;
    }
  }
  if (!user) return;
  // The head waits a moment for news before it answers that all is well.
  const std::uint64_t incarnation = user->incarnation();
  context_->node.state(
      actor, incarnation, deadline_after(std::chrono::seconds(5)),
      [weak = weak_from_this(), channel, incarnation](Result<ActorState> state) {
        auto self = weak.lock();
        auto interrupted = channel.lock();
        if (!self || !interrupted || !interrupted->is_interrupted()) return;
        if (!state.ok()) return self->watch_interrupted(channel);
        const bool lives = state->phase == ActorPhase::kAlive && state->incarnation == incarnation;
        if (lives) return self->watch_interrupted(channel);
        interrupted->close(
            unavailable("the process at the other end of the interrupted connection has ended"));
      });
}

void WorkerLink::on_closed(const Channel* channel, const Status& reason) {
  Users users;
  {
    std::lock_guard lock(mutex_);
    if (channel_.get() != channel) return;
    channel_.reset();
    users = std::exchange(users_, {});
  }
  for (auto& [actor, weak] : users) {
    if (auto user = weak.lock()) user->on_channel_closed(channel, reason);
  }
}

}  // namespace runtime
