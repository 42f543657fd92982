// ActorRecordTable: the actors, dead ones included until they are forgotten. Part of ClusterTables.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/job_table.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_changes.h"

namespace runtime {

struct ActorRecord {
  ActorSpec spec;  // without what only a start needs once dead
  JobId job;
  ActorPhase phase = ActorPhase::kPending;
  std::string pending_reason;
  NodeId node;
  std::uint64_t incarnation = 0;
  std::uint32_t restarts = 0;
  bool ending = false;        // was told to end: no restart
  bool moving = false;        // was told to end because its node is drained
  std::uint32_t moves = 0;    // of the restarts those that were for that
  std::uint64_t version = 1;  // grows with every change of the phase
  ActorAddress address;
  DeathCause death;                      // of the last incarnation that ended
  std::uint64_t died_as = 0;             // the order of its death; 0: it lives
  std::vector<std::uint32_t> gpus = {};  // of its node, while it is there

  ActorState state() const;
  bool operator==(const ActorRecord&) const = default;
};

/// Plain data with one way to change it (cluster_tables.h).
class ActorRecordTable {
 public:
  void apply(const command::AddActor& c);
  void apply(const command::ActorWaits& c);
  void apply(const command::ActorPlaced& c);
  void apply(const command::ActorAlive& c);
  void apply(const command::ActorEnds& c);
  void apply(const command::ActorParked& c);
  void apply(const command::ActorMoves& c);
  void apply(const command::ActorRestarts& c);
  void apply(const command::ActorStateSaved& c);
  void apply(const command::ForgetDead& c);
  /// `order`: of its death. Returns the job whose last actor that outlives it this was, if it was.
  std::optional<JobId> end(const command::ActorDead& c, std::uint64_t order);

  /// Null: it is not known (any more).
  const ActorRecord* find(ActorId id) const;
  /// The living (or coming) actor of that name; null: there is none.
  const ActorRecord* named(const std::string& name_space, const std::string& name) const;
  const std::map<ActorId, ActorRecord>& all() const { return actors_; }
  std::size_t dead() const { return dead_.size(); }
  /// Those that this actor created and that end with it.
  std::vector<ActorId> owned_by(ActorId owner) const;
  /// Those in the group's bundles, or on their way there, that are not dead.
  const std::set<ActorId>& members(GroupId group) const;
  /// Those whose processes run on that node, or are about to (kStarting, kAlive).
  const std::set<ActorId>& started_on(NodeId node) const;
  /// Whether one that is not dead outlives the job.
  bool outlive(JobId job) const { return outliving_.contains(job); }
  /// The incarnation for the next start of any actor: larger than every one before.
  std::uint64_t next_incarnation() const { return incarnation_ + 1; }

  void follow();
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::ActorSpecOf& entry);
  Status restore(const journal::ActorRow& entry);
  Status restore(const journal::ActorSaved& entry);
  void restore_incarnation(std::uint64_t incarnation) { incarnation_ = incarnation; }
  /// Errors: kInvalidArgument (a record contradicts another, or the jobs).
  Status end_restore(const JobTable& jobs);

 private:
  ActorRecord& existing(ActorId id);
  /// For look-ups; false: its name is taken.
  bool index(const ActorRecord& record);
  /// Its process has ended.
  void leave_node(const ActorRecord& record);
  JournalWrite write_of_spec(ActorId id) const;
  JournalWrite write_of_row(ActorId id) const;
  JournalWrite write_of_saved(ActorId id) const;

  std::map<ActorId, ActorRecord> actors_;
  std::map<std::pair<std::string, std::string>, ActorId> names_;  // by namespace and name
  std::map<ActorId, std::set<ActorId>> owned_;
  std::map<JobId, std::size_t> outliving_;  // living actors that outlive their job
  std::map<GroupId, std::set<ActorId>> members_;
  std::map<NodeId, std::set<ActorId>> started_on_;
  std::deque<ActorId> dead_;  // oldest first
  std::uint64_t incarnation_ = 0;
  TableChanges<ActorId> changed_specs_;
  TableChanges<ActorId> changed_rows_;
  TableChanges<ActorId> changed_saved_;
};

}  // namespace runtime
