// BlockWriter: stretches of a file on their way to the disk, written by its own thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "rl/weights/page_cache.h"
#include "runtime/core/status.h"
#include "runtime/core/thread.h"

namespace rl {

/// Gathers what is written into blocks of the file. A thread writes the full ones, past the page
/// cache, while the caller fills the next. So copying, and what the observer does, cost no time of
/// the disk. Memory: three blocks. A resource that stays put; one thread at a time.
class BlockWriter {
 public:
  static constexpr std::uint64_t kBlockBytes = 4 << 20;

  /// Sees every stretch as it goes to the disk, in the order of write(), on the caller's thread.
  using Observer = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

  struct Target {
    std::filesystem::path name;  // of the file in errors
    int fd = -1;                 // borrowed: writes through the page cache
    int direct_fd = -1;          // borrowed: past it; -1: the file system has no such thing
  };

  explicit BlockWriter(Target target, Observer observer = {});
  BlockWriter(const BlockWriter&) = delete;
  /// Drops what is not written yet, unless finish() was called.
  ~BlockWriter();

  /// At this place of the file; places that are written twice have either. May keep it back, so
  /// that a later call, or finish(), has its errors: as errno says, with the file's name.
  runtime::Status write(std::uint64_t offset, std::span<const std::byte> bytes);

  /// All has been written. Call once, last.
  runtime::Status finish();

 private:
  // The part [from, to) of the file, in the block of the file that it is in.
  struct Block {
    DirectBlock memory;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };

  runtime::Status allocate_first();
  runtime::Status hand_over();
  runtime::Status take_empty();
  void write_queued();
  void stop();
  runtime::Status write_block(const Block& block) const;
  runtime::Status write_out(bool direct, const Block& block, std::uint64_t begin,
                            std::uint64_t end) const;

  const Target target_;
  const Observer observer_;
  Block filled_;            // by the caller
  std::size_t blocks_ = 0;  // that were allocated
  runtime::Thread thread_;
  bool is_alone_ = false;  // no thread can be made: the caller writes

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Block> queue_;  // to be written; the first one stays until it is
  std::vector<Block> empty_;
  runtime::Status failure_;
  bool stops_ = false;
};

}  // namespace rl
