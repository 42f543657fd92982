// The head's state: a table each for nodes, jobs, actors, groups, key-value pairs, published
// objects and requests. Every change is a command (head_commands.h), applied in one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/head/actor_record_table.h"
#include "runtime/head/group_table.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/job_table.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/node_table.h"
#include "runtime/head/pair_table.h"
#include "runtime/head/published_table.h"
#include "runtime/head/request_table.h"

namespace runtime {

/// Commands must fit the tables (the head checks first): one that does not is a bug.
class ClusterTables {
 public:
  void apply(const HeadCommand& command);

  /// From now on changes() has something to give.
  void follow();
  /// What has changed since the last call, each thing once, as it is now. Reasons for waiting are
  /// not kept.
  std::vector<JournalWrite> changes();
  /// Takes over an entry that changes() gave to a journal, in the order of the keys; into empty
  /// tables. Entries about the cluster itself are not the tables'. Errors: kInvalidArgument when it
  /// does not fit the others.
  Status restore(const journal::Entry& entry);
  /// After the last one: rebuilds what follows from the rest.
  Status end_restore();

  const NodeTable& nodes() const { return nodes_; }
  const JobTable& jobs() const { return jobs_; }
  const ActorRecordTable& actors() const { return actors_; }
  const GroupTable& groups() const { return groups_; }
  const PairTable& pairs() const { return pairs_; }
  const PublishedTable& published() const { return published_; }
  const RequestTable& requests() const { return requests_; }
  /// Of version 0: as the head was started with it.
  const TokenState& token() const { return token_; }
  /// It runs, or an actor that outlives it does.
  bool job_serves(JobId id) const { return jobs_.runs(id) || actors_.outlive(id); }

 private:
  auto tables() { return std::tie(nodes_, jobs_, actors_, groups_, pairs_, published_, requests_); }
  /// A command that changes one table.
  template <class Command>
  void on(const Command& c);
  // Commands that change more than one table.
  void on(const command::RemoveNode& c);
  void on(const command::EndJob& c);
  void on(const command::ReleaseJob& c);
  void on(const command::ActorDead& c);
  void on(const command::TokenChanged& c);
  template <class Entry>
  Status take(const Entry& entry);
  Status take(const journal::Counters& entry);
  Status take(const journal::Token& entry);
  void forget_ended_jobs();
  journal::Counters counters() const;

  NodeTable nodes_;
  JobTable jobs_;
  ActorRecordTable actors_;
  GroupTable groups_;
  PairTable pairs_;
  PublishedTable published_;
  RequestTable requests_;
  TokenState token_;
  std::uint64_t order_ = 0;  // of the last end of an actor or a job
  bool follows_ = false;
  bool token_changed_ = false;
  journal::Counters written_;  // as the journal has them
};

}  // namespace runtime
