#include "rl/weights/block_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rl {
namespace {

using runtime::Status;

constexpr std::size_t kBlocksMax = 3;
constexpr std::uint64_t kPageBytes = 4096;  // what goes past the cache is of whole ones
// Below it a thread takes longer to wake up than the page cache takes for the bytes.
constexpr std::uint64_t kHandedOverFrom = 256 << 10;

std::uint64_t page_before(std::uint64_t offset) { return offset / kPageBytes * kPageBytes; }
std::uint64_t page_after(std::uint64_t offset) { return page_before(offset + kPageBytes - 1); }

}  // namespace

BlockWriter::BlockWriter(Target target, Observer observer)
    : target_(std::move(target)), observer_(std::move(observer)) {}

BlockWriter::~BlockWriter() {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() > 1) queue_.resize(1);  // the first one is being written
  }
  stop();
}

Status BlockWriter::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (const Status there = allocate_first(); !there.ok()) return there;
  while (!bytes.empty()) {
    const bool follows = offset == filled_.to && offset % kBlockBytes != 0;
    if (!follows) {
      if (const Status handed = hand_over(); !handed.ok()) return handed;
      filled_.from = filled_.to = offset;
    }
    const std::uint64_t at = offset % kBlockBytes;
    const std::size_t taken = std::min<std::size_t>(bytes.size(), kBlockBytes - at);
    std::memcpy(filled_.memory.get() + at, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    offset += taken;
    filled_.to = offset;
  }
  return {};
}

Status BlockWriter::finish() {
  const Status handed = hand_over();
  stop();
  return handed.ok() ? failure_ : handed;
}

Status BlockWriter::allocate_first() {
  if (filled_.memory) return {};
  filled_.memory = allocate_direct_block(kBlockBytes);
  blocks_ = 1;
  if (filled_.memory) return {};
  return runtime::resource_exhausted(target_.name.string() + ": no memory for a block to write");
}

// Empties filled_.
Status BlockWriter::hand_over() {
  if (filled_.from == filled_.to) return {};
  if (observer_) {
    const std::byte* const begin = filled_.memory.get() + filled_.from % kBlockBytes;
    observer_(filled_.from, {begin, filled_.to - filled_.from});
  }
  const bool is_short = filled_.to - filled_.from < kHandedOverFrom;
  if (!is_short && target_.direct_fd >= 0 && !is_alone_ && !thread_.joinable()) {
    auto started = runtime::Thread::start_real([this] { write_queued(); });
    is_alone_ = !started.ok();
    if (started.ok()) thread_ = *std::move(started);
  }
  if (!is_short && thread_.joinable()) return take_empty();
  const Status written = write_block(filled_);
  filled_.from = filled_.to;
  return written;
}

// Queues filled_, and waits for a block to go on with.
Status BlockWriter::take_empty() {
  const std::uint64_t to = filled_.to;
  std::unique_lock lock(mutex_);
  queue_.push_back(std::exchange(filled_, {}));
  changed_.notify_all();
  if (empty_.empty() && blocks_ < kBlocksMax) {
    if (DirectBlock memory = allocate_direct_block(kBlockBytes); memory) {
      empty_.push_back({std::move(memory)});
      ++blocks_;
    }
  }
  changed_.wait(lock, [this] { return !empty_.empty(); });
  filled_ = std::move(empty_.back());
  empty_.pop_back();
  filled_.from = filled_.to = to;
  return failure_;
}

// The thread. After a failure it only empties blocks.
void BlockWriter::write_queued() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Block& block = queue_.front();  // which no other thread touches
    const bool is_wanted = failure_.ok();
    lock.unlock();
    const Status written = is_wanted ? write_block(block) : Status();
    lock.lock();
    if (failure_.ok()) failure_ = written;
    empty_.push_back(std::move(queue_.front()));
    queue_.pop_front();
    changed_.notify_all();
  }
}

void BlockWriter::stop() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Others may write the rest of the first and of the last page, so that these go through the cache.
Status BlockWriter::write_block(const Block& block) const {
  const std::uint64_t pages_from = page_after(block.from), pages_to = page_before(block.to);
  const bool is_short = block.to - block.from < kHandedOverFrom;
  if (target_.direct_fd < 0 || is_short || pages_from >= pages_to)
    return write_out(false, block, block.from, block.to);
  Status status = write_out(false, block, block.from, pages_from);
  if (status.ok()) status = write_out(true, block, pages_from, pages_to);
  return status.ok() ? write_out(false, block, pages_to, block.to) : status;
}

Status BlockWriter::write_out(bool direct, const Block& block, std::uint64_t begin,
                              std::uint64_t end) const {
  const std::byte* const memory = block.memory.get();
  while (begin < end) {
    const ssize_t written =
        ::pwrite(direct ? target_.direct_fd : target_.fd, memory + begin % kBlockBytes, end - begin,
                 static_cast<off_t>(begin));
    if (written >= 0) {
      begin += static_cast<std::uint64_t>(written);
      // What follows a write that was cut short begins anywhere.
      if (begin % kPageBytes != 0) direct = false;
    } else if (const int error = errno; error == EINVAL && direct) {
      direct = false;  // some file systems take the flag and refuse the write
    } else if (error != EINTR) {
      return runtime::errno_status(error, target_.name.string() + ": cannot be written");
    }
  }
  return {};
}

}  // namespace rl
