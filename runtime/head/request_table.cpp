#include "runtime/head/request_table.h"

#include <algorithm>
#include <utility>

namespace runtime {

std::vector<std::size_t> RequestTable::begin(RequestId id, std::uint64_t at_ms,
                                             std::uint64_t about) {
  if (orders_.contains(id)) return {};
  return add({id, 0, at_ms, about, std::nullopt});
}

std::vector<std::size_t> RequestTable::answer(RequestId id, std::uint64_t at_ms,
                                              std::string reply) {
  auto known = orders_.find(id);
  if (known == orders_.end()) return add({id, 0, at_ms, 0, std::move(reply)});
  records_.at(known->second).reply = std::move(reply);
  return {slot_of(known->second)};
}

std::vector<std::size_t> RequestTable::add(RequestRecord record) {
  std::vector<std::size_t> slots;
  const auto kept_for = static_cast<std::uint64_t>(kKeptFor.count());
  const auto is_over = [&](const RequestRecord& oldest) {
    return records_.size() >= kKept || oldest.at_ms + kept_for < record.at_ms;
  };
  while (!records_.empty() && is_over(records_.begin()->second)) {
    slots.push_back(slot_of(records_.begin()->first));
    orders_.erase(records_.begin()->second.id);
    records_.erase(records_.begin());
  }
  record.order = ++last_;
  slots.push_back(slot_of(last_));
  orders_[record.id] = last_;
  records_.emplace(last_, std::move(record));
  return slots;
}

void RequestTable::restore(RequestRecord record) {
  last_ = std::max(last_, record.order);
  orders_[record.id] = record.order;
  const std::uint64_t order = record.order;
  records_.insert_or_assign(order, std::move(record));
}

const RequestRecord* RequestTable::find(RequestId id) const {
  auto found = orders_.find(id);
  return found == orders_.end() ? nullptr : &records_.at(found->second);
}

const RequestRecord* RequestTable::in_slot(std::size_t slot) const {
  if (last_ == 0) return nullptr;
  // The last order that falls into this slot.
  const std::uint64_t back = (last_ + kKept - slot) % kKept;
  if (back >= last_) return nullptr;
  auto found = records_.find(last_ - back);
  return found == records_.end() ? nullptr : &found->second;
}

}  // namespace runtime
