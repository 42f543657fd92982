// Segment: the shared memory of a node's store, as a file without a name, and its mappings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/store/object_location.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kObjectAlignment = 64;

/// Precedes every object in the segment. Written by the creator; readers look at it through
/// read-only pages to notice that a location is stale.
struct alignas(kObjectAlignment) ObjectHeader {
  static constexpr std::uint64_t kMagic = 0x314a424f4c525453;  // "STRLOBJ1"
  enum State : std::uint32_t { kWriting = 1, kSealed = 2, kFreed = 3 };

  std::uint64_t magic;
  std::uint8_t id[16];
  std::uint64_t size;
  std::atomic<std::uint32_t> state;
};
static_assert(sizeof(ObjectHeader) == kObjectAlignment);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The bytes that an object takes in its extent, header included.
constexpr std::uint64_t object_bytes(std::uint64_t size) {
  return sizeof(ObjectHeader) + (size + kObjectAlignment - 1) / kObjectAlignment * kObjectAlignment;
}
constexpr std::uint64_t round_to_pages(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// A mapping of the whole segment. Pages are touched only as they are used.
class Segment {
 public:
  /// A fresh segment. Errors: kResourceExhausted.
  static Result<std::unique_ptr<Segment>> create(std::uint64_t bytes);
  /// Maps another process's segment. Errors: kInvalidArgument when the descriptor is no segment of
  /// that size, kResourceExhausted.
  static Result<std::unique_ptr<Segment>> map(FileDescriptor fd, std::uint64_t bytes);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  std::uint64_t bytes() const { return bytes_; }
  std::byte* writable() { return writable_; }
  const std::byte* readable() const { return readable_; }

  /// A descriptor for another process. Errors: kResourceExhausted.
  Result<FileDescriptor> duplicate() const;

  /// Gives the pages of a range back to the system; they read as zero afterwards.
  void discard(std::uint64_t begin, std::uint64_t size);
  /// Touches the pages of a range ahead of writing. Errors: kResourceExhausted when the machine has
  /// no memory left.
  Status populate(std::uint64_t begin, std::uint64_t size);
  /// Whether the range's pages seem to be in this process's page tables, so that populate() would
  /// be a walk for nothing. It looks at a few of them.
  bool is_populated(std::uint64_t begin, std::uint64_t size) const;

  /// The sealed object at `location`, within the extent [begin, end) that it claims to lie in, or
  /// kObjectLost when something else is there now.
  Result<std::span<const std::byte>> find(const ObjectLocation& location, std::uint64_t begin,
                                          std::uint64_t end) const;
  /// Writes the header in front of `location.offset`.
  void stamp(const ObjectLocation& location, ObjectHeader::State state);

 private:
  Segment(FileDescriptor fd, std::uint64_t bytes, std::byte* writable, const std::byte* readable)
      : fd_(std::move(fd)),
        pagemap_(open_pagemap()),
        bytes_(bytes),
        writable_(writable),
        readable_(readable) {}
  static FileDescriptor open_pagemap();

  FileDescriptor fd_;
  FileDescriptor pagemap_;  // of this process; none where the system has none
  std::uint64_t bytes_;
  std::byte* writable_;
  const std::byte* readable_;
};

}  // namespace runtime
