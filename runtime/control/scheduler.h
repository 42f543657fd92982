// Scheduler: decides where things run, for the head. placement/ implements it; runtime only
// obeys.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace runtime {

/// Where an actor is, and which of that node's GPUs are its own. GPUs are given by number, a part
/// of one as a whole one.
struct ActorPlace {
  NodeId node;
  std::vector<std::uint32_t> gpus = {};
  bool operator==(const ActorPlace&) const = default;
};

/// The same for each of a group's bundles.
struct GroupPlace {
  std::vector<NodeId> nodes;
  std::vector<std::vector<std::uint32_t>> gpus = {};
  bool operator==(const GroupPlace&) const = default;
};

/// Keeps the account of what the nodes offer and what is reserved, and chooses nodes. Called from
/// one thread. A failure with kResourceExhausted means "not now": it may succeed once something is
/// released or a node joins. Its message names what is missing and the nearest node, with figures.
/// Other codes are final.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Errors: kInvalidArgument (an amount below zero or not a number; the node is known already).
  virtual Status add_node(const NodeInfo& node) = 0;
  /// Forgets the node and everything reserved on it. Groups that lose a bundle keep the others
  /// until removed.
  virtual void remove_node(NodeId node) = 0;
  /// A closed node gets nothing new; what is there stays. Nodes begin open; unknown ones are
  /// ignored.
  virtual void set_open(NodeId node, bool open) = 0;

  /// From now on nothing new is placed on the node; what is there keeps its place.
  virtual void begin_drain(NodeId node) = 0;
  /// Gives an actor that stands on a node which is drained a place elsewhere instead. On an error
  /// it keeps the one that it has. Errors: as place_actor().
  virtual Result<ActorPlace> move_actor(const ActorSpec& actor) = 0;

  /// Whether a group that is placed would find a place for all of its bundles where nothing is
  /// drained. Its present place counts as given back. Changes nothing. Errors: as place_group().
  virtual Status check_move(const GroupSpec& group) const = 0;

  /// Reserves what the actor asks for on one node, or in its bundle. Errors: kResourceExhausted;
  /// kInvalidArgument; kNotFound (no such group or bundle, or the node it is bound to is gone).
  virtual Result<ActorPlace> place_actor(const ActorSpec& actor) = 0;
  /// Gives back what place_actor reserved; unknown actors are ignored.
  virtual void release_actor(ActorId actor) = 0;

  /// Reserves all bundles or none. Errors: kResourceExhausted; kInvalidArgument.
  virtual Result<GroupPlace> place_group(const GroupSpec& group) = 0;
  /// Gives back what of its bundles no actor uses, and what one uses when that one is released.
  virtual void remove_group(GroupId group) = 0;

  // What a head that was restarted knows to be placed; after its nodes, groups before actors. What
  // does not fit any more counts for nothing.
  virtual void restore_actor(const ActorSpec& actor, const ActorPlace& place) = 0;
  virtual void restore_group(const GroupSpec& group, const GroupPlace& place) = 0;

  /// The resources that are left of a node's offer.
  virtual ResourceMap available(NodeId node) const = 0;
};

}  // namespace runtime
