// ClusterScheduler: the head's account of nodes, reservations and groups, and its choice of nodes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "placement/group/strategy.h"
#include "placement/resource/resources.h"
#include "placement/resource/room.h"
#include "runtime/control/scheduler.h"

namespace placement {

/// Actors outside of groups are packed onto nodes, in the order in which these joined, until a node
/// is half used. Then actors go where most is left. Few actors stay together (same-node calls are
/// cheapest), many share the load. ActorSpec::scheduling says otherwise. Cost: a look at each node
/// for an actor, at each node and different bundle for a group; a release is O(log).
class ClusterScheduler final : public runtime::Scheduler {
 public:
  runtime::Status add_node(const runtime::NodeInfo& node) override;
  void remove_node(runtime::NodeId node) override;
  void set_open(runtime::NodeId node, bool open) override;
  void begin_drain(runtime::NodeId node) override;
  runtime::Result<runtime::ActorPlace> move_actor(const runtime::ActorSpec& actor) override;
  runtime::Status check_move(const runtime::GroupSpec& group) const override;
  runtime::Result<runtime::ActorPlace> place_actor(const runtime::ActorSpec& actor) override;
  void release_actor(runtime::ActorId actor) override;
  runtime::Result<runtime::GroupPlace> place_group(const runtime::GroupSpec& group) override;
  void remove_group(runtime::GroupId group) override;
  void restore_actor(const runtime::ActorSpec& actor, const runtime::ActorPlace& place) override;
  void restore_group(const runtime::GroupSpec& group, const runtime::GroupPlace& place) override;
  runtime::ResourceMap available(runtime::NodeId node) const override;

 private:
  struct Node {
    runtime::NodeId id;
    std::string address;
    runtime::Labels labels;
    Resources total;
    Room room;
    std::size_t actors = 0;
    std::map<std::string, std::size_t> actors_of_class = {};
    bool open = true;
    bool drains = false;
    bool takes_more() const { return open && !drains; }
  };
  struct Bundle {
    runtime::NodeId node;
    Resources total;
    GpuList gpus;
    Room room;
    std::set<runtime::ActorId> users = {};
  };
  struct Reservation {
    runtime::NodeId node;
    Resources amount;
    GpuList gpus;
    std::string class_name;
    std::optional<runtime::BundleSlot>
        bundle;  // whose room it is taken from; none: the node's, or the bundle's group is removed
  };

  Node* find(runtime::NodeId id) const;
  runtime::Result<runtime::ActorPlace> place_in_bundle(const runtime::ActorSpec& actor,
                                                       const Resources& demand);
  runtime::Result<runtime::ActorPlace> place_on_node(const runtime::ActorSpec& actor,
                                                     const Resources& demand);
  Node* choose(const runtime::ActorSpec& actor, const Resources& demand) const;
  void count(const runtime::ActorSpec& actor, const Resources& demand,
             const runtime::ActorPlace& place, std::optional<runtime::BundleSlot> bundle);
  runtime::Status explain(const runtime::ActorSpec& actor, const Resources& demand) const;
  runtime::Status explain(const runtime::GroupSpec& group, const std::string& name,
                          std::span<const BundleNeed> bundles) const;
  /// What a node is taken to have left; null: it does not count.
  using RoomOf = std::function<const Room*(const Node&)>;
  /// "the nearest node, 7f3a (10.0.0.2:6399), lacks GPU 2 (has 1 free of 4)", and what would help
  /// where no node ever could. Nodes that are drained count only where there are no others.
  std::string nearest(const BundleNeed& need, const RoomOf& room_of) const;
  /// How many of the bundles find a place, and what the next one would lack then.
  std::string first_without_place(const runtime::GroupSpec& group,
                                  std::span<const BundleNeed> bundles,
                                  std::span<const NodeOffer> offers) const;

  std::vector<std::unique_ptr<Node>> nodes_;  // in the order in which they joined
  std::map<runtime::NodeId, Node*> by_id_;
  std::map<runtime::GroupId, std::vector<Bundle>> groups_;
  std::map<runtime::ActorId, Reservation> reservations_;
};

}  // namespace placement
