#include "runtime/store/borrow_table.h"

namespace runtime::object_detail {

bool BorrowTable::add(Client client, const ObjectLocation& location, bool counted) {
  auto [borrow, fresh] = borrowed_.try_emplace(Key(location), Borrow{location, {}});
  std::uint32_t& count = borrow->second.by[client];
  count = counted ? count + 1 : 1;
  return fresh;
}

bool BorrowTable::remove(Client client, const ObjectLocation& location) {
  auto borrow = borrowed_.find(Key(location));
  if (borrow == borrowed_.end()) return false;
  auto by = borrow->second.by.find(client);
  if (by == borrow->second.by.end()) return false;
  if (--by->second == 0) borrow->second.by.erase(by);
  if (!borrow->second.by.empty()) return false;
  borrowed_.erase(borrow);
  return true;
}

std::vector<ObjectLocation> BorrowTable::drop(Client client) {
  std::vector<ObjectLocation> ended;
  for (auto borrow = borrowed_.begin(); borrow != borrowed_.end();) {
    if (borrow->second.by.erase(client) > 0 && borrow->second.by.empty()) {
      ended.push_back(std::move(borrow->second.location));
      borrow = borrowed_.erase(borrow);
    } else {
      ++borrow;
    }
  }
  return ended;
}

std::vector<ObjectLocation> BorrowTable::at(const std::string& endpoint,
                                            const NodeId& own_node) const {
  std::vector<ObjectLocation> found;
  for (const auto& [key, borrow] : borrowed_) {
    if (key.node != own_node && borrow.location.endpoint == endpoint)
      found.push_back(borrow.location);
  }
  return found;
}

}  // namespace runtime::object_detail
