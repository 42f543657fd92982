// The writes that a table of the head gives a journal.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/head/journal_entries.h"

namespace runtime {

/// The changes by key; none: the key is erased.
using TableWrites = std::map<std::string, std::optional<std::string>>;

/// What has changed since the table was asked last.
template <class Table>
TableWrites writes_of(Table& table) {
  std::vector<JournalWrite> writes;
  table.take_changes(writes);
  TableWrites changed;
  for (JournalWrite& write : writes) changed[write.key] = std::move(write.value);
  EXPECT_EQ(changed.size(), writes.size()) << "a key was written twice";
  return changed;
}

/// Has a table take what was written, in the order of the keys; the first refusal.
template <class Entry, class Table>
Status restore_from(Table& table, const TableWrites& written) {
  for (const auto& [key, value] : written) {
    if (!value) continue;
    const auto entry = journal::decode(*value);
    if (!entry.ok()) return entry.status();
    if (Status status = table.restore(std::get<Entry>(*entry)); !status.ok()) return status;
  }
  return {};
}

}  // namespace runtime
