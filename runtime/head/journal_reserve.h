// JournalReserve: room on the journal's disk that nothing but the journal may take.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// A file next to the journal that reserves room. It gives the room back a piece at a time when the
/// journal finds the disk full. Not thread-safe.
class JournalReserve {
 public:
  /// As much, or a quarter of what the disk has, if that is less.
  static constexpr std::uint64_t kBytesMax = 4 << 20;

  /// Takes over what an earlier one has left there.
  explicit JournalReserve(std::filesystem::path folder);
  JournalReserve(const JournalReserve&) = delete;
  JournalReserve& operator=(const JournalReserve&) = delete;

  /// Makes room for a write of that many bytes. False: none is left to give.
  bool release(std::uint64_t bytes);
  /// Takes room again as far as the disk has it. Whether the disk has as much as it should, besides
  /// the reserve; what takes much is refused until then.
  bool refill();
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::filesystem::path folder_;
  FileDescriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace runtime
