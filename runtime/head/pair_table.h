// PairTable: the key-value pairs of jobs. Part of ClusterTables.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_changes.h"

namespace runtime {

/// Plain data with one way to change it (cluster_tables.h).
class PairTable {
 public:
  void apply(const command::PutKey& c);
  void apply(const command::DeleteKey& c);
  /// All of that job.
  void drop(JobId job);

  /// Null: there is none.
  const std::string* find(JobId job, const std::string& key) const;
  std::size_t count(JobId job) const;
  const std::map<JobId, std::map<std::string, std::string>>& all() const { return pairs_; }

  void follow() { changed_.follow(); }
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::Pair& entry);

 private:
  std::map<JobId, std::map<std::string, std::string>> pairs_;
  TableChanges<std::pair<JobId, std::string>> changed_;
};

}  // namespace runtime
