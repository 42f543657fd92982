#include "rl/comm/mailbox.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rl {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(Ring) % alignof(Ring) == 0);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout,
                   nullptr, 0);
}

std::byte* bytes_of(Ring& ring) { return reinterpret_cast<std::byte*>(&ring + 1); }
const std::byte* bytes_of(const Ring& ring) {
  return reinterpret_cast<const std::byte*>(&ring + 1);
}

}  // namespace

std::size_t Mailbox::bytes(int ranks, std::size_t ring_bytes) {
  return sizeof(Head) + static_cast<std::size_t>(ranks) * (sizeof(Ring) + ring_bytes);
}

Mailbox Mailbox::map(int file, int ranks, std::size_t ring_bytes) {
  const std::size_t size = bytes(ranks, ring_bytes);
  struct stat info {};
  if (::fstat(file, &info) != 0 || static_cast<std::size_t>(info.st_size) != size) return {};
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? Mailbox() : Mailbox(at, size, ring_bytes);
}

Mailbox::Mailbox(Mailbox&& other) noexcept
    : at_(std::exchange(other.at_, nullptr)), size_(other.size_), ring_bytes_(other.ring_bytes_) {}

Mailbox& Mailbox::operator=(Mailbox&& other) noexcept {
  std::swap(at_, other.at_);
  std::swap(size_, other.size_);
  std::swap(ring_bytes_, other.ring_bytes_);
  return *this;
}

Mailbox::~Mailbox() {
  if (at_ != nullptr) ::munmap(at_, size_);
}

Ring& Mailbox::from(int rank) const {
  const std::size_t before = static_cast<std::size_t>(rank) * (sizeof(Ring) + ring_bytes_);
  return *reinterpret_cast<Ring*>(static_cast<std::byte*>(at_) + sizeof(Head) + before);
}

void Mailbox::put(Ring& ring, std::uint64_t position, std::span<const std::byte> bytes) const {
  const std::size_t first = position % ring_bytes_;
  const std::size_t whole = std::min(bytes.size(), ring_bytes_ - first);
  if (whole > 0) std::memcpy(bytes_of(ring) + first, bytes.data(), whole);
  if (whole < bytes.size()) std::memcpy(bytes_of(ring), bytes.data() + whole, bytes.size() - whole);
}

void Mailbox::get(const Ring& ring, std::uint64_t position, std::span<std::byte> bytes) const {
  const std::size_t first = position % ring_bytes_;
  const std::size_t whole = std::min(bytes.size(), ring_bytes_ - first);
  if (whole > 0) std::memcpy(bytes.data(), bytes_of(ring) + first, whole);
  if (whole < bytes.size()) std::memcpy(bytes.data() + whole, bytes_of(ring), bytes.size() - whole);
}

void Mailbox::wake() const {
  head().events.fetch_add(1);
  if (head().sleeping.load() != 0) futex(head().events, FUTEX_WAKE, INT32_MAX, nullptr);
}

void Mailbox::sleep(std::uint32_t seen, std::chrono::nanoseconds time) const {
  head().sleeping.store(1);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  futex(head().events, FUTEX_WAIT, seen, &timeout);
  head().sleeping.store(0);
}

}  // namespace rl
