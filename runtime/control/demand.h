// Unplaced work and the use of nodes: what a program that adds and removes nodes asks the head.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/control/membership.h"

namespace runtime {

/// Things that wait for a place on one node each, all alike.
struct PlaceShape {
  ResourceMap resources;
  Labels labels;  // selectors, which the node must meet
  std::uint64_t count = 0;
  std::string example;  // one of them: "actor Counter 7f3a0011"
  bool operator==(const PlaceShape&) const = default;
};

/// Placement groups that wait, all alike.
struct GroupShape {
  GroupSpec spec;  // of one of them
  std::uint64_t count = 0;
  bool operator==(const GroupShape&) const = default;
};

/// A node and what keeps it.
struct NodeUse {
  NodeInfo info;
  std::uint64_t actors = 0;       // that run or are being started there
  std::uint64_t bundles = 0;      // of placement groups
  std::uint64_t jobs = 0;         // whose drivers run there
  std::uint64_t sole_copies = 0;  // of published objects which no other node has
  std::uint64_t last_placed =
      0;  // incarnation of the actor that was placed there last: it grows with every one

  bool is_leaving() const { return info.drain.has_value(); }
  bool is_idle() const { return actors == 0 && bundles == 0 && jobs == 0 && sole_copies == 0; }
  /// "2 actors, 1 driver"; empty when it is idle.
  std::string describe() const;
  bool operator==(const NodeUse&) const = default;
};

struct Demand {
  static constexpr std::size_t kShapesMax = 1000;     // of each kind
  static constexpr std::size_t kBundlesMax = 20'000;  // of all groups together

  std::vector<PlaceShape> actors;
  std::vector<PlaceShape> jobs;  // whose drivers wait for a place
  std::vector<GroupShape> groups;
  std::uint64_t unlisted = 0;  // what waits beyond these limits
  std::uint64_t bound =
      0;  // actors that no new node would help: they wait for one node, or for room in a bundle
  std::vector<NodeUse> nodes;
  bool operator==(const Demand&) const = default;
};

}  // namespace runtime
