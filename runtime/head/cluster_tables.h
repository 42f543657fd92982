// What the head knows: nodes, jobs, actors, names, groups, key-value pairs. Every change is one of
// the commands below, applied in one place, which also notes what it changed, so that a journal can
// follow.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "runtime/control/membership.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/published_table.h"
#include "runtime/head/request_table.h"
#include "runtime/head/scheduler.h"

namespace runtime {

namespace command {

struct AddNode {
  NodeInfo info;
};
struct RemoveNode {
  NodeId node;
  std::string why;  // its copies of published objects are gone
};
/// It is about to leave.
struct NodeDrains {
  NodeId node;
  NodeDrain drain;  // its version is filled in
};
/// The cluster has another token.
struct TokenChanged {
  TokenState state;
};
/// A job begins, or (a job that runs already) gets its driver.
struct StartJob {
  JobInfo info;
  DriverInfo driver;
};
/// Its actors die one by one as their processes end; its key-value pairs go at once, or with the
/// last actor that outlives it.
struct EndJob {
  JobId job;
  JobOutcome outcome = JobOutcome::kFailed;
  DeathCause cause = {};
  std::uint64_t ended_ms = 0;
};
/// A driver of it has ended, but not the program that was submitted: its key-value pairs go.
struct ReleaseJob {
  JobId job;
};
struct AddActor {
  JobId job;
  ActorSpec spec;
};
struct ActorWaits {
  ActorId actor;
  std::string reason;
};
struct ActorPlaced {
  ActorId actor;
  ActorPlace place;
  std::uint64_t incarnation;
};
struct ActorAlive {
  ActorAddress address;
};
/// It is to end and not to come back.
struct ActorEnds {
  ActorId actor;
};
/// It goes on without its resources.
struct ActorParked {
  ActorId actor;
};
/// It is to end because its node is drained, and starts elsewhere: that counts for no restart.
struct ActorMoves {
  ActorId actor;
};
/// Its process ended; it waits for a place again.
struct ActorRestarts {
  ActorId actor;
  DeathCause cause;
};
/// What the next incarnation is to begin with.
struct ActorStateSaved {
  ActorId actor;
  std::string state;
};
struct ActorDead {
  ActorId actor;
  DeathCause cause;
};
/// Of the dead actors those that died first.
struct ForgetDead {
  std::size_t count;
};
struct PutKey {
  JobId job;
  std::string key;
  std::string value;
};
struct DeleteKey {
  JobId job;
  std::string key;
};
struct AddGroup {
  JobId job;
  GroupSpec spec;
};
struct GroupWaits {
  GroupId group;
  std::string reason;
};
struct GroupPlaced {
  GroupId group;
  GroupPlace place;
};
/// It has lost a node: none of its bundles has a place any more.
struct GroupTorn {
  GroupId group;
  std::string reason;
};
struct RemoveGroup {
  GroupId group;
};
struct Publish {
  PublishedTable::Name name;
  std::uint64_t version;
  PublishedValue value;
  std::string type;
};
struct Unpublish {
  PublishedTable::Name name;
  std::uint64_t version;
};

/// Another node keeps it instead of one that is about to leave.
struct MoveCopy {
  PublishedTable::Name name;
  std::uint64_t version;
  NodeId from;
  ObjectLocation to;
};

/// A request that must not run twice has begun, and is answered later.
struct RequestBegun {
  RequestId id;
  std::uint64_t at_ms;
  std::uint64_t about;  // the incarnation that it is about; 0: none
};
struct RequestAnswered {
  RequestId id;
  std::uint64_t at_ms;
  std::string reply;  // encoded
};

}  // namespace command

using HeadCommand = std::variant<
    command::AddNode, command::RemoveNode, command::StartJob, command::EndJob, command::ReleaseJob,
    command::AddActor, command::ActorWaits, command::ActorPlaced, command::ActorAlive,
    command::ActorEnds, command::ActorParked, command::ActorRestarts, command::ActorStateSaved,
    command::ActorDead, command::ForgetDead, command::PutKey, command::DeleteKey, command::AddGroup,
    command::GroupWaits, command::GroupPlaced, command::RemoveGroup, command::Publish,
    command::Unpublish, command::GroupTorn, command::NodeDrains, command::TokenChanged,
    command::ActorMoves, command::MoveCopy, command::RequestBegun, command::RequestAnswered>;

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

struct JobRecord {
  JobInfo info;
  DriverInfo driver;
  std::uint64_t ended_as = 0;  // the order of its end; 0: it runs
  bool operator==(const JobRecord&) const = default;
};

/// Plain data with one way to change it. Commands must fit the tables (the head checks first): one
/// that does not is a bug.
class ClusterTables {
 public:
  // Ended jobs are remembered for questions about them, up to this number.
  static constexpr std::size_t kEndedJobsKept = 200;
  // As are nodes that have gone.
  static constexpr std::size_t kDeparturesKept = 1000;

  void apply(const HeadCommand& command);

  /// From now on changes() has something to give.
  void follow() { follows_ = true; }
  /// What has changed since the last call, each thing once, as it is now. Reasons for waiting are
  /// not kept.
  std::vector<JournalWrite> changes();
  /// Takes over an entry that changes() gave to a journal, in the order of the keys; into empty
  /// tables. Entries about the cluster itself are not the tables'. Errors: kInvalidArgument when it
  /// does not fit the others.
  Status restore(const journal::Entry& entry);
  /// After the last one: rebuilds what follows from the rest.
  Status end_restore();

  const std::map<NodeId, NodeInfo>& nodes() const { return nodes_; }
  const std::map<ActorId, ActorRecord>& actors() const { return actors_; }
  const std::map<JobId, JobRecord>& jobs() const { return jobs_; }
  const std::map<GroupId, GroupState>& groups() const { return groups_; }

  const ActorRecord* actor(ActorId id) const;
  std::size_t dead_actors() const { return dead_.size(); }
  /// The living (or coming) actor of that name; none if there is none.
  const ActorRecord* actor_named(const std::string& name_space, const std::string& name) const;
  /// Those that this actor created and that end with it.
  std::vector<ActorId> owned_by(ActorId owner) const;
  /// The namespace of a job's actors that name none themselves.
  std::string name_space(JobId job) const;
  const JobRecord* job(JobId id) const;
  bool job_runs(JobId id) const;
  /// It runs, or an actor that outlives it does.
  bool job_serves(JobId id) const;
  const GroupState* group(GroupId id) const;
  /// None if there is none.
  const GroupState* group_named(const std::string& name_space, const std::string& name) const;
  /// The actors in its bundles, or on their way there, that are not dead.
  const std::set<ActorId>& members(GroupId id) const;
  /// The actors whose processes run on that node, or are about to (kStarting, kAlive).
  const std::set<ActorId>& started_on(NodeId node) const;
  /// The placed groups with a bundle there.
  const std::set<GroupId>& placed_on(NodeId node) const;
  /// Nodes that have gone, oldest first.
  const std::deque<NodeDeparture>& departures() const { return departures_; }
  /// Null: it is not known to have gone.
  const NodeDeparture* departure(NodeId id) const;
  const PublishedTable& published() const { return published_; }
  const RequestTable& requests() const { return requests_; }
  /// The namespace that a job has to itself when its driver names none.
  std::string private_name_space(JobId id) const { return "job-" + id.hex(); }
  const std::string* value(JobId job, const std::string& key) const;
  std::size_t keys(JobId job) const;
  const std::map<JobId, std::map<std::string, std::string>>& pairs() const { return pairs_; }
  /// The incarnation for the next start of any actor: larger than every one before.
  std::uint64_t next_incarnation() const { return incarnation_ + 1; }
  /// Grows when a node joins, begins to be drained, or leaves.
  std::uint64_t nodes_version() const { return nodes_version_; }
  /// Of version 0: as the head was started with it.
  const TokenState& token() const { return token_; }

 private:
  void on(const command::AddNode& c);
  void on(const command::RemoveNode& c);
  void on(const command::StartJob& c);
  void on(const command::EndJob& c);
  void on(const command::ReleaseJob& c);
  void on(const command::AddActor& c);
  void on(const command::ActorWaits& c);
  void on(const command::ActorPlaced& c);
  void on(const command::ActorAlive& c);
  void on(const command::ActorEnds& c);
  void on(const command::ActorParked& c);
  void on(const command::ActorRestarts& c);
  void on(const command::ActorStateSaved& c);
  void on(const command::ActorDead& c);
  void on(const command::ForgetDead& c);
  void on(const command::PutKey& c);
  void on(const command::DeleteKey& c);
  void on(const command::AddGroup& c);
  void on(const command::GroupWaits& c);
  void on(const command::GroupPlaced& c);
  void on(const command::RemoveGroup& c);
  void on(const command::Publish& c);
  void on(const command::Unpublish& c);
  void on(const command::GroupTorn& c);
  void on(const command::NodeDrains& c);
  void on(const command::TokenChanged& c);
  void on(const command::ActorMoves& c);
  void on(const command::MoveCopy& c);
  void on(const command::RequestBegun& c);
  void on(const command::RequestAnswered& c);
  ActorRecord& existing(ActorId id);
  /// Its process has ended.
  void leave_node(const ActorRecord& record);
  void leave_nodes(const GroupState& group);
  void forget_ended_jobs();
  void drop_pairs(JobId job);
  /// The tables' own count of ends.
  std::uint64_t next_order();

  // What may change, as far as a journal is concerned.
  struct OfCounters {
    auto operator<=>(const OfCounters&) const = default;
  };
  struct OfToken {
    auto operator<=>(const OfToken&) const = default;
  };
  struct OfSpec {
    ActorId actor;
    auto operator<=>(const OfSpec&) const = default;
  };
  struct OfSaved {
    ActorId actor;
    auto operator<=>(const OfSaved&) const = default;
  };
  struct OfPair {
    JobId job;
    std::string key;
    auto operator<=>(const OfPair&) const = default;
  };
  struct OfPublished {
    PublishedTable::Name name;
    std::uint64_t version;
    auto operator<=>(const OfPublished&) const = default;
  };
  struct OfDeparture {
    NodeId node;
    auto operator<=>(const OfDeparture&) const = default;
  };
  struct OfRequest {
    std::size_t slot;
    auto operator<=>(const OfRequest&) const = default;
  };
  using Changed = std::variant<OfCounters, OfToken, NodeId, JobId, OfSpec, ActorId, OfSaved,
                               GroupId, OfPair, OfPublished, OfDeparture, OfRequest>;
  void changed(Changed what) {
    if (follows_) changed_.insert(std::move(what));
  }
  JournalWrite write_of(const OfCounters&) const;
  JournalWrite write_of(const OfToken&) const;
  JournalWrite write_of(const NodeId& id) const;
  JournalWrite write_of(const JobId& id) const;
  JournalWrite write_of(const OfSpec& what) const;
  JournalWrite write_of(const ActorId& id) const;
  JournalWrite write_of(const OfSaved& what) const;
  JournalWrite write_of(const GroupId& id) const;
  JournalWrite write_of(const OfPair& what) const;
  JournalWrite write_of(const OfPublished& what) const;
  JournalWrite write_of(const OfDeparture& what) const;
  JournalWrite write_of(const OfRequest& what) const;
  Status take(const journal::Token& entry);
  Status take(const journal::Counters& entry);
  Status take(const journal::Node& entry);
  Status take(const journal::Job& entry);
  Status take(const journal::ActorSpecOf& entry);
  Status take(const journal::ActorRow& entry);
  Status take(const journal::ActorSaved& entry);
  Status take(const journal::Group& entry);
  Status take(const journal::Pair& entry);
  Status take(const journal::PublishedEntry& entry);
  Status take(const journal::Departure& entry);
  Status take(const journal::Request& entry);

  std::map<NodeId, NodeInfo> nodes_;
  std::map<ActorId, ActorRecord> actors_;
  std::map<std::pair<std::string, std::string>, ActorId> names_;  // by namespace and name
  std::map<ActorId, std::set<ActorId>> owned_;
  std::map<JobId, std::size_t> outliving_;  // living actors that outlive their job
  std::map<JobId, JobRecord> jobs_;
  std::map<GroupId, GroupState> groups_;
  std::map<std::pair<std::string, std::string>, GroupId> group_names_;  // by namespace and name
  std::map<GroupId, std::set<ActorId>> members_;
  std::map<NodeId, std::set<ActorId>> started_on_;
  std::map<NodeId, std::set<GroupId>> placed_on_;
  PublishedTable published_;
  RequestTable requests_;
  std::map<JobId, std::map<std::string, std::string>> pairs_;
  std::deque<ActorId> dead_;  // oldest first
  std::deque<NodeDeparture> departures_;
  std::vector<JobId> ended_jobs_;  // oldest first
  std::uint64_t incarnation_ = 0;
  std::uint64_t nodes_version_ = 1;
  TokenState token_;
  std::uint64_t order_ = 0;
  bool follows_ = false;
  std::set<Changed> changed_;
};

}  // namespace runtime
