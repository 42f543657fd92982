#include "runtime/store/extent_table.h"

#include <algorithm>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/store/segment.h"

namespace runtime {

ExtentTable::ExtentTable(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
  CHECK(capacity_bytes % kPageBytes == 0);
  clean_.add({0, capacity_bytes});
}

std::optional<Extent> ExtentTable::lease(std::uint64_t bytes, Client holder) {
  CHECK(holder != 0);
  if (bytes == 0 || bytes > capacity_bytes_) return std::nullopt;
  std::optional<ByteRange> range = take(bytes);
  if (!range) return std::nullopt;
  std::uint64_t id = ++last_id_;
  Entry entry;
  entry.range = *range;
  entry.home = range->begin;
  entry.holder = holder;
  entry.last_use = ++uses_;
  entries_.emplace(id, entry);
  clients_[holder].leases.insert(id);
  leased_bytes_ += range->size;
  return Extent{id, *range, range->begin};
}

std::optional<ByteRange> ExtentTable::take(std::uint64_t bytes) {
  std::uint64_t size = round_to_pages(bytes);
  std::optional<ByteRange> range = retained_.take(size);
  return range ? range : clean_.take(size);
}

std::uint64_t& ExtentTable::bytes_of(const Entry& entry) {
  if (!entry.resident) return vacated_bytes_;
  if (entry.holder != 0) return leased_bytes_;
  return entry.keeps > 0 ? kept_bytes_ : orphaned_bytes_;
}

void ExtentTable::orphan(Entries::iterator entry) {
  bytes_of(entry->second) -= entry->second.range.size;
  entry->second.holder = 0;
  entry->second.surrendered = true;  // no process is left that would write it without asking
  bytes_of(entry->second) += entry->second.range.size;
  release_if_free(entry);
}

bool ExtentTable::keep(std::uint64_t extent) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end()) return false;
  bytes_of(entry->second) -= entry->second.range.size;
  ++entry->second.keeps;
  bytes_of(entry->second) += entry->second.range.size;
  return true;
}

bool ExtentTable::unkeep(std::uint64_t extent) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end() || entry->second.keeps == 0) return false;
  bytes_of(entry->second) -= entry->second.range.size;
  --entry->second.keeps;
  bytes_of(entry->second) += entry->second.range.size;
  release_if_free(entry);
  return true;
}

ExtentTable::Client ExtentTable::holder_of(std::uint64_t extent) const {
  auto entry = entries_.find(extent);
  return entry == entries_.end() ? 0 : entry->second.holder;
}

std::vector<std::uint64_t> ExtentTable::leases_of(Client client) const {
  auto holdings = clients_.find(client);
  if (holdings == clients_.end()) return {};
  return {holdings->second.leases.begin(), holdings->second.leases.end()};
}

void ExtentTable::mark_shared(std::uint64_t extent) {
  if (auto entry = entries_.find(extent); entry != entries_.end()) entry->second.shared = true;
}

void ExtentTable::release_if_free(Entries::iterator entry) {
  if (entry->second.holder != 0 || entry->second.pins > 0 || entry->second.keeps > 0) return;
  if (entry->second.shared) ended_shared_.push_back(entry->first);
  bytes_of(entry->second) -= entry->second.range.size;
  if (entry->second.resident)
    retained_.add(entry->second.range);
  else
    ended_.push_back(entry->first);
  entries_.erase(entry);
}

bool ExtentTable::surrender(std::uint64_t extent, Client holder) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end() || entry->second.holder != holder) return false;
  entry->second.surrendered = true;
  return true;
}

std::vector<Extent> ExtentTable::vacatable(std::uint64_t bytes) const {
  std::vector<std::pair<std::uint64_t, Extent>> found;
  for (const auto& [id, entry] : entries_) {
    if (entry.resident && entry.surrendered && entry.pins == 0)
      found.push_back({entry.last_use, {id, entry.range, entry.home}});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Extent> chosen;
  std::uint64_t sum = 0;
  for (const auto& [last_use, extent] : found) {
    if (sum >= bytes) break;
    sum += extent.range.size;
    chosen.push_back(extent);
  }
  return chosen;
}

void ExtentTable::vacate(std::uint64_t extent) {
  auto entry = entries_.find(extent);
  CHECK(entry != entries_.end());
  CHECK(entry->second.resident && entry->second.surrendered && entry->second.pins == 0);
  bytes_of(entry->second) -= entry->second.range.size;
  retained_.add(entry->second.range);
  entry->second.resident = false;
  bytes_of(entry->second) += entry->second.range.size;
}

bool ExtentTable::settle(std::uint64_t extent, ByteRange range) {
  auto entry = entries_.find(extent);
  if (entry == entries_.end()) {
    retained_.add(range);
    return false;
  }
  CHECK(!entry->second.resident && range.size == entry->second.range.size);
  bytes_of(entry->second) -= range.size;
  entry->second.range = range;
  entry->second.resident = true;
  bytes_of(entry->second) += range.size;
  return true;
}

bool ExtentTable::is_resident(std::uint64_t extent) const {
  auto entry = entries_.find(extent);
  return entry != entries_.end() && entry->second.resident;
}

std::vector<ExtentTable::Client> ExtentTable::holders() const {
  std::vector<Client> holders;
  for (const auto& [client, holdings] : clients_) {
    if (!holdings.leases.empty()) holders.push_back(client);
  }
  return holders;
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
  entry->second.last_use = ++uses_;
  ++pins_;
  ++clients_[client].pins[extent];
  return Extent{extent, entry->second.range, entry->second.home};
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
  return Extent{extent, entry->second.range, entry->second.home};
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
