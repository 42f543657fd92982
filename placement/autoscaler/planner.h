// NodePlanner: the autoscaler's decisions. A state machine without I/O. Its caller reports what the
// cluster looks like and what has become of its decisions, and it says what to do.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "placement/autoscaler/config.h"
#include "placement/autoscaler/node_record.h"
#include "placement/autoscaler/packer.h"
#include "runtime/control/demand.h"
#include "runtime/core/clock.h"
#include "runtime/core/status.h"

namespace placement {

/// What is to be done, each once; the planner waits for its outcome.
struct PlanActions {
  std::vector<NodeRecord> add;     // ask the provider for it
  std::vector<NodeRecord> retire;  // have the head drain it, if it is idle
  std::vector<NodeRecord> remove;  // ask the provider to end it
  bool empty() const { return add.empty() && retire.empty() && remove.empty(); }
};

/// Promises: the nodes of the cluster and those on their way are never more than max_nodes (of a
/// type: its max_nodes) by its doing. A node that has work is not removed, nor one that it has not
/// added. A node that was asked for once is not asked for under another id as long as the provider
/// may have it. Its driver records records() before an action of step() is carried out.
class NodePlanner {
 public:
  using Time = runtime::Deadline;

  /// From a drain's beginning an idle node has this long: for objects of it that others refer to.
  static constexpr std::chrono::seconds kDrainTime{30};

  /// `make_id`: a new id for a node of this type, never the same again: the type's name, a '-' and
  /// something without one.
  NodePlanner(AutoscalerConfig config, std::function<std::string(const std::string& type)> make_id);

  /// Takes over what an earlier one had recorded, before the first step.
  void restore(std::vector<NodeRecord> records, Time now);

  PlanActions step(const runtime::Demand& demand, Time now);

  // What became of an action. An addition that failed with kResourceExhausted says that the
  // provider has no such nodes at present.
  void added(const std::string& id, const runtime::Status& outcome, Time now);
  void retired(const std::string& id, const runtime::Status& outcome, Time now);
  void removed(const std::string& id, const runtime::Status& outcome, Time now);
  /// The ids of the nodes that the provider has, as it was asked at that time.
  void listed(const std::vector<std::string>& ids, Time asked, Time now);
  /// None of them was carried out: they are to be asked for again.
  void not_done(const PlanActions& actions);
  /// It is removed; the cluster stops.
  void forget(const std::string& id) { nodes_.erase(id); }

  // For callers that ask what it does and why.

  struct Node : NodeRecord {
    Time since;          // of its phase
    bool asked = false;  // an action is under way
    Time asked_at{};
    Time not_before = Time::min();  // the next attempt
    std::uint32_t failures = 0;     // of removing it
    bool restored = false;          // the provider may have been asked for it before
    std::uint64_t last_placed = 0;
    std::optional<Time> idle_since;
    std::optional<Time> leaves_by;  // it is drained, and is waited for until then
    bool drains = false;            // whatever the cause
    std::string busy;               // what it does
  };
  struct Failure {
    Time at;
    std::string text;
  };
  /// How nodes of a type and capacity fare.
  struct Health {
    std::uint32_t failures = 0;  // since one has joined
    Time not_before = Time::min();
    std::deque<Time> troubles;  // of spot nodes, within the window
    Time stands_in_until = Time::min();
    std::string last_failure;
  };
  const AutoscalerConfig& config() const { return config_; }
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  std::vector<NodeRecord> records() const;
  /// The demand as of the last step.
  const std::vector<DemandReport>& demand() const { return demand_; }
  std::size_t others() const { return others_; }  // nodes in the cluster that it has not added
  const Health* health(const std::string& type, Capacity capacity) const;
  const std::deque<Failure>& failures() const { return failures_; }  // the last ones
  const std::deque<Failure>& decisions() const {
    return decisions_;
  }  // the last ones, with their reasons
  /// Why nothing is added or removed just now though it would be.
  const std::vector<std::string>& holding_back() const { return holding_back_; }

 private:
  void observe(const runtime::Demand& demand, Time now);
  void observe_node(const runtime::NodeUse& use, Time now);
  void give_up_late(Time now);
  void plan_additions(const runtime::Demand& demand, Time now);
  void plan_removals(Time now);
  PlanActions pending_actions(Time now);

  struct Additions;
  /// The nodes that there are or will be, and what can be added.
  Additions additions(const runtime::Demand& demand, Time now) const;
  /// Adds a node of the type at `index`, where there is room and no reason against it.
  bool take(Additions& additions, std::size_t index, const std::string& reason);
  void keep_type_minima(Additions& additions);
  void place_demand(const runtime::Demand& demand, Additions& additions);
  void keep_cluster_minimum(Additions& additions);

  TypeOffer offer_of(const NodeType& type, Time now) const;
  std::size_t count_of(const std::string& type) const;
  std::size_t total() const { return others_ + nodes_.size(); }
  void add(const std::string& type, Capacity capacity, const std::string& reason, Time now);
  void enter(Node& node, NodePhase phase, const std::string& reason, Time now);
  void failed(const Node& node, const runtime::Status& why, Time now);
  void note_spot_failure(const Node& node, bool is_short, Time now);
  void note(std::deque<Failure>& list, std::string text, Time now);
  std::chrono::milliseconds back_off(std::uint32_t failures) const;

  const AutoscalerConfig config_;
  const std::function<std::string(const std::string&)> make_id_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Time>
      gone_;  // ids that were removed lately: the head may know them a little longer
  std::map<std::pair<std::string, Capacity>, Health> health_;
  std::map<std::string, Resources>
      really_;  // what nodes of a type have turned out to have, where that is less
  std::map<std::string, double> memory_;  // bytes that the last node of a type has
  std::size_t others_ = 0;
  std::set<std::string> needed_;  // nodes that something waits for
  std::vector<DemandReport> demand_;
  std::deque<Failure> failures_, decisions_;
  std::vector<std::string> holding_back_;
  Time last_up_ = Time::min();
  Time last_change_ = Time::min();
};

}  // namespace placement
