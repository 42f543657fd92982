// The head: the cluster's state machine. It owns no socket and no thread: requests come in through
// handle(), what it wants of nodes goes out through HeadLinks, time comes from a function; so that
// tests and simulations drive it by hand.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/head/cluster_tables.h"
#include "runtime/head/head_context.h"
#include "runtime/head/head_links.h"
#include "runtime/head/key_values.h"
#include "runtime/head/object_lists.h"
#include "runtime/head/published_objects.h"
#include "runtime/head/request_ledger.h"
#include "runtime/head/reservation_sender.h"
#include "runtime/head/scheduler.h"
#include "runtime/head/token_keeper.h"
#include "runtime/head/waiters.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// Call it from one thread.
class Head {
 public:
  Head(ClusterId cluster, std::unique_ptr<Scheduler> scheduler, HeadLinks& links,
       std::function<Deadline()> now, HeadOptions options = {});
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  /// A request of node `from`, on behalf of one of its clients or its own. Requests that are a
  /// node's business are refused.
  void handle(NodeId from, ControlRequest request, ControlAnswerer answer);
  void handle_event(NodeId from, const ControlEvent& event);
  /// The node's connection broke or its lease ended: its actors are dead, the jobs it drove end.
  void node_lost(NodeId node, const std::string& why);

  /// Fails what has waited too long. Call at or after next_tick().
  void tick();
  Deadline next_tick() const;

  /// Takes over what an earlier head knew (ClusterTables::restore), before the first request. Nodes
  /// that were members are, until node_lost() says otherwise; what waited for a place looks for one
  /// again, once a node comes.
  Status restore(const journal::Entry& entry) { return tables_.restore(entry); }
  Status end_restore();
  /// For a journal: from now on changes() says what has changed since it was last asked.
  void follow() { tables_.follow(); }
  /// The cluster ends: whatever looks for a place from now on waits, for a head that goes on with
  /// the journal.
  void place_no_more();
  std::vector<JournalWrite> changes() { return tables_.changes(); }

  ClusterState cluster_state() const;
  /// What waits for a place, and what the nodes are used for (head_demand.cpp).
  Demand demand() const;
  /// How many there are of what, for metrics.
  Numbers numbers() const;
  const ClusterTables& tables() const { return tables_; }
  /// Whether it comes again: it is answered as it was, or will be.
  bool knows(RequestId id) const { return requests_.knows(id); }

 private:
  using Call = HeadCall;
  /// Called with the actor once its present incarnation has ended, or with null at the deadline.
  using EndAnswerer = UniqueFunction<void(const ActorRecord* ended)>;

  void on(const Call& call, control::RegisterNode& body, ControlAnswerer answer);
  void on(const Call& call, control::StartJob& body, ControlAnswerer answer);
  void on(const Call& call, control::EndJob& body, ControlAnswerer answer);
  void on(const Call& call, control::CreateActor& body, ControlAnswerer answer);
  void on(const Call& call, control::ResolveActor& body, ControlAnswerer answer);
  void on(const Call& call, control::QueryActor& body, ControlAnswerer answer);
  void on(const Call& call, control::KillActor& body, ControlAnswerer answer);
  void on(const Call& call, control::TerminateActor& body, ControlAnswerer answer);
  void on(const Call& call, control::ParkActor& body, ControlAnswerer answer);
  void on(const Call& call, control::WatchActor& body, ControlAnswerer answer);
  void on(const Call& call, control::WatchNodes& body, ControlAnswerer answer);
  void on(const Call& call, control::SaveState& body, ControlAnswerer answer);
  void on(const Call& call, control::ActorExited& body, ControlAnswerer answer);
  void on(const Call& call, control::ActorsExited& body, ControlAnswerer answer);
  void on(const Call& call, control::CreateGroup& body, ControlAnswerer answer);
  void on(const Call& call, control::RemoveGroup& body, ControlAnswerer answer);
  void on(const Call& call, control::QueryGroup& body, ControlAnswerer answer);
  void on(const Call& call, control::KvPut& body, ControlAnswerer answer);
  void on(const Call& call, control::KvGet& body, ControlAnswerer answer);
  void on(const Call& call, control::KvAdd& body, ControlAnswerer answer);
  void on(const Call& call, control::KvDelete& body, ControlAnswerer answer);
  void on(const Call& call, control::QueryCluster& body, ControlAnswerer answer);
  void on(const Call& call, control::Heartbeat& body, ControlAnswerer answer);
  void on(const Call& call, control::DrainNode& body, ControlAnswerer answer);
  void on(const Call& call, control::ChangeToken& body, ControlAnswerer answer);
  void on(const Call& call, ObjectControl& body, ControlAnswerer answer);
  void on(const Call& call, control::QueryJob& body, ControlAnswerer answer);
  void on(const Call& call, control::CancelJob& body, ControlAnswerer answer);
  void on(const Call& call, control::QueryDemand& body, ControlAnswerer answer);
  void on(const Call& call, ObserveControl& body, ControlAnswerer answer);
  template <class Other>
  void on(const Call& call, Other& body, ControlAnswerer answer);

  // Nodes that are about to leave: head_drain.cpp.
  struct Drain {
    Deadline deadline;
    Deadline last_call;        // before it everything is asked for once more
    bool told = false;         // to leave
    bool emptied = false;      // nothing ran there when objects were asked for last
    bool called_last = false;  // that was done
    std::uint64_t round = 0;   // the last one's number, of all drains'
    std::size_t outstanding =
        0;                     // nodes that are asked to take objects over, and have not answered
    std::uint64_t failed = 0;  // objects that they could not
    Deadline next_round = Deadline::min();
    std::set<std::pair<PublishedTable::Name, std::uint64_t>> publishing;  // being copied
    Deadline next_publishing = Deadline::min();                           // the last attempt failed
    std::map<std::pair<PublishedTable::Name, std::uint64_t>, std::set<NodeId>>
        refused;  // who could not take which version
    std::map<ActorId, NodeId>
        moves_to;  // actors that are ending here, and where their places are kept
    std::map<GroupId, std::string> gangs_stay;  // with a bundle there, and why they cannot move now
    std::map<GroupId, std::uint32_t>
        gangs_moving;  // that were torn for it, and of which placement each was
  };
  void begin_drain(NodeId node, std::string reason, std::chrono::milliseconds time);
  void resume_drain(NodeId node, std::chrono::milliseconds left);
  void resume_drains();
  void tell_of_drain(NodeId to, NodeId node);
  /// The node has joined, or come back.
  void catch_up_on_drains(NodeId node);
  void advance_drains();
  /// Does what can be done now for the node to leave.
  void advance_drain(NodeId node);
  bool may_move(const ActorRecord& record) const;
  void move_actors(NodeId node);
  /// Tells, or tells again, those that have a place elsewhere.
  void stop_moving(NodeId node);
  void stop_for_move(const ActorRecord& record);
  /// What an actor has that is to end there.
  std::chrono::milliseconds time_to_move(NodeId node) const;
  /// "node 7f3a0011 is drained (preemption)"
  std::string drain_text(NodeId node) const;
  /// Whether its actors may all be started again, and there is a place for the whole of it
  /// elsewhere. Errors: why not.
  Status check_group_move(GroupId group) const;
  /// The job that the group is what it reserves for itself; null: it is a group like others.
  const JobRecord* job_in(const GroupState& group) const;
  /// A job that waited elsewhere for what it reserves has got it on that node.
  bool has_place_on(const JobInfo& job, GroupId place, NodeId node) const;
  void move_groups(NodeId node);
  bool is_empty(NodeId node) const;
  /// "2 actors (...), 1 job"; empty: nothing that runs.
  std::string what_keeps(NodeId node) const;
  /// Those that have a bundle on a node that is drained, and find no room elsewhere.
  std::set<GroupId> stranded_groups() const;
  /// What the nodes are used for: head_demand.cpp.
  std::map<NodeId, NodeUse> node_uses() const;
  /// With what changes by itself.
  NodeInfo shown(const NodeInfo& info) const;
  void take_over_objects(NodeId node);
  void on_taken_over(NodeId node, std::uint64_t round, std::uint64_t failed);
  bool is_sole(const std::vector<ObjectLocation>& copies, NodeId node) const;
  bool has_sole_copies(NodeId node) const;
  void move_published(NodeId node);
  void move_copy(const PublishedTable::Name& name, std::uint64_t version,
                 const ObjectLocation& copy, const std::vector<ObjectLocation>& copies);
  void on_copy_moved(const PublishedTable::Name& name, std::uint64_t version, NodeId from,
                     NodeId target, Result<ControlAnswer> adopted);
  /// What other nodes may have taken over of one that was drained.
  void find_moved_object(const Call& call, const control::FindObject& body, ControlAnswerer answer);
  void leave(NodeId node, const std::string& how);
  /// What ends there now uses up no restart.
  void mark_moving(NodeId node);
  void mark_moving(const std::set<ActorId>& actors);
  Deadline next_drain_tick() const;

  void commit(const HeadCommand& command);
  /// Brings what the head knows of a node that has come back together with what runs there.
  void reconcile(const control::RegisterNode& body);
  Status check_new_actor(const Call& call, const ActorSpec& spec) const;
  /// Fills in what the head decides: namespace, owner, whether it outlives the job. Errors: its
  /// owner has ended.
  Status complete(const Call& call, ActorSpec& spec) const;
  std::string name_space(const Call& call, const std::string& wanted) const;
  void place_pending();
  /// False while it has to wait.
  bool try_place_actor(ActorId actor, Deadline deadline);
  void start_actor(ActorId actor, Deadline deadline);
  void on_started(ActorId actor, std::uint64_t incarnation, Result<ControlAnswer> started);
  void start_failed(const ActorRecord& record, const Status& why);
  /// Without a grace: kills it.
  void stop_actor(const ActorRecord& record, std::chrono::milliseconds grace = {},
                  std::string reason = "killed on request", bool drain = false);
  /// Ends it for good, if it has not ended yet.
  void end_actor(ActorId actor, const std::string& reason);
  /// What it owns ends; it is started again if its options allow that, else it is dead.
  void incarnation_ended(ActorId actor, const DeathCause& cause);
  bool may_restart(const ActorRecord& record) const;
  void restart(ActorId actor, const DeathCause& cause);
  void end_owned(ActorId owner);
  void tell_actor_watchers(ActorId actor);
  void tell_node_watchers();
  /// For one who knows that version (0: nothing).
  control::NodeList node_list(std::uint64_t known) const;
  void actor_dead(ActorId actor, const DeathCause& cause, const Status& why);
  /// Tells the processes of its job that the actor is dead for good; those of one DeathNotice
  /// together, at its end.
  void announce_death(const ActorRecord& record);
  class DeathNotice;
  void end_job(const command::EndJob& end);
  /// What it has of the cluster goes, but for what outlives it.
  void end_cluster_side(JobId job);
  /// Also once nothing of an ended job is left that might start again.
  void tell_of_end(JobId job);
  void tell_of_end(JobId job, NodeId node);
  void forget_dead();
  void wait_for_address(ActorId actor, Deadline deadline, ControlAnswerer answer);

  // Placement groups: head_groups.cpp.
  enum class Placing { kUnderWay, kNoRoom };
  /// Fills in its namespace. Errors: kInvalidArgument, kResourceExhausted (too many wait).
  Status check_new_group(const Call& call, GroupSpec& spec) const;
  std::vector<std::string> group_ids() const;
  /// With a bundle on that node: those whose nodes are being asked.
  std::vector<GroupId> groups_prepared_on(NodeId node) const;
  void queue_group(GroupId group, Deadline deadline);
  void unqueue_group(GroupId group);
  void place_pending_groups();
  Placing try_place_group(GroupId group);
  void release_everywhere(GroupId group, const std::vector<NodeId>& nodes);
  void on_reserved(NodeId node, const std::vector<ReservationSender::Attempt>& asked,
                   const Result<control::Refusals>& answer);
  void on_refused(GroupId group, NodeId node, const std::string& why);
  void on_prepared(GroupId group);
  void stop_preparing(GroupId group);
  void open_nodes();
  void renew_reservations(NodeId node);
  void drop_group(GroupId group, const Status& why);
  /// Those that had a bundle on that node, which is gone: they give everything back, and are placed
  /// again as a whole once their actors have ended.
  std::set<GroupId> tear_groups(NodeId lost, const std::string& text);
  void tear_group(GroupId group, const std::string& text, std::chrono::milliseconds grace);
  /// `grace`: for what is started again, to serve the calls that wait and to save its state.
  void stop_torn(const ActorRecord& record, const std::string& text,
                 std::chrono::milliseconds grace);

  void queue_actor(ActorId actor, Deadline deadline, Deadline not_before = Deadline::min());
  void refresh_reasons();
  /// Has what was held back look for a place, fails what has waited too long.
  void tick_pending(Deadline now);

  struct PendingActor {
    ActorId actor;
    Deadline deadline;
    Deadline not_before = Deadline::min();  // of a restart that is held back
    std::size_t shape = 0;                  // equal for those that ask for the same
  };
  /// What decides whether an actor, or a group, finds a place, and what it is told if not.
  using ActorShape = std::tuple<std::string, ResourceMap, Labels, std::optional<NodeId>, bool,
                                std::optional<std::pair<GroupId, std::uint32_t>>>;
  using GroupWish =
      std::tuple<GroupStrategy, std::vector<ResourceMap>, std::vector<Labels>, bool /* torn */>;
  static ActorShape shape_of(const ActorSpec& spec);
  /// How fast an actor's incarnations follow one another.
  struct RestartPace {
    Deadline placed;  // the last one
    std::uint32_t short_lived = 0;
  };
  struct PendingGroup {
    GroupId group;
    Deadline deadline;
    std::size_t shape = 0;
  };
  /// Of a group that has its place in the scheduler's account, and whose nodes are being asked.
  struct Preparation {
    std::uint64_t attempt = 0;
    GroupPlace place;
    std::set<NodeId> asked;  // have not answered yet
  };

  const ClusterId cluster_;
  const std::unique_ptr<Scheduler> scheduler_;
  HeadLinks& links_;
  const std::function<Deadline()> now_;
  const HeadOptions options_;

  ClusterTables tables_;
  const HeadContext context_{tables_, links_, now_, options_};
  TokenKeeper tokens_;
  RequestLedger requests_{context_};
  KeyValues values_{context_};
  PublishedObjects published_{context_};
  ObjectLists object_lists_{context_};
  ReservationSender reservations_{context_,
                                  [this](NodeId node, const auto& asked, const auto& answer) {
                                    on_reserved(node, asked, answer);
                                  }};
  // What follows is about requests under way; a restarted head begins without.
  std::vector<PendingActor> pending_actors_;        // in order of arrival
  std::map<ActorShape, std::size_t> actor_shapes_;  // of those
  std::map<std::size_t, ActorId> without_room_;     // by shape: one that has the reason of all
  Deadline refresh_at_ = Deadline::max();           // of the others' reasons
  Deadline earliest_pending_ = Deadline::max();  // never later than the first deadline, or end of a
                                                 // pause, of what waits for a place
  std::uint64_t arrivals_ = 0;
  std::map<std::uint64_t, PendingGroup> pending_groups_;  // by arrival; until they are placed
  std::map<GroupId, std::uint64_t> pending_group_at_;
  std::map<GroupWish, std::size_t> group_shapes_;
  std::map<GroupId, Preparation> preparations_;
  std::map<NodeId, Deadline> closed_nodes_;  // until when they get nothing new
  bool ends_ = false;                        // with all nodes
  Waiters<ActorId, ControlAnswerer> address_waiters_;
  std::map<ActorId, RestartPace> restart_paces_;  // of actors that were restarted
  Waiters<ActorId, EndAnswerer> end_waiters_;
  DeathNotice* death_notice_ = nullptr;
  std::deque<Deadline> deaths_;  // when the last ones of the dead died
  Waiters<ActorId, ControlAnswerer> actor_watchers_;
  struct NodeWatcher {
    std::uint64_t version;  // that it knows
    ControlAnswerer answer;
  };
  Waiters<std::monostate, NodeWatcher> node_watchers_;
  Waiters<GroupId, ControlAnswerer> group_waiters_;
  std::map<NodeId, Drain> drains_;
  std::uint64_t rounds_ = 0;        // of taking objects over
  std::uint64_t drains_begun_ = 0;  // or gone on with
};

}  // namespace runtime
