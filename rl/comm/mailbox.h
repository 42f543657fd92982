// Mailbox: memory through which the ranks of a machine give bytes to one of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rl {

/// How far the bytes of one rank to another are. The bytes follow it in memory. Positions only
/// grow; a byte lies at its position modulo the ring's size.
struct Ring {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
};

/// The mapped memory of a rank: how it is woken, and a ring from each rank. It begins as zeros.
class Mailbox {
 public:
  Mailbox() = default;  // none
  Mailbox(Mailbox&& other) noexcept;
  Mailbox& operator=(Mailbox&& other) noexcept;
  ~Mailbox();

  /// Its size.
  static std::size_t bytes(int ranks, std::size_t ring_bytes);
  /// Maps a file of that size; none where it has another one, or the system does not let it.
  static Mailbox map(int file, int ranks, std::size_t ring_bytes);

  explicit operator bool() const { return at_ != nullptr; }

  /// A number by which others know that they have mapped the right one.
  std::uint64_t nonce() const { return head().nonce; }
  void set_nonce(std::uint64_t nonce) { head().nonce = nonce; }

  /// Its rank leaves the group.
  void close() { head().closed.store(1); }
  bool is_closed() const { return head().closed.load() != 0; }

  Ring& from(int rank) const;
  /// Copies to or from a position of a ring of this mailbox; at most its size.
  void put(Ring& ring, std::uint64_t position, std::span<const std::byte> bytes) const;
  void get(const Ring& ring, std::uint64_t position, std::span<std::byte> bytes) const;

  /// How often something was done for this rank.
  std::uint32_t events() const { return head().events.load(); }
  /// Something was done for it.
  void wake() const;
  /// Until something is done for it after events() were `seen`, or the time is over.
  void sleep(std::uint32_t seen, std::chrono::nanoseconds time) const;

 private:
  struct Head {
    alignas(64) std::uint64_t nonce;
    std::atomic<std::uint32_t> events;
    std::atomic<std::uint32_t> sleeping;
    std::atomic<std::uint32_t> closed;
  };

  Mailbox(void* at, std::size_t size, std::size_t ring_bytes)
      : at_(at), size_(size), ring_bytes_(ring_bytes) {}
  Head& head() const { return *static_cast<Head*>(at_); }

  void* at_ = nullptr;
  std::size_t size_ = 0;
  std::size_t ring_bytes_ = 0;
};

}  // namespace rl
