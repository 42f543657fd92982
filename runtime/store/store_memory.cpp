#include "runtime/store/store_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"

namespace runtime::object_detail {

namespace {

// Giving pages back takes about a millisecond for this many bytes; other connections get their turn
// in between.
constexpr std::uint64_t kTrimStepBytes = 8 << 20;
constexpr std::chrono::milliseconds kTrimPause{2};

}  // namespace

StoreMemory::StoreMemory(EventLoop& event_loop, std::unique_ptr<Segment> mapped,
                         const ObjectStoreOptions& options)
    : loop(event_loop),
      segment(std::move(mapped)),
      table(segment->bytes()),
      line(std::make_shared<RoomLine>(event_loop)),
      retained_bytes_max_(options.retained_bytes_max),
      retained_for_(options.retained_for),
      trim_timer_(event_loop.context()) {}

template <class Take>
auto StoreMemory::find_room(std::uint64_t bytes, Take take) -> decltype(take()) {
  if (bytes > table.capacity_bytes()) return std::nullopt;
  for (;;) {
    if (auto found = take()) {
      unused_bytes_ = std::min(unused_bytes_, table.retained_bytes());
      return found;
    }
    // Free memory may lie in both sets side by side; discarded, it merges.
    if (table.capacity_bytes() - table.used_bytes() >= bytes && table.retained_bytes() > 0) {
      while (auto range = table.take_retained(kTrimStepBytes)) {
        segment->discard(range->begin, range->size);
        table.discarded(*range);
      }
      unused_bytes_ = 0;
      if (auto found = take()) return found;
    }
    if (!evict_copy || !evict_copy()) return std::nullopt;
  }
}

std::optional<Extent> StoreMemory::lease(std::uint64_t bytes, ExtentTable::Client holder) {
  auto extent = find_room(bytes, [&] { return table.lease(bytes, holder); });
  if (extent && balance) balance();
  return extent;
}

std::optional<ByteRange> StoreMemory::take(std::uint64_t bytes) {
  return find_room(bytes, [&] { return table.take(bytes); });
}

void StoreMemory::changed() {
  for (std::uint64_t extent : table.take_ended()) {
    if (on_ended_on_disk) on_ended_on_disk(extent);
  }
  for (std::uint64_t extent : table.take_ended_shared()) {
    if (on_ended_shared) on_ended_shared(extent);
  }
  line->serve();
  watch_unused();
}

void StoreMemory::watch_unused() {
  if (watching_ || table.retained_bytes() <= retained_bytes_max_) return;
  unused_bytes_ = table.retained_bytes();
  trim_later(retained_for_);
}

std::uint64_t StoreMemory::give_back_free() {
  to_trim_bytes_ = table.retained_bytes();
  if (to_trim_bytes_ > 0) trim_later(std::chrono::milliseconds(0));
  return to_trim_bytes_;
}

void StoreMemory::trim_later(std::chrono::milliseconds pause) {
  watching_ = true;
  trim_timer_.expires_after(pause);
  trim_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    if (auto self = weak.lock(); self && !ec) self->trim_step();
  });
}

void StoreMemory::trim_step() {
  watching_ = false;
  if (to_trim_bytes_ == 0) {
    const std::uint64_t unused = std::exchange(unused_bytes_, 0);
    to_trim_bytes_ = unused - std::min(unused, retained_bytes_max_);
  }
  auto range = to_trim_bytes_ > 0
                   ? table.take_retained(std::min(kTrimStepBytes, round_to_pages(to_trim_bytes_)))
                   : std::nullopt;
  if (!range) {
    to_trim_bytes_ = 0;
    return watch_unused();
  }
  segment->discard(range->begin, range->size);
  table.discarded(*range);
  to_trim_bytes_ -= std::min(to_trim_bytes_, range->size);
  if (to_trim_bytes_ > 0)
    trim_later(kTrimPause);
  else
    watch_unused();
}

std::shared_ptr<void> StoreMemory::hold(std::uint64_t extent) {
  if (!table.pin(extent, kStoreItself)) return nullptr;
  // Payloads are dropped by whichever thread sent their last byte.
  return std::shared_ptr<void>(nullptr, [self = shared_from_this(), extent](void*) {
    self->loop.post([self, extent] {
      CHECK(self->table.unpin(extent, kStoreItself));
      self->changed();
    });
  });
}

}  // namespace runtime::object_detail
