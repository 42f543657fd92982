// JobTable: the jobs that run, and the last that have ended. Part of ClusterTables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_changes.h"

namespace runtime {

struct JobRecord {
  JobInfo info;
  DriverInfo driver;
  std::uint64_t ended_as = 0;  // the order of its end; 0: it runs
  bool operator==(const JobRecord&) const = default;
};

/// Plain data with one way to change it (cluster_tables.h).
class JobTable {
 public:
  // Ended jobs are remembered for questions about them, up to this number.
  static constexpr std::size_t kEndedKept = 200;

  void apply(const command::StartJob& c);
  /// `order`: of its end.
  void end(const command::EndJob& c, std::uint64_t order);
  /// Of the jobs that have ended those that are too many: the oldest of the user who has most; but
  /// none that is needed.
  void forget_ended(const std::function<bool(JobId)>& is_needed);

  /// Null: it is not known (any more).
  const JobRecord* find(JobId id) const;
  const std::map<JobId, JobRecord>& all() const { return jobs_; }
  bool runs(JobId id) const;
  /// The namespace of a job's actors that name none themselves.
  std::string name_space(JobId id) const;
  /// The namespace that a job has to itself when its driver names none.
  static std::string private_name_space(JobId id) { return "job-" + id.hex(); }

  void follow() { changed_.follow(); }
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::Job& entry);
  /// Errors: kInvalidArgument (a record contradicts itself).
  Status end_restore();

 private:
  std::map<JobId, JobRecord> jobs_;
  std::vector<JobId> ended_;  // oldest first
  TableChanges<JobId> changed_;
};

}  // namespace runtime
