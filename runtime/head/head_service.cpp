#include "runtime/head/head_service.h"

#include <algorithm>
#include <utility>

#include "runtime/control/control_channel.h"
#include "runtime/core/log.h"

namespace runtime {

namespace {

// A timer that is later than this was not run for want of the process, not of a processor.
constexpr std::chrono::milliseconds kLateMax{500};

/// Requests that may be refused while nothing can be recorded. What nodes report is taken in any
/// case.
struct IsRefusable {
  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }
  bool operator()(const control::CreateActor&) const { return true; }
  bool operator()(const control::CreateGroup&) const { return true; }
  bool operator()(const control::KvPut&) const { return true; }
  bool operator()(const control::KvAdd&) const { return true; }
  bool operator()(const control::KvDelete&) const { return true; }
  bool operator()(const control::SaveState&) const { return true; }
  bool operator()(const control::StartJob&) const { return true; }
  bool operator()(const control::ChangeToken&) const { return true; }
  bool operator()(const ObjectControl& body) const {
    return std::holds_alternative<control::Publish>(body) ||
           std::holds_alternative<control::Unpublish>(body);
  }
};

/// Of those, what may take much room in the journal.
struct TakesRoom {
  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }
  bool operator()(const control::KvPut&) const { return true; }
  bool operator()(const control::KvAdd&) const { return true; }
  bool operator()(const control::SaveState&) const { return true; }
};

/// For people, who rather see what is about to be recorded than nothing.
struct IsOverview {
  template <class Body>
  bool operator()(const Body&) const {
    return false;
  }
  bool operator()(const control::QueryCluster&) const { return true; }
  bool operator()(const ObjectControl& body) const {
    return std::holds_alternative<control::ListObjects>(body);
  }
  bool operator()(const ObserveControl&) const { return true; }
};

}  // namespace

/// A turn of the head's: something happens to it, and what it decides is recorded together.
class HeadService::Turn {
 public:
  explicit Turn(HeadService& service)
      : service_(service), is_outer_(!std::exchange(service.in_turn_, true)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!is_outer_) return;
    service_.in_turn_ = false;
    service_.end_turn();
  }

 private:
  HeadService& service_;
  const bool is_outer_;
};

HeadService::HeadService(EventLoop& loop, ClusterId cluster, std::unique_ptr<Scheduler> scheduler,
                         std::unique_ptr<Journal> journal, HeadServiceOptions options,
                         HeadOptions head)
    : loop_(loop),
      options_(options),
      line_(std::move(journal)),
      tick_timer_(loop.context()),
      lease_timer_(loop.context()),
      stop_timer_(loop.context()),
      head_(cluster, std::move(scheduler), *this, steady_now, head) {
  if (line_.journal()) head_.follow();
  check_leases();
}

HeadService::~HeadService() { lifetime_.end(); }  // before head_

Status HeadService::recover() {
  if (!line_.journal()) return {};
  Turn turn(*this);
  Status status = line_.journal()->load([this](const std::string&, const std::string& value) {
    auto entry = journal::decode(value);
    return entry.ok() ? head_.restore(*entry) : entry.status();
  });
  if (status.ok()) status = head_.end_restore();
  if (!status.ok()) return status;
  for (const auto& [node, info] : head_.tables().nodes().all())
    links_[node] = {nullptr, steady_now()};
  return {};
}

// -- Turns

void HeadService::leave(UniqueFunction<void()> action) {
  Turn turn(*this);
  line_.add(std::move(action));
}

void HeadService::end_turn() {
  line_.end_turn(head_.changes());
  rearm();
}

void HeadService::send_unrecorded_ends() {
  for (RecordedLine::End& end : line_.take_unrecorded_ends()) {
    auto link = links_.find(end.node);
    if (link != links_.end() && link->second.channel)
      send_request(*link->second.channel, end.request, [](Result<ControlAnswer>) {});
  }
}

// -- Nodes

void HeadService::handle(const std::shared_ptr<Channel>& channel, ControlRequest request,
                         ControlAnswerer answer) {
  const NodeId from = channel->peer().node;
  if (std::holds_alternative<control::Heartbeat>(request.body)) {
    // Also by a connection that is for this alone (LeaseKeeper).
    auto renewed = links_.find(from);
    if (renewed == links_.end())
      return answer(cancelled("node " + from.short_hex() + " is not in the cluster (any more)"));
    renewed->second.heard = steady_now();
    return answer(ControlAnswer{});
  }
  const bool registers = std::holds_alternative<control::RegisterNode>(request.body);
  auto link = links_.find(from);
  if (registers && stop_patience_ && link == links_.end())
    return answer(unavailable("the cluster is being stopped"));
  if (registers && (link == links_.end() || link->second.channel != channel)) {
    // A node that comes again has noticed the end of its old connection before the head has.
    std::shared_ptr<Channel> old = link == links_.end() ? nullptr : link->second.channel;
    links_[from] = {channel, steady_now()};
    if (old) old->close(unavailable("node " + from.short_hex() + " has connected again"));
    link = links_.find(from);
  }
  if (link == links_.end() || link->second.channel != channel) {
    return answer(
        invalid_argument("node " + from.short_hex() + " has not joined over this connection"));
  }
  link->second.heard = steady_now();
  if (auto* join = std::get_if<control::RegisterNode>(&request.body)) returns_ += join->returns;
  if (auto* seen = std::get_if<ObserveControl>(&request.body);
      seen && std::holds_alternative<control::ReadHead>(*seen)) {
    return answer(ControlAnswer{ObserveAnswer{numbers()}});
  }
  if (Status refusal = check_journal(request); !refusal.ok()) return answer(refusal);
  const Journal* journal = line_.journal();
  if (journal && !journal->trouble().ok() && std::visit(IsOverview{}, request.body)) {
    Turn turn(*this);
    return head_.handle(from, std::move(request), std::move(answer));
  }
  Turn turn(*this);
  head_.handle(
      from, std::move(request),
      lifetime_.guard([this, answer = std::move(answer)](Result<ControlAnswer> result) mutable {
        leave([answer = std::move(answer), result = std::move(result)]() mutable {
          answer(std::move(result));
        });
      }));
  if (!registers) return;
  send_awaiting(from);
  if (stop_patience_ && from != stops_last_)
    stop_node(*links_[from].channel);  // it may have missed it
}

Status HeadService::check_journal(const ControlRequest& request) const {
  const Journal* journal = line_.journal();
  if (!journal) return {};
  Status why;
  if (std::visit(IsRefusable{}, request.body)) why = journal->trouble();
  if (why.ok() && std::visit(TakesRoom{}, request.body)) why = journal->scarcity();
  return why.ok() || head_.knows(request.id) ? Status() : why;
}

void HeadService::handle_event(const std::shared_ptr<Channel>& channel, const ControlEvent& event) {
  auto link = links_.find(channel->peer().node);
  if (link == links_.end() || link->second.channel != channel) return;
  Turn turn(*this);
  head_.handle_event(link->first, event);
}

void HeadService::on_closed(const Channel& channel, const Status& why) {
  auto link = links_.find(channel.peer().node);
  if (link == links_.end() || link->second.channel.get() != &channel) return;
  lose(link->first, why.message());
}

void HeadService::lose(NodeId node, const std::string& why) {
  links_.erase(node);
  {
    Turn turn(*this);
    head_.node_lost(node, why);
    send_awaiting(node);
  }
  maybe_all_stopped();
}

void HeadService::check_leases() {
  // A head that was stopped has heard no node meanwhile, and what they said lies unread: that time
  // is not held against them.
  if (const Deadline now = steady_now(); leases_due_ < now - kLateMax) {
    for (auto& [node, link] : links_) link.heard = std::min(link.heard + (now - leases_due_), now);
  }
  std::vector<std::pair<NodeId, std::shared_ptr<Channel>>> silent;
  for (const auto& [node, link] : links_) {
    if (node != options_.host && steady_now() - link.heard > options_.lease)
      silent.emplace_back(node, link.channel);
  }
  send_unrecorded_ends();
  const std::string text =
      "it has been silent for " + std::to_string(options_.lease.count() / 1000) + " s";
  leases_missed_ += silent.size();
  for (const auto& [node, channel] : silent) {
    lose(node, text);
    if (channel) channel->close(unavailable("the head has not heard of this node for too long"));
  }
  leases_due_ = steady_now() + options_.lease / 20;
  for (const auto& [node, link] : links_) {
    if (node != options_.host)
      leases_due_ =
          std::min(leases_due_, link.heard + options_.lease + std::chrono::milliseconds(1));
  }
  lease_timer_.expires_at(leases_due_);
  lease_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (!ec) check_leases();
  }));
}

void HeadService::request(NodeId node, ControlRequest request, ControlAnswerer answer) {
  // A job has ended whether that can be recorded or not. In its turn it is said again.
  if (std::holds_alternative<control::EndJob>(request.body)) line_.note_end({node, request});
  auto answered =
      lifetime_.guard([this, answer = std::move(answer)](Result<ControlAnswer> result) mutable {
        Turn turn(*this);
        answer(std::move(result));
      });
  leave(lifetime_.guard(
      [this, node, request = std::move(request), answered = std::move(answered)]() mutable {
        send(node, std::move(request), std::move(answered));
      }));
}

void HeadService::send(NodeId node, ControlRequest request, ControlAnswerer answer) {
  auto link = links_.find(node);
  if (link != links_.end() && link->second.channel)
    return send_request(*link->second.channel, request, std::move(answer));
  if (link != links_.end() && awaits_node(request.body)) {
    away_.add(node, steady_now(), {std::move(request), std::move(answer)});
    return rearm();
  }
  loop_.post([answer = std::move(answer), node]() mutable {
    answer(unavailable("node " + node.short_hex() + " is gone"));
  });
}

void HeadService::send_awaiting(NodeId node) {
  for (auto& [request, answer] : away_.take(node, steady_now())) {
    leave(lifetime_.guard(
        [this, node, request = std::move(request), answer = std::move(answer)]() mutable {
          send(node, std::move(request), std::move(answer));
        }));
  }
}

void HeadService::event(NodeId node, const ControlEvent& event) {
  leave(lifetime_.guard([this, node, event] {
    auto link = links_.find(node);
    if (link != links_.end() && link->second.channel) send_event(*link->second.channel, event);
  }));
}

void HeadService::when_recorded(UniqueFunction<void()> action) {
  leave(lifetime_.guard(std::move(action)));
}

bool HeadService::is_connected(NodeId node) const {
  auto link = links_.find(node);
  return link != links_.end() && link->second.channel && !link->second.channel->closed();
}

Numbers HeadService::numbers() const {
  Numbers numbers = head_.numbers();
  numbers["leases_missed"] = static_cast<double>(leases_missed_);
  numbers["node_returns"] = static_cast<double>(returns_);
  numbers["nodes_connected"] =
      static_cast<double>(std::count_if(links_.begin(), links_.end(), [](const auto& link) {
        return link.second.channel != nullptr;
      }));
  numbers.merge(line_.numbers());
  return numbers;
}

// -- Time

void HeadService::rearm() {
  const Deadline next = std::min(head_.next_tick(), away_.earliest());
  if (next == tick_at_) return;
  tick_at_ = next;
  if (next == Deadline::max()) {
    tick_timer_.cancel();
    return;
  }
  tick_timer_.expires_at(next);
  tick_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec) return;
    tick_at_ = Deadline::max();
    Turn turn(*this);
    away_.expire(steady_now());
    head_.tick();
  }));
}

// -- The end

void HeadService::stop_nodes(NodeId but, std::chrono::milliseconds patience,
                             std::function<void()> done) {
  head_.place_no_more();
  stops_last_ = but;
  stop_patience_ = patience;
  on_all_stopped_ = std::move(done);
  for (const auto& [node, link] : links_)
    if (node != but && link.channel) stop_node(*link.channel);
  stop_timer_.expires_after(patience);
  stop_timer_.async_wait(lifetime_.guard([this](boost::system::error_code ec) {
    if (ec || !on_all_stopped_) return;
    LOG(warn, "{} nodes have not stopped in time", links_.size());
    std::exchange(on_all_stopped_, nullptr)();
  }));
  maybe_all_stopped();
}

void HeadService::stop_node(Channel& channel) const {
  ControlRequest stop{{}, *stop_patience_, control::StopNode{}};
  send_request(channel, stop, [](Result<ControlAnswer>) {});
}

void HeadService::maybe_all_stopped() {
  if (!on_all_stopped_) return;
  for (const auto& [node, link] : links_) {
    if (node != stops_last_ && link.channel) return;
  }
  stop_timer_.cancel();
  std::exchange(on_all_stopped_, nullptr)();
}

}  // namespace runtime
