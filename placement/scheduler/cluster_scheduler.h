// ClusterScheduler: the head's account of nodes, reservations and groups, and its choice of nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "placement/resource/resources.h"
#include "runtime/head/scheduler.h"

namespace placement {

/// Actors outside of groups are packed onto nodes in the order in which they joined until a node is half used, then go where
/// most is left: few actors stay together (same-node calls are cheapest), many share the load.
class ClusterScheduler final : public runtime::Scheduler {
 public:
  runtime::Status add_node(const runtime::NodeInfo& node) override;
  void remove_node(runtime::NodeId node) override;
  void begin_drain(runtime::NodeId node) override;
  runtime::Result<runtime::NodeId> move_actor(const runtime::ActorSpec& actor) override;
  runtime::Result<runtime::NodeId> place_actor(const runtime::ActorSpec& actor) override;
  void release_actor(runtime::ActorId actor) override;
  runtime::Result<std::vector<runtime::NodeId>> place_group(const runtime::GroupSpec& group) override;
  void remove_group(runtime::GroupId group) override;
  void restore_actor(const runtime::ActorSpec& actor, runtime::NodeId node) override;
  void restore_group(const runtime::GroupSpec& group, const std::vector<runtime::NodeId>& nodes) override;
  runtime::ResourceMap available(runtime::NodeId node) const override;

 private:
  struct Node {
    runtime::NodeId id;
    std::string address;
    runtime::Labels labels;
    Resources total;
    Resources available;
    std::size_t actors = 0;
    bool drains = false;
  };
  struct Bundle {
    runtime::NodeId node;
    Resources total;
    Resources available;
  };
  struct Reservation {
    runtime::NodeId node;
    Resources amount;
    std::optional<runtime::BundleSlot> bundle;
  };

  Node* find(runtime::NodeId id);
  runtime::Result<runtime::NodeId> place_in_bundle(const runtime::ActorSpec& actor, const Resources& demand);
  runtime::Result<runtime::NodeId> place_on_node(const runtime::ActorSpec& actor, const Resources& demand);
  runtime::Status explain(const runtime::ActorSpec& actor, const Resources& demand) const;

  std::vector<Node> nodes_;  // in the order in which they joined
  std::map<runtime::GroupId, std::vector<Bundle>> groups_;
  std::map<runtime::ActorId, Reservation> reservations_;
};

}  // namespace placement
