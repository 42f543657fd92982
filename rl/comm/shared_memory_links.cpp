#include "rl/comm/shared_memory_links.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rl/comm/mailbox.h"
#include "rl/comm/peer_process.h"
#include "runtime/core/check.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {
namespace {

using runtime::FileDescriptor;
using runtime::Result;
using runtime::Status;

constexpr std::size_t kPieceBytes = 128 << 10;  // copied before the other side is notified of it
constexpr int kSpins = 400;                     // before a rank sleeps
constexpr std::chrono::milliseconds kLookAround{20};        // whether the others are still there
constexpr std::uint64_t kTelling = std::uint64_t{1} << 62;  // operations of share_memory() itself

// In front of each part.
struct PartHeader {
  std::uint64_t operation = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  // in the sender's memory, where they stay; 0: they follow in the ring
};

// What a rank tells the others of its memory.
struct Told {
  std::array<char, 40> boot{};
  std::uint64_t processes = 0;  // the namespace that its pid is of
  std::int64_t pid = 0;
  std::int32_t fd = -1;  // -1: it has none
  std::uint64_t nonce = 0;
  std::uint64_t nonce_at = 0;  // an address of that process; 0: its memory is not to be read
};

Told this_process() {
  Told told;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  boot.read(told.boot.data(), static_cast<std::streamsize>(told.boot.size()) - 1);
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) == 0) told.processes = info.st_ino;
  told.pid = ::getpid();
  return told;
}

// Sends one value to every other rank, and gives theirs.
template <class T>
Result<std::vector<T>> tell_all(Links& links, const std::vector<T>& to, std::uint64_t operation) {
  std::vector<T> from(to.size());
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int peer = 0; peer < links.size(); ++peer) {
    if (peer == links.rank()) continue;
    const auto at = static_cast<std::size_t>(peer);
    sent.push_back({peer, std::as_bytes(std::span(&to[at], 1))});
    received.push_back({peer, std::as_writable_bytes(std::span(&from[at], 1))});
  }
  if (const Status there = links.start(sent, received, operation)->wait(); !there.ok())
    return there;
  return from;
}

struct Peer {
  Mailbox mailbox;  // none: it is linked otherwise
  PeerProcess process;
  bool reads_this = false;  // this process's memory
};

// What a rank tells each other one that it has reached.
enum class Reached : std::uint8_t { kNot, kMailbox, kAllMemory };

Reached reach(Peer& peer, const Told& told, const Told& mine, int ranks, std::size_t ring_bytes) {
  if (told.fd < 0 || mine.fd < 0 || told.boot != mine.boot || told.processes != mine.processes)
    return Reached::kNot;
  const std::string path = "/proc/" + std::to_string(told.pid) + "/fd/" + std::to_string(told.fd);
  const FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  Mailbox mailbox = Mailbox::map(fd.get(), ranks, ring_bytes);
  peer.process = PeerProcess(static_cast<pid_t>(told.pid));
  if (!mailbox || !peer.process || mailbox.nonce() != told.nonce) return Reached::kNot;
  peer.mailbox = std::move(mailbox);
  std::uint64_t nonce = 0;
  const bool reads =
      told.nonce_at != 0 &&
      peer.process.read(told.nonce_at, std::as_writable_bytes(std::span(&nonce, 1))).ok();
  return reads && nonce == told.nonce ? Reached::kAllMemory : Reached::kMailbox;
}

class SharedExchange;

// An exchange's requests to the links that move its parts.
class PartMover {
 public:
  /// Returns when the exchange's parts are through.
  virtual Status finish(SharedExchange& exchange) = 0;
  /// Ends all exchanges, with that reason.
  virtual void abort(const Status& why) = 0;

 protected:
  ~PartMover() = default;
};

// Parts that are under way. `left` counts those through memory.
class SharedExchange : public Exchange {
 public:
  explicit SharedExchange(PartMover& mover) : mover_(mover) {}
  ~SharedExchange() override {
    if (!waited_) (void)wait();
  }

  Status wait() override {
    waited_ = true;
    Status result = left > 0 ? mover_.finish(*this) : Status();
    if (!others) return result;
    const Status beneath = std::exchange(others, nullptr)->wait();
    if (result.ok() && !beneath.ok()) mover_.abort(beneath);
    return result.ok() ? beneath : result;
  }
  bool is_done() const override { return left == 0 && (!others || others->is_done()); }

  int left = 0;
  std::unique_ptr<Exchange> others;  // through the links beneath

 private:
  PartMover& mover_;
  bool waited_ = false;
};

class SharedMemoryLinks : public Links, public PartMover {
 public:
  SharedMemoryLinks(std::unique_ptr<Links> links, Mailbox own, std::vector<Peer> peers,
                    const SharedMemoryOptions& options)
      : links_(std::move(links)),
        own_(std::move(own)),
        peers_(std::move(peers)),
        deadline_(options.deadline),
        ring_bytes_(options.ring_bytes) {
    outgoing_.resize(peers_.size());
    offered_.resize(peers_.size());
    incoming_.resize(peers_.size());
  }

  ~SharedMemoryLinks() override { leave(); }

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }

  std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                  std::span<const Incoming> received,
                                  std::uint64_t operation) override {
    auto exchange = std::make_unique<SharedExchange>(*this);
    std::vector<Outgoing> other_sent;
    std::vector<Incoming> other_received;
    for (const Outgoing& part : sent) {
      CHECK(part.peer != rank());
      if (!is_near(part.peer)) {
        other_sent.push_back(part);
        continue;
      }
      ++exchange->left;
      const bool stays = peers_[at(part.peer)].reads_this && part.bytes.size() > ring_bytes_ / 2;
      const auto address = stays ? reinterpret_cast<std::uint64_t>(part.bytes.data()) : 0;
      outgoing_[at(part.peer)].push_back(
          {{operation, part.bytes.size(), address}, part.bytes, exchange.get()});
    }
    for (const Incoming& part : received) {
      if (!is_near(part.peer)) {
        other_received.push_back(part);
        continue;
      }
      ++exchange->left;
      incoming_[at(part.peer)].push_back(
          {{operation, part.bytes.size()}, part.bytes, exchange.get()});
    }
    if (!other_sent.empty() || !other_received.empty())
      exchange->others = links_->start(other_sent, other_received, operation);
    if (why().ok()) (void)pump();  // what the rings have room for is in transit
    return exchange;
  }

  // What fails fails when it is waited for.
  void progress() override {
    if (why().ok()) (void)pump();
    links_->progress();
  }

  void abort(const Status& why) override {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      ended_ = why;
    }
    leave();
    own_.wake();
    links_->abort(why);
  }

  Status finish(SharedExchange& exchange) override {
    Status result = why();
    int spins = 0;
    auto moved = std::chrono::steady_clock::now();
    while (result.ok() && exchange.left > 0) {
      const std::uint32_t seen = own_.events();
      if (result = pump(); !result.ok() || exchange.left == 0) break;
      if (progressed_) {
        spins = 0;
        moved = std::chrono::steady_clock::now();
      } else if (++spins < kSpins) {
        __builtin_ia32_pause();
      } else {
        result = sleep(seen);
        if (result.ok() && std::chrono::steady_clock::now() - moved > deadline_) result = late();
      }
      if (result.ok()) result = why();
    }
    if (!result.ok()) {
      abort(result);
      forget(exchange);
    }
    return result;
  }

 private:
  struct Sending {
    PartHeader header;
    std::span<const std::byte> bytes;
    SharedExchange* exchange = nullptr;
    bool begun = false;
  };
  // A part that its receiver reads where it is.
  struct Offered {
    std::uint64_t end = 0;  // of its header in the ring, which is read when the part is
    SharedExchange* exchange = nullptr;
  };
  struct Receiving {
    PartHeader header;
    std::span<std::byte> bytes;
    SharedExchange* exchange = nullptr;
    bool begun = false;
  };

  static std::size_t at(int peer) { return static_cast<std::size_t>(peer); }
  bool is_near(int peer) const { return static_cast<bool>(peers_[at(peer)].mailbox); }

  Status why() const {
    const std::lock_guard lock(mutex_);
    return ended_ ? *ended_ : Status();
  }

  // Ranks that wait for this one are told.
  void leave() {
    own_.close();
    for (const Peer& peer : peers_)
      if (peer.mailbox) peer.mailbox.wake();
  }

  // A part of a broken group is never moved again.
  void forget(const SharedExchange& exchange) {
    for (auto& queue : outgoing_)
      std::erase_if(queue, [&](const Sending& part) { return part.exchange == &exchange; });
    for (auto& queue : offered_)
      std::erase_if(queue, [&](const Offered& part) { return part.exchange == &exchange; });
    for (auto& queue : incoming_)
      std::erase_if(queue, [&](const Receiving& part) { return part.exchange == &exchange; });
  }

  // Moves what can be moved, of all exchanges: the other side may be at an earlier one.
  Status pump() {
    progressed_ = false;
    for (int peer = 0; peer < size(); ++peer) {
      if (!is_near(peer)) continue;
      if (settle_offers(peer)) progressed_ = true;
      if (send_to(peer)) progressed_ = true;
      const Result<bool> received = receive_from(peer);
      if (!received.ok()) return received.status();
      if (*received) progressed_ = true;
    }
    return {};
  }

  // The parts that the peer has read.
  bool settle_offers(int peer) {
    auto& queue = offered_[at(peer)];
    if (queue.empty()) return false;
    const Ring& ring = peers_[at(peer)].mailbox.from(rank());
    const std::uint64_t read = ring.read.load(std::memory_order_acquire);
    bool any = false;
    for (; !queue.empty() && queue.front().end <= read; queue.pop_front()) {
      --queue.front().exchange->left;
      any = true;
    }
    return any;
  }

  bool send_to(int peer) {
    const Mailbox& mailbox = peers_[at(peer)].mailbox;
    Ring& ring = mailbox.from(rank());
    bool moved = false;
    for (auto& queue = outgoing_[at(peer)]; !queue.empty();) {
      Sending& part = queue.front();
      const std::uint64_t written = ring.written.load(std::memory_order_relaxed);
      const std::size_t room = ring_bytes_ - (written - ring.read.load(std::memory_order_acquire));
      std::size_t moving = 0;
      if (!part.begun) {
        if (room < sizeof part.header) break;
        mailbox.put(ring, written, std::as_bytes(std::span(&part.header, 1)));
        moving = sizeof part.header;
        part.begun = true;
        if (part.header.address != 0) {
          offered_[at(peer)].push_back({written + moving, part.exchange});
          part.bytes = {};
        }
      }
      const std::size_t piece = std::min({part.bytes.size(), room - moving, kPieceBytes});
      mailbox.put(ring, written + moving, part.bytes.first(piece));
      part.bytes = part.bytes.subspan(piece);
      moving += piece;
      if (moving == 0) break;
      ring.written.store(written + moving, std::memory_order_release);
      mailbox.wake();
      moved = true;
      if (!part.bytes.empty()) continue;
      if (part.header.address == 0) --part.exchange->left;
      queue.pop_front();
    }
    return moved;
  }

  Result<bool> receive_from(int peer) {
    Ring& ring = own_.from(peer);
    bool moved = false;
    for (auto& queue = incoming_[at(peer)]; !queue.empty();) {
      Receiving& part = queue.front();
      const std::uint64_t read = ring.read.load(std::memory_order_relaxed);
      const std::size_t there = ring.written.load(std::memory_order_acquire) - read;
      if (there > ring_bytes_)
        return runtime::internal_error("rank " + std::to_string(peer) + "'s memory is damaged");
      std::size_t moving = 0;
      if (!part.begun) {
        PartHeader header;
        if (there < sizeof header) break;
        own_.get(ring, read, std::as_writable_bytes(std::span(&header, 1)));
        if (header.operation != part.header.operation || header.bytes != part.header.bytes)
          return runtime::internal_error("rank " + std::to_string(peer) + " sent " +
                                         std::to_string(header.bytes) + " bytes where " +
                                         std::to_string(part.header.bytes) +
                                         " were expected: the ranks do not make the same calls");
        moving = sizeof header;
        part.begun = true;
        if (header.address != 0) {
          if (const Status copied = read_from(peer, header.address, part.bytes); !copied.ok())
            return copied;
          part.bytes = {};
        }
      }
      const std::size_t piece = std::min({part.bytes.size(), there - moving, kPieceBytes});
      own_.get(ring, read + moving, part.bytes.first(piece));
      part.bytes = part.bytes.subspan(piece);
      moving += piece;
      if (moving == 0) break;
      ring.read.store(read + moving, std::memory_order_release);
      peers_[at(peer)].mailbox.wake();
      moved = true;
      if (!part.bytes.empty()) continue;
      --part.exchange->left;
      queue.pop_front();
    }
    return moved;
  }

  // A rank that leaves before its part is read may use the memory for something else.
  Status read_from(int peer, std::uint64_t address, std::span<std::byte> into) const {
    const Peer& other = peers_[at(peer)];
    const Status copied = other.process.read(address, into);
    return is_gone(other) ? left_the_group(peer) : copied;
  }

  Status late() const {
    int peer = 0;
    while (!is_awaited(peer)) ++peer;
    return runtime::deadline_exceeded("rank " + std::to_string(peer) + " is late");
  }

  // Until something was done for this rank after `seen`, or it is time to look around.
  Status sleep(std::uint32_t seen) {
    own_.sleep(seen, kLookAround);
    for (int peer = 0; peer < size(); ++peer) {
      if (!is_near(peer) || !is_awaited(peer) || !is_gone(peers_[at(peer)])) continue;
      // What it sent before may have come meanwhile.
      if (const Status moved = pump(); !moved.ok()) return moved;
      if (!progressed_) return left_the_group(peer);
    }
    return {};
  }

  bool is_awaited(int peer) const {
    return !outgoing_[at(peer)].empty() || !offered_[at(peer)].empty() ||
           !incoming_[at(peer)].empty();
  }

  static Status left_the_group(int peer) {
    return runtime::unavailable("rank " + std::to_string(peer) + " has left the group");
  }

  static bool is_gone(const Peer& peer) {
    return peer.mailbox.is_closed() || peer.process.has_ended();
  }

  const std::unique_ptr<Links> links_;
  Mailbox own_;
  std::vector<Peer> peers_;
  const std::chrono::milliseconds deadline_;
  const std::size_t ring_bytes_;
  std::vector<std::deque<Sending>> outgoing_;    // by peer
  std::vector<std::deque<Offered>> offered_;     // by peer
  std::vector<std::deque<Receiving>> incoming_;  // by peer
  bool progressed_ = false;                      // in the last pump()
  mutable std::mutex mutex_;
  std::optional<Status> ended_;
};

}  // namespace

Result<std::unique_ptr<Links>> share_memory(std::unique_ptr<Links> links,
                                            const SharedMemoryOptions& options) {
  const int ranks = links->size();
  if (ranks == 1) return links;
  Told mine = this_process();
  const FileDescriptor fd(::memfd_create("starling ranks", MFD_CLOEXEC));
  const std::size_t bytes = Mailbox::bytes(ranks, options.ring_bytes);
  Mailbox own;
  if (fd && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0)
    own = Mailbox::map(fd.get(), ranks, options.ring_bytes);
  if (own) {
    mine.fd = fd.get();
    std::random_device random;
    mine.nonce = (std::uint64_t{random()} << 32) | random();
    own.set_nonce(mine.nonce);
    if (options.reads_peers) {
      let_peers_read();
      mine.nonce_at = reinterpret_cast<std::uint64_t>(&mine.nonce);
    }
  }
  const auto told =
      tell_all(*links, std::vector<Told>(static_cast<std::size_t>(ranks), mine), kTelling);
  if (!told.ok()) return told.status();
  std::vector<Peer> peers(static_cast<std::size_t>(ranks));
  std::vector<Reached> reached(peers.size());
  for (std::size_t rank = 0; rank < peers.size(); ++rank)
    if (static_cast<int>(rank) != links->rank())
      reached[rank] = reach(peers[rank], (*told)[rank], mine, ranks, options.ring_bytes);
  const auto mutual = tell_all(*links, reached, kTelling + 1);
  if (!mutual.ok()) return mutual.status();
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    if ((*mutual)[rank] == Reached::kNot) peers[rank] = Peer();
    peers[rank].reads_this = (*mutual)[rank] == Reached::kAllMemory;
  }
  if (std::ranges::none_of(peers, [](const Peer& peer) { return bool{peer.mailbox}; }))
    return links;
  std::unique_ptr<Links> shared = std::make_unique<SharedMemoryLinks>(
      std::move(links), std::move(own), std::move(peers), options);
  return shared;
}

}  // namespace rl
