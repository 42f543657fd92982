#include "runtime/head/head_service.h"

#include "runtime/core/log.h"
#include "runtime/control/control_channel.h"

namespace runtime {

HeadService::HeadService(EventLoop& loop, ClusterId cluster, NodeId own, NodeDuties duties, std::unique_ptr<Scheduler> scheduler,
                         HeadServiceOptions options)
    : loop_(loop),
      own_(own),
      duties_(std::move(duties)),
      options_(options),
      tick_timer_(loop.context()),
      lease_timer_(loop.context()),
      stop_timer_(loop.context()),
      head_(cluster, std::move(scheduler), *this, steady_now) {
  check_leases();
}

HeadService::~HeadService() { *alive_ = false; }

void HeadService::handle_own(ControlRequest request, ControlAnswerer answer) {
  // Posted both ways, so that the own node sees the same order and the same absence of re-entrance as the others.
  auto later = [this, alive = alive_, answer = std::move(answer)](Result<ControlAnswer> result) mutable {
    if (!*alive) return;
    loop_.post([answer = std::move(answer), result = std::move(result)]() mutable { answer(std::move(result)); });
  };
  loop_.post([this, alive = alive_, request = std::move(request), later = std::move(later)]() mutable {
    if (!*alive) return;
    head_.handle(own_, std::move(request), std::move(later));
    rearm();
  });
}

void HeadService::handle_own_event(const ControlEvent& event) { head_.handle_event(own_, event); }

void HeadService::handle(const std::shared_ptr<Channel>& channel, ControlRequest request, ControlAnswerer answer) {
  NodeId from = channel->peer().node;
  if (std::holds_alternative<control::RegisterNode>(request.body) && !links_.contains(from)) {
    links_[from] = {channel, steady_now()};
  }
  auto link = links_.find(from);
  if (link == links_.end() || link->second.channel != channel) {
    return answer(invalid_argument("node " + from.short_hex() + " has not joined over this connection"));
  }
  link->second.heard = steady_now();
  head_.handle(from, std::move(request), std::move(answer));
  rearm();
}

void HeadService::handle_event(const std::shared_ptr<Channel>& channel, const ControlEvent& event) {
  auto link = links_.find(channel->peer().node);
  if (link != links_.end() && link->second.channel == channel) head_.handle_event(link->first, event);
}

void HeadService::on_closed(const Channel& channel, const Status& why) {
  auto link = links_.find(channel.peer().node);
  if (link == links_.end() || link->second.channel.get() != &channel) return;
  NodeId node = link->first;
  links_.erase(link);
  head_.node_lost(node, why.message());
  rearm();
  maybe_all_stopped();
}

void HeadService::check_leases() {
  std::vector<std::shared_ptr<Channel>> silent;
  for (const auto& [node, link] : links_) {
    if (steady_now() - link.heard > options_.lease) silent.push_back(link.channel);
  }
  std::string text = "it has been silent for " + std::to_string(options_.lease.count() / 1000) + " s";
  for (const auto& channel : silent) {
    on_closed(*channel, unavailable(text));
    channel->close(unavailable("the head has not heard of this node for too long"));
  }
  lease_timer_.expires_after(options_.lease / 10);
  lease_timer_.async_wait([this, alive = alive_](boost::system::error_code ec) {
    if (!ec && *alive) check_leases();
  });
}

void HeadService::request(NodeId node, ControlRequest request, ControlAnswerer answer) {
  if (node == own_) {
    loop_.post([this, alive = alive_, request = std::move(request), answer = std::move(answer)]() mutable {
      if (!*alive) return;
      duties_.request(std::move(request), [this, alive, answer = std::move(answer)](Result<ControlAnswer> result) mutable {
        if (!*alive) return;
        loop_.post([this, alive, answer = std::move(answer), result = std::move(result)]() mutable {
          if (!*alive) return;
          answer(std::move(result));
          rearm();
        });
      });
    });
    return;
  }
  auto link = links_.find(node);
  if (link == links_.end()) {
    loop_.post([answer = std::move(answer), node]() mutable { answer(unavailable("node " + node.short_hex() + " is gone")); });
    return;
  }
  send_request(*link->second.channel, request, [this, alive = alive_, answer = std::move(answer)](Result<ControlAnswer> result) mutable {
    if (!*alive) return;
    answer(std::move(result));
    rearm();
  });
}

void HeadService::event(NodeId node, const ControlEvent& event) {
  if (node == own_) {
    loop_.post([this, alive = alive_, event] {
      if (*alive) duties_.event(event);
    });
  } else if (auto link = links_.find(node); link != links_.end()) {
    send_event(*link->second.channel, event);
  }
}

void HeadService::rearm() {
  Deadline next = head_.next_tick();
  if (next == tick_at_) return;
  tick_at_ = next;
  if (next == Deadline::max()) {
    tick_timer_.cancel();
    return;
  }
  tick_timer_.expires_at(next);
  tick_timer_.async_wait([this, alive = alive_](boost::system::error_code ec) {
    if (ec || !*alive) return;
    tick_at_ = Deadline::max();
    head_.tick();
    rearm();
  });
}

void HeadService::stop_nodes(std::chrono::milliseconds patience, std::function<void()> done) {
  on_all_stopped_ = std::move(done);
  for (const auto& [node, link] : links_) {
    ControlRequest stop{{}, patience, control::StopNode{}};
    send_request(*link.channel, stop, [](Result<ControlAnswer>) {});
  }
  stop_timer_.expires_after(patience);
  stop_timer_.async_wait([this, alive = alive_](boost::system::error_code ec) {
    if (ec || !*alive || !on_all_stopped_) return;
    LOG(warn, "{} nodes have not stopped in time", links_.size());
    std::exchange(on_all_stopped_, nullptr)();
  });
  maybe_all_stopped();
}

void HeadService::maybe_all_stopped() {
  if (!on_all_stopped_ || !links_.empty()) return;
  stop_timer_.cancel();
  std::exchange(on_all_stopped_, nullptr)();
}

}  // namespace runtime
