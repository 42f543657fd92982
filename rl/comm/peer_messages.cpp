#include "rl/comm/peer_messages.h"

#include <algorithm>
#include <utility>

#include "rl/profile/recorder.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

template <class T>
std::span<const std::byte> bytes_in(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

PeerMessages::PeerMessages(std::unique_ptr<Links> links) : links_(std::move(links)) {
  CHECK(links_ != nullptr);
  const auto ranks = static_cast<std::size_t>(links_->size());
  under_way_.resize(ranks);
  kept_.resize(ranks);
  sent_.resize(ranks);
  received_.resize(ranks);
}

Status PeerMessages::failed(const Status& status, std::string_view what, int from, int to) const {
  links_->abort(status);
  return status.with_context(std::string(what) + " from rank " + std::to_string(from) +
                             " to rank " + std::to_string(to) + " of " + std::to_string(size()));
}

Status PeerMessages::end(Sent& sent, int peer) {
  for (std::unique_ptr<Exchange>* part : {&sent.header, &sent.bytes}) {
    if (*part == nullptr) continue;
    const Status status = (*part)->wait();
    if (!status.ok()) return failed(status, sent.what, rank(), peer);
  }
  return {};
}

void PeerMessages::let_go_of_sent() {
  const auto is_done = [](const std::unique_ptr<Exchange>& part) {
    return part == nullptr || part->is_done();
  };
  for (auto& queue : under_way_)
    while (!queue.empty() && is_done(queue.front().header) && is_done(queue.front().bytes))
      queue.pop_front();
}

Status PeerMessages::send(int peer, std::uint64_t channel, std::span<const std::byte> bytes,
                          std::shared_ptr<const void> owner, std::string_view what) {
  const auto at = static_cast<std::size_t>(peer);
  auto& queue = under_way_[at];
  let_go_of_sent();
  const profile::Span span("send");
  recorder_.begin(what);
  Status status;
  while (queue.size() >= kUnderWay && status.ok()) {
    status = end(queue.front(), peer);
    queue.pop_front();
  }
  if (status.ok()) {
    Sent& sent =
        queue.emplace_back(Sent{std::make_unique<const Header>(Header{channel, bytes.size()}),
                                std::move(owner), std::string(what), nullptr, nullptr});
    const Outgoing header{peer, bytes_in(*sent.head)};
    sent.header = links_->start({&header, 1}, {}, sent_[at]++);
    if (!bytes.empty()) {
      const Outgoing body{peer, bytes};
      sent.bytes = links_->start({&body, 1}, {}, sent_[at]++);
    }
  }
  recorder_.end();
  return status;
}

Result<PeerMessages::Received> PeerMessages::next_from(int peer) {
  const auto receive = [&](std::span<std::byte> room) {
    const Incoming part{peer, room};
    return links_->start({}, {&part, 1}, received_[static_cast<std::size_t>(peer)]++)->wait();
  };
  Header head;
  if (const Status there = receive(std::as_writable_bytes(std::span(&head, 1))); !there.ok())
    return there;
  Received message{head.channel, std::vector<std::byte>(head.size)};
  if (message.bytes.empty()) return message;
  if (const Status there = receive(message.bytes); !there.ok()) return there;
  return message;
}

Result<std::vector<std::byte>> PeerMessages::receive(int peer, std::uint64_t channel,
                                                     std::string_view what) {
  auto& kept = kept_[static_cast<std::size_t>(peer)];
  const auto found = std::ranges::find(kept, channel, &Received::channel);
  if (found != kept.end()) {
    std::vector<std::byte> bytes = std::move(found->bytes);
    kept.erase(found);
    return bytes;
  }
  const profile::Span span("receive");
  recorder_.begin(what);
  Result<Received> next = next_from(peer);
  while (next.ok() && next->channel != channel) {
    kept.push_back(std::move(*next));
    next = next_from(peer);
  }
  recorder_.end();
  if (!next.ok()) return failed(next.status(), what, peer, rank());
  let_go_of_sent();
  return std::move(next->bytes);
}

Status PeerMessages::flush() {
  Status first;
  for (int peer = 0; peer < size(); ++peer) {
    for (auto& queue = under_way_[static_cast<std::size_t>(peer)]; !queue.empty();
         queue.pop_front()) {
      recorder_.begin(queue.front().what);
      const Status ended = end(queue.front(), peer);
      recorder_.end();
      if (first.ok()) first = ended;
    }
  }
  return first;
}

}  // namespace rl
