#include "runtime/head/job_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/head/table_lookup.h"

namespace runtime {

void JobTable::apply(const command::StartJob& c) {
  std::erase(ended_, c.info.job);
  JobRecord& record = jobs_[c.info.job];
  record.info = c.info;
  record.driver = c.driver;
  record.ended_as = 0;
  changed_.note(c.info.job);
}

void JobTable::end(const command::EndJob& c, std::uint64_t order) {
  auto found = jobs_.find(c.job);
  CHECK(found != jobs_.end());
  JobInfo& info = found->second.info;
  info.running = false;
  info.outcome = c.outcome;
  info.end = c.cause;
  info.ended_ms = c.ended_ms;
  found->second.ended_as = order;
  ended_.push_back(c.job);
  changed_.note(c.job);
}

void JobTable::forget_ended(const std::function<bool(JobId)>& is_needed) {
  if (ended_.size() <= kEndedKept) return;
  std::map<std::string, std::size_t> counts;  // by user, of those that may go
  std::vector<JobId> candidates;              // oldest first
  for (const JobId& job : ended_) {
    if (is_needed(job)) continue;
    candidates.push_back(job);
    ++counts[find(job)->info.user];
  }
  while (ended_.size() > kEndedKept && !candidates.empty()) {
    const auto has_fewer = [&](const JobId& one, const JobId& other) {
      return counts[find(one)->info.user] < counts[find(other)->info.user];
    };
    const auto gone = std::ranges::max_element(candidates, has_fewer);  // the first of several
    --counts[find(*gone)->info.user];
    changed_.note(*gone);
    std::erase(ended_, *gone);
    jobs_.erase(*gone);
    candidates.erase(gone);
  }
}

const JobRecord* JobTable::find(JobId id) const { return table_lookup::lookup(jobs_, id); }

bool JobTable::runs(JobId id) const {
  const JobRecord* record = find(id);
  return record && record->info.running;
}

std::string JobTable::name_space(JobId id) const {
  const JobRecord* record = find(id);
  return record && !record->driver.name_space.empty() ? record->driver.name_space
                                                      : private_name_space(id);
}

// -- The journal

void JobTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](JobId id) -> JournalWrite {
    const JobRecord* record = find(id);
    if (!record) return {journal::key_of(id), {}};
    return {journal::key_of(id),
            journal::encode(journal::Job{record->info, record->driver, record->ended_as})};
  });
}

Status JobTable::restore(const journal::Job& entry) {
  jobs_[entry.info.job] = {entry.info, entry.driver, entry.ended_as};
  return {};
}

Status JobTable::end_restore() {
  std::map<std::uint64_t, JobId> ended;
  for (const auto& [id, record] : jobs_) {
    if (record.info.running != (record.ended_as == 0))
      return invalid_argument("job " + id.hex() + " has neither ended nor does it run");
    if (record.info.running != (record.info.outcome == JobOutcome::kNone))
      return invalid_argument("job " + id.hex() + " has no outcome, or one too early");
    if (!record.info.running) ended.emplace(record.ended_as, id);
  }
  for (const auto& [order, id] : ended) ended_.push_back(id);
  return {};
}

}  // namespace runtime
