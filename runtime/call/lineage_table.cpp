#include "runtime/call/lineage_table.h"

#include <vector>

namespace runtime {

LineageTable::Place LineageTable::add(std::weak_ptr<Forgettable> lineage, std::size_t bytes) {
  std::vector<std::shared_ptr<Forgettable>> too_much;  // forgotten after the lock
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = next_++;
    lineages_.emplace(number, Entry{std::move(lineage), bytes});
    bytes_ += bytes;
    while (bytes_ > bytes_max_ && !lineages_.empty()) {
      Entry& oldest = lineages_.begin()->second;
      bytes_ -= oldest.bytes;
      if (auto old = oldest.lineage.lock()) too_much.push_back(std::move(old));
      lineages_.erase(lineages_.begin());
    }
  }
  for (const auto& old : too_much) {
    old->forget("what it was made from was forgotten: this process may keep " +
                std::to_string(bytes_max_) + " bytes for that (RuntimeOptions::lineage_bytes_max)");
  }
  return Place(shared_from_this(), number);
}

std::size_t LineageTable::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void LineageTable::remove(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  auto found = lineages_.find(number);
  if (found == lineages_.end()) return;
  bytes_ -= found->second.bytes;
  lineages_.erase(found);
}

}  // namespace runtime
