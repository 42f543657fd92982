#include "runtime/transport/pending_table.h"

#include <algorithm>
#include <utility>

namespace runtime {

// An id is the slot's generation in the high half and its index in the low half. Generations start
// at 1, so no id is 0.
std::uint64_t PendingTable::add(Entry entry) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].entry = std::move(entry);
  ++size_;
  return std::uint64_t{slots_[index].generation} << 32 | index;
}

PendingTable::Entry* PendingTable::find(std::uint64_t id) {
  std::size_t index = id & 0xffffffffu;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.generation == id >> 32 && slot.entry ? &*slot.entry : nullptr;
}

PendingTable::Entry PendingTable::take_slot(std::size_t index) {
  Slot& slot = slots_[index];
  Entry entry = std::move(*slot.entry);
  slot.entry.reset();
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(static_cast<std::uint32_t>(index));
  --size_;
  return entry;
}

std::optional<PendingTable::Entry> PendingTable::take(std::uint64_t id) {
  if (find(id) == nullptr) return std::nullopt;
  return take_slot(id & 0xffffffffu);
}

std::vector<PendingTable::Entry> PendingTable::take_expired(Deadline now, Deadline* next) {
  std::vector<Entry> expired;
  *next = Deadline::max();
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (!slots_[index].entry) continue;
    if (slots_[index].entry->deadline <= now) {
      expired.push_back(take_slot(index));
    } else {
      *next = std::min(*next, slots_[index].entry->deadline);
    }
  }
  return expired;
}

std::vector<PendingTable::Entry> PendingTable::take_all() {
  std::vector<Entry> all;
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].entry) all.push_back(take_slot(index));
  }
  return all;
}

}  // namespace runtime
