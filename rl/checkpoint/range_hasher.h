// RangeHasher: hashes of the ranges of a file that one of its writers writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/xxh3_hash.h"

namespace rl {

/// XXH3-128 of the bytes [begin, end) of a file, as 32 hex digits.
struct RangeHash {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string hash;

  bool operator==(const RangeHash&) const = default;
};

/// Stretches that follow on each other become one range, up to the next multiple of kRangeBytes:
/// ranges that readers check on several threads. Ranges below kBytesMin are left out, since they
/// cost more to list than to read again. A resource; one thread at a time.
class RangeHasher {
 public:
  static constexpr std::uint64_t kRangeBytes = 32 << 20;
  static constexpr std::uint64_t kBytesMin = 64 << 10;

  /// The next bytes that are written, at this place of the file.
  void add(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Of all that was added, in that order. Call once, last.
  std::vector<RangeHash> finish();

 private:
  void end_range();

  std::vector<RangeHash> ranges_;
  std::unique_ptr<runtime::Xxh3Hash> hash_;  // of [begin_, end_)
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace rl
