#include "runtime/head/reservation_sender.h"

#include <algorithm>
#include <utility>

namespace runtime {

namespace {

// A node that has not answered by then is taken to have refused.
constexpr auto kPrepareTime = std::chrono::milliseconds(5000);
constexpr auto kSendLater = std::chrono::milliseconds(5);

}  // namespace

void ReservationSender::prepare(NodeId node, Attempt attempt, ResourceMap resources) {
  Node& to = nodes_[node];
  to.next.prepare.push_back({attempt.group, std::move(resources)});
  to.asked.push_back(attempt);
  send(node);
}

void ReservationSender::commit(NodeId node, GroupId group) {
  nodes_[node].next.commit.push_back(group);
  send_later(node);
}

void ReservationSender::release(NodeId node, GroupId group) {
  Node& to = nodes_[node];
  std::erase(to.next.commit, group);
  // A message first releases: what it would prepare after that is not to be held either.
  if (std::erase_if(to.next.prepare,
                    [&](const control::Holding& holding) { return holding.group == group; }) > 0) {
    std::erase_if(to.asked, [&](const Attempt& asked) { return asked.group == group; });
    return;
  }
  to.next.release.push_back(group);
  send_later(node);
}

void ReservationSender::renew(NodeId node, std::vector<control::Holding> holdings) {
  Node renewed;
  renewed.next.reset = true;
  for (const control::Holding& holding : holdings) renewed.next.commit.push_back(holding.group);
  renewed.next.prepare = std::move(holdings);
  nodes_[node] = std::move(renewed);
  send(node);
}

void ReservationSender::send(NodeId node) {
  Node& to = nodes_[node];
  if (to.under_way != 0 || to.next.empty()) return;
  to.under_way = ++messages_;
  ControlRequest request{{}, kPrepareTime, std::exchange(to.next, {})};
  context_.links.request(
      node, std::move(request),
      [this, node, number = to.under_way, asked = std::exchange(to.asked, {})](
          Result<ControlAnswer> answer) { on_reserved(node, number, asked, std::move(answer)); });
}

void ReservationSender::send_later(NodeId node) {
  waiting_.insert(node);
  send_at_ = std::min(send_at_, context_.now() + kSendLater);
}

void ReservationSender::tick(Deadline now) {
  if (send_at_ > now) return;
  send_at_ = Deadline::max();
  for (NodeId node : std::exchange(waiting_, {})) {
    if (nodes_.contains(node)) send(node);
  }
}

void ReservationSender::on_reserved(NodeId node, std::uint64_t number,
                                    const std::vector<Attempt>& asked,
                                    Result<ControlAnswer> answer) {
  auto to = nodes_.find(node);
  if (to != nodes_.end() && to->second.under_way == number) to->second.under_way = 0;
  Result<control::Refusals> refusals = internal_error("it did not say what it holds");
  if (!answer.ok())
    refusals = answer.status();
  else if (auto* said = std::get_if<control::Refusals>(&*answer))
    refusals = std::move(*said);
  on_answer_(node, asked, refusals);
  to = nodes_.find(node);
  if (to == nodes_.end()) return;
  if (to->second.next.reset || !to->second.next.prepare.empty())
    send(node);
  else if (!to->second.next.empty())
    send_later(node);
}

}  // namespace runtime
