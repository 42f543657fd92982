#include "runtime/head/pair_table.h"

#include "runtime/head/table_lookup.h"

namespace runtime {

using table_lookup::lookup;

void PairTable::apply(const command::PutKey& c) {
  pairs_[c.job][c.key] = c.value;
  changed_.note({c.job, c.key});
}

void PairTable::apply(const command::DeleteKey& c) {
  auto found = pairs_.find(c.job);
  if (found != pairs_.end()) found->second.erase(c.key);
  changed_.note({c.job, c.key});
}

void PairTable::drop(JobId job) {
  auto found = pairs_.find(job);
  if (found == pairs_.end()) return;
  for (const auto& [key, value] : found->second) changed_.note({job, key});
  pairs_.erase(found);
}

const std::string* PairTable::find(JobId job, const std::string& key) const {
  const auto* pairs = lookup(pairs_, job);
  return pairs ? lookup(*pairs, key) : nullptr;
}

std::size_t PairTable::count(JobId job) const {
  const auto* pairs = lookup(pairs_, job);
  return pairs ? pairs->size() : 0;
}

void PairTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](const std::pair<JobId, std::string>& which) -> JournalWrite {
    const auto& [job, key] = which;
    const std::string* value = find(job, key);
    if (!value) return {journal::key_of_pair(job, key), {}};
    return {journal::key_of_pair(job, key), journal::encode(journal::Pair{job, key, *value})};
  });
}

Status PairTable::restore(const journal::Pair& entry) {
  pairs_[entry.job][entry.key] = entry.value;
  return {};
}

}  // namespace runtime
