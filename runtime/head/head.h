// The head: the cluster's state machine. It owns no socket and no thread. Requests come in through
// handle(), what it wants of nodes goes out through HeadLinks, time comes from a function. So tests
// and simulations drive it by hand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/control/scheduler.h"
#include "runtime/core/result.h"
#include "runtime/head/actor_manager.h"
#include "runtime/head/actor_requests.h"
#include "runtime/head/actor_waiters.h"
#include "runtime/head/cluster_tables.h"
#include "runtime/head/demand_reporter.h"
#include "runtime/head/drain_manager.h"
#include "runtime/head/group_manager.h"
#include "runtime/head/group_requests.h"
#include "runtime/head/head_context.h"
#include "runtime/head/head_links.h"
#include "runtime/head/head_overview.h"
#include "runtime/head/job_manager.h"
#include "runtime/head/key_values.h"
#include "runtime/head/moved_objects.h"
#include "runtime/head/node_registry.h"
#include "runtime/head/object_lists.h"
#include "runtime/head/placement_queue.h"
#include "runtime/head/published_objects.h"
#include "runtime/head/request_ledger.h"
#include "runtime/head/token_keeper.h"

namespace runtime {

/// Call it from one thread. A request goes to the part that serves it; parts reach one another
/// through the references and functions that the constructor gives them. Size: a member a part.
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
  void node_lost(NodeId node, const std::string& why) { nodes_.lose(node, why); }

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
  /// The cluster ends: whatever looks for a place from now on waits, for a head that continues with
  /// the journal.
  void place_no_more() { groups_.place_no_more(); }
  std::vector<JournalWrite> changes() { return tables_.changes(); }

  ClusterState cluster_state() const { return overview_.cluster_state(); }
  /// What waits for a place, and what the nodes are used for.
  Demand demand() const { return demand_.demand(); }
  /// The numbers of nodes, jobs, actors and the like, for metrics.
  Numbers numbers() const { return overview_.numbers(); }
  const ClusterTables& tables() const { return tables_; }
  /// Whether it comes again: it is answered as it was, or will be.
  bool knows(RequestId id) const { return ledger_.knows(id); }

 private:
  /// Those with requests. What expires at the same time does so in this order.
  template <class Self>
  static auto parts_of(Self& self) {
    return std::tie(self.actors_, self.drains_, self.groups_, self.queue_, self.actor_waiters_,
                    self.actor_requests_, self.nodes_, self.group_requests_, self.published_,
                    self.values_, self.jobs_, self.demand_, self.overview_, self.moved_objects_);
  }
  template <class Body>
  void route(const HeadCall& call, Body& body, ControlAnswerer answer);
  void route(const HeadCall& call, control::ChangeToken& body, ControlAnswerer answer);
  void route(const HeadCall& call, ObjectControl& body, ControlAnswerer answer);
  void route(const HeadCall& call, ObserveControl& body, ControlAnswerer answer);
  /// False: no part serves it.
  template <class Body>
  bool serve(const HeadCall& call, Body& body, ControlAnswerer& answer);
  PlacementQueue::Hooks queue_hooks();
  DemandReporter::Sources demand_sources();
  NodeRegistry::Hooks node_hooks();
  HeadOverview::Sources overview_sources();

  // A member a part, in the order in which one needs the other.
  const std::unique_ptr<Scheduler> scheduler_;
  HeadLinks& links_;
  const std::function<Deadline()> now_;
  const HeadOptions options_;
  ClusterTables tables_;
  const HeadContext context_{tables_, *scheduler_, links_, now_, options_};
  TokenKeeper tokens_;
  RequestLedger ledger_{context_};
  KeyValues values_{context_};
  PublishedObjects published_{context_};
  ObjectLists object_lists_{context_};
  PlacementQueue queue_;
  ActorWaiters actor_waiters_{context_};
  ActorManager actors_;
  ActorRequests actor_requests_{context_, ledger_, queue_, actor_waiters_, actors_};
  GroupManager groups_;
  GroupRequests group_requests_{context_, ledger_, queue_, groups_};
  JobManager jobs_;
  DrainManager drains_;
  MovedObjects moved_objects_{context_, drains_.nodes()};
  DemandReporter demand_;
  NodeRegistry nodes_;
  HeadOverview overview_;
};

}  // namespace runtime
