#include "runtime/head/request_table.h"

#include <algorithm>
#include <utility>

#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"

namespace runtime {

void RequestTable::apply(const command::RequestBegun& c) {
  if (!orders_.contains(c.id)) add({c.id, 0, c.at_ms, c.about, std::nullopt});
}

void RequestTable::apply(const command::RequestAnswered& c) {
  auto known = orders_.find(c.id);
  if (known == orders_.end()) return add({c.id, 0, c.at_ms, 0, c.reply});
  records_.at(known->second).reply = c.reply;
  changed_.note(slot_of(known->second));
}

void RequestTable::add(RequestRecord record) {
  const auto kept_for = static_cast<std::uint64_t>(kKeptFor.count());
  const auto is_over = [&](const RequestRecord& oldest) {
    return records_.size() >= kKept || oldest.at_ms + kept_for < record.at_ms;
  };
  while (!records_.empty() && is_over(records_.begin()->second)) {
    changed_.note(slot_of(records_.begin()->first));
    orders_.erase(records_.begin()->second.id);
    records_.erase(records_.begin());
  }
  record.order = ++last_;
  changed_.note(slot_of(last_));
  orders_[record.id] = last_;
  records_.emplace(last_, std::move(record));
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

// -- The journal

void RequestTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](std::size_t slot) -> JournalWrite {
    const RequestRecord* record = in_slot(slot);
    if (!record) return {journal::key_of_request(slot), {}};
    return {journal::key_of_request(slot), journal::encode(journal::Request{*record})};
  });
}

Status RequestTable::restore(const journal::Request& entry) {
  const RequestRecord& record = entry.record;
  last_ = std::max(last_, record.order);
  orders_[record.id] = record.order;
  records_.insert_or_assign(record.order, record);
  return {};
}

}  // namespace runtime
