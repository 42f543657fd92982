// GroupManager: the lives of placement groups: their two-phase reservation, and what becomes of
// them when a node is lost (docs/adr/0022-gangs-are-reserved-in-two-phases.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/actor_control.h"
#include "runtime/head/closed_nodes.h"
#include "runtime/head/group_control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/placement_queue.h"
#include "runtime/head/reservation_sender.h"

namespace runtime {

class GroupManager final : public GroupControl {
 public:
  /// It is placed, or (with the reason) gone for good.
  using OnDecided = std::function<void(GroupId, const Status&)>;

  GroupManager(const HeadContext& context, PlacementQueue& queue, ActorControl& actors,
               OnDecided on_decided)
      : context_(context),
        queue_(queue),
        actors_(actors),
        on_decided_(std::move(on_decided)),
        reservations_(context, [this](NodeId node, const auto& asked,
                                      const auto& answer) { on_reserved(node, asked, answer); }),
        closed_nodes_(context) {}

  /// It has just been added.
  void begin(GroupId group, Deadline deadline);
  bool place(GroupId group) override;
  void place_elsewhere(NodeId node) override;
  void drop(GroupId group, const Status& why) override;
  void tear(GroupId group, const std::string& text, std::chrono::milliseconds grace) override;
  /// For the queue: no place until its deadline.
  void late(GroupId group);
  /// Whether its nodes are being asked.
  bool is_under_way(GroupId group) const { return preparations_.contains(group); }
  /// The places of those, by bundle.
  std::vector<std::vector<NodeId>> places_under_way() const;

  /// After ClusterTables::restore: takes the account of those that are placed, and queues others.
  void restored();
  /// Over a new connection, and has dropped what was not committed: it gets all that it is to hold.
  void node_returned(NodeId node);
  /// Those that had a bundle on it give everything back, and are placed again as a whole once their
  /// actors have ended.
  std::set<GroupId> node_lost(NodeId node, const std::string& text);
  /// The cluster ends: nothing is placed from now on.
  void place_no_more() { closed_nodes_.close_all(); }

  void tick(Deadline now);
  Deadline next_tick() const;

 private:
  /// Of a group that has its place in the scheduler's account, and whose nodes are being asked.
  struct Preparation {
    std::uint64_t attempt = 0;
    GroupPlace place;
    std::set<NodeId> asked;  // have not answered yet
  };
  void prepare(const GroupState& group, GroupPlace place, const std::string& before);
  void stop_preparing(GroupId group);
  void stop_preparing_on(NodeId node);
  std::vector<GroupId> prepared_on(NodeId node) const;
  void release_everywhere(GroupId group, const std::vector<NodeId>& nodes);
  void on_reserved(NodeId node, const std::vector<ReservationSender::Attempt>& asked,
                   const Result<control::Refusals>& answer);
  void on_refused(GroupId group, NodeId node, const std::string& why);
  void on_prepared(GroupId group);

  const HeadContext& context_;
  PlacementQueue& queue_;
  ActorControl& actors_;
  const OnDecided on_decided_;
  ReservationSender reservations_;
  ClosedNodes closed_nodes_;
  std::uint64_t attempts_ = 0;
  std::map<GroupId, Preparation> preparations_;
};

}  // namespace runtime
