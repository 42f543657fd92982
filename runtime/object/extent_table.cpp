#include "runtime/object/extent_table.h"

#include <utility>

#include "runtime/core/check.h"
#include "runtime/object/segment.h"

namespace runtime {

ExtentTable::ExtentTable(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  CHECK(capacity_bytes % kPageBytes == 0);
  clean_.add({0, capacity_bytes});
}

std::optional<Extent> ExtentTable::lease(std::uint64_t bytes, Client holder) {
  CHECK(holder != 0);
  if (bytes == 0 || bytes > capacity_bytes_) return std::nullopt;
  std::uint64_t size = round_to_pages(bytes);
  std::optional<ByteRange> range = retained_.take(size);
  if (!range) range = clean_.take(size);
  if (!range) return std::nullopt;
  std::uint64_t id = ++last_id_;
  entries_.emplace(id, Entry{*range, holder, 0});
  clients_[holder].leases.insert(id);
  leased_bytes_ += size;
  return Extent{id, *range};
}

void ExtentTable::orphan(Entries::iterator entry) {
  entry->second.holder = 0;
  leased_bytes_ -= entry->second.range.size;
  orphaned_bytes_ += entry->second.range.size;
  release_if_free(entry);
}

void ExtentTable::release_if_free(Entries::iterator entry) {
  if (entry->second.holder != 0 || entry->second.pins > 0) return;
  orphaned_bytes_ -= entry->second.range.size;
  retained_.add(entry->second.range);
  entries_.erase(entry);
}

bool ExtentTable::give_back(std::uint64_t extent, Client holder) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end() || entry->second.holder != holder) return false;
  clients_[holder].leases.erase(extent);
  orphan(entry);
  return true;
}

std::optional<Extent> ExtentTable::pin(std::uint64_t extent, Client client) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end()) return std::nullopt;
  ++entry->second.pins;
  ++pins_;
  ++clients_[client].pins[extent];
  return Extent{extent, entry->second.range};
}

bool ExtentTable::unpin(std::uint64_t extent, Client client) {
  auto holdings = clients_.find(client);
  if (holdings == clients_.end()) return false;
  auto pinned = holdings->second.pins.find(extent);
  if (pinned == holdings->second.pins.end()) return false;
  if (--pinned->second == 0) holdings->second.pins.erase(pinned);
  auto entry = entries_.find(extent);
  CHECK(entry != entries_.end());
  --entry->second.pins;
  --pins_;
  release_if_free(entry);
  return true;
}

std::optional<Extent> ExtentTable::find(std::uint64_t extent) const {
  auto entry = entries_.find(extent);
  if (entry == entries_.end()) return std::nullopt;
  return Extent{extent, entry->second.range};
}

std::uint64_t ExtentTable::pins_of(std::uint64_t extent) const {
  auto entry = entries_.find(extent);
  return entry == entries_.end() ? 0 : entry->second.pins;
}

void ExtentTable::drop(Client client) {
  auto node = clients_.extract(client);
  if (node.empty()) return;
  for (auto [extent, count] : node.mapped().pins) {
    auto entry = entries_.find(extent);
    CHECK(entry != entries_.end());
    entry->second.pins -= count;
    pins_ -= count;
    release_if_free(entry);
  }
  for (std::uint64_t extent : node.mapped().leases) orphan(entries_.find(extent));
}

}  // namespace runtime
