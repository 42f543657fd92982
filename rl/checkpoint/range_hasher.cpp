#include "rl/checkpoint/range_hasher.h"

#include <algorithm>
#include <utility>

namespace rl {

void RangeHasher::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (offset != end_ || offset % kRangeBytes == 0) {
      end_range();
      begin_ = end_ = offset;
    }
    if (!hash_) hash_ = std::make_unique<runtime::Xxh3Hash>();
    const auto taken = std::min<std::uint64_t>(bytes.size(), kRangeBytes - offset % kRangeBytes);
    hash_->add(bytes.data(), taken);
    bytes = bytes.subspan(taken);
    end_ = offset += taken;
  }
}

std::vector<RangeHash> RangeHasher::finish() {
  end_range();
  return std::move(ranges_);
}

void RangeHasher::end_range() {
  if (end_ - begin_ >= kBytesMin) ranges_.push_back({begin_, end_, hash_->hex()});
  hash_.reset();
  begin_ = end_;
}

}  // namespace rl
