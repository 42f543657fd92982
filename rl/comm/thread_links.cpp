#include "rl/comm/thread_links.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Status;

// One part in transit. Both sides hold it; the receiver copies.
struct Parcel {
  std::uint64_t operation = 0;
  std::span<const std::byte> bytes;
  bool claimed = false;  // the receiver copies
  bool taken = false;    // and has copied
};

// What all ends share. Copies happen under no lock: a sender's memory stays while a part of it is
// claimed.
struct Hub {
  explicit Hub(int size) : ranks(static_cast<std::size_t>(size)) {
    for (Rank& rank : ranks) rank.from.resize(static_cast<std::size_t>(size));
  }

  struct Rank {
    std::vector<std::deque<std::shared_ptr<Parcel>>> from;  // by sender
    std::optional<Status> ended;                            // aborted
    bool gone = false;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
};

class ThreadExchange : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Hub> hub, int rank, std::uint64_t operation,
                 std::vector<Incoming> received)
      : hub_(std::move(hub)), rank_(rank), operation_(operation), received_(std::move(received)) {}

  ~ThreadExchange() override {
    if (!waited_) (void)wait();
  }

  void sends(int peer, std::shared_ptr<Parcel> parcel) {
    sent_.push_back({peer, std::move(parcel)});
  }

  bool is_done() const override {
    const std::lock_guard lock(hub_->mutex);
    return received_.empty() &&
           std::ranges::all_of(sent_, [](const Sent& one) { return one.parcel->taken; });
  }

  Status wait() override {
    waited_ = true;
    Status result;
    for (const Incoming& part : received_) {
      if (result = receive(part); !result.ok()) break;
    }
    std::unique_lock lock(hub_->mutex);
    for (const auto& [peer, parcel] : sent_) {
      if (!result.ok()) break;
      hub_->changed.wait(lock, [&] { return parcel->taken || ended() || gone(peer); });
      if (!parcel->taken) result = failure(peer);
    }
    if (!result.ok()) {  // the group is broken: no rank may wait for this rank
      if (!mine().ended) mine().ended = result;
      mine().gone = true;
      hub_->changed.notify_all();
      withdraw(lock);
    }
    return result;
  }

 private:
  struct Sent {
    int peer;
    std::shared_ptr<Parcel> parcel;
  };

  Hub::Rank& mine() { return hub_->ranks[static_cast<std::size_t>(rank_)]; }
  bool ended() { return mine().ended.has_value(); }
  bool gone(int peer) { return hub_->ranks[static_cast<std::size_t>(peer)].gone; }

  Status failure(int peer) {
    if (ended()) return *mine().ended;
    return runtime::unavailable("rank " + std::to_string(peer) + " has left the group");
  }

  Status receive(const Incoming& part) {
    std::shared_ptr<Parcel> parcel;
    {
      std::unique_lock lock(hub_->mutex);
      auto& queue = mine().from[static_cast<std::size_t>(part.peer)];
      const auto mine_of = [&] {
        return std::ranges::find(queue, operation_, [](const auto& one) { return one->operation; });
      };
      hub_->changed.wait(lock,
                         [&] { return mine_of() != queue.end() || ended() || gone(part.peer); });
      const auto found = mine_of();
      if (ended() || found == queue.end()) return failure(part.peer);
      parcel = *found;
      if (parcel->bytes.size() != part.bytes.size()) {
        return runtime::internal_error("rank " + std::to_string(part.peer) + " sent " +
                                       std::to_string(parcel->bytes.size()) + " bytes where " +
                                       std::to_string(part.bytes.size()) +
                                       " were expected: the ranks do not make the same calls");
      }
      queue.erase(found);
      parcel->claimed = true;
    }
    std::memcpy(part.bytes.data(), parcel->bytes.data(), part.bytes.size());
    const std::lock_guard lock(hub_->mutex);
    parcel->taken = true;
    hub_->changed.notify_all();
    return {};
  }

  // No receiver may copy from memory that its owner takes back.
  void withdraw(std::unique_lock<std::mutex>& lock) {
    for (const auto& [peer, parcel] : sent_) {
      auto& queue =
          hub_->ranks[static_cast<std::size_t>(peer)].from[static_cast<std::size_t>(rank_)];
      std::erase(queue, parcel);
      hub_->changed.wait(lock, [&] { return !parcel->claimed || parcel->taken; });
    }
  }

  std::shared_ptr<Hub> hub_;
  const int rank_;
  const std::uint64_t operation_;
  std::vector<Incoming> received_;
  std::vector<Sent> sent_;
  bool waited_ = false;
};

class ThreadLinks : public Links {
 public:
  ThreadLinks(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  ~ThreadLinks() override {
    const std::lock_guard lock(hub_->mutex);
    hub_->ranks[static_cast<std::size_t>(rank_)].gone = true;
    hub_->changed.notify_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(hub_->ranks.size()); }

  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received,
                                  std::uint64_t operation) override {
    auto exchange = std::make_unique<ThreadExchange>(
        hub_, rank_, operation, std::vector<Incoming>(received.begin(), received.end()));
    const std::lock_guard lock(hub_->mutex);
    for (const Outgoing& part : sent) {
      CHECK(part.peer != rank_);
      auto parcel = std::make_shared<Parcel>(Parcel{operation, part.bytes});
      hub_->ranks[static_cast<std::size_t>(part.peer)]
          .from[static_cast<std::size_t>(rank_)]
          .push_back(parcel);
      exchange->sends(part.peer, std::move(parcel));
    }
    hub_->changed.notify_all();
    return exchange;
  }

  void abort(const Status& why) override {
    const std::lock_guard lock(hub_->mutex);
    Hub::Rank& own = hub_->ranks[static_cast<std::size_t>(rank_)];
    if (!own.ended) own.ended = why;
    own.gone = true;
    hub_->changed.notify_all();
  }

 private:
  std::shared_ptr<Hub> hub_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Links>> make_thread_links(int size) {
  CHECK(size > 0);
  auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Links>> ends;
  for (int rank = 0; rank < size; ++rank) ends.push_back(std::make_unique<ThreadLinks>(hub, rank));
  return ends;
}

}  // namespace rl
