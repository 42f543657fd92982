// PublishedMover: copies published objects off nodes that are drained.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/drained_nodes.h"
#include "runtime/head/head_context.h"
#include "runtime/head/published_objects.h"

namespace runtime {

class PublishedMover {
 public:
  /// `on_answer`: a node has answered that was asked to take a copy off the drained node.
  PublishedMover(const HeadContext& context, const DrainedNodes& drained,
                 PublishedObjects& published, std::function<void(NodeId)> on_answer)
      : context_(context),
        drained_(drained),
        published_(published),
        on_answer_(std::move(on_answer)) {}

  /// Has another node take each copy that is there.
  void move(NodeId node);
  /// Whether a copy is in transit.
  bool is_moving(NodeId node) const;
  /// Whether the node has a published object that no node has which stays.
  bool has_sole_copies(NodeId node) const;
  /// When the next attempt after a failure is due; Deadline::max(): none is.
  Deadline next_attempt(NodeId node) const;
  /// The node has left.
  void forget(NodeId node) { moves_.erase(node); }

 private:
  using Version = std::pair<PublishedTable::Name, std::uint64_t>;
  struct Moves {
    std::set<Version> under_way;
    Deadline next_attempt = Deadline::min();      // the last one failed
    std::map<Version, std::set<NodeId>> refused;  // which nodes could not take which version
  };
  bool is_sole(const std::vector<ObjectLocation>& copies, NodeId node) const;
  void move_copy(const Version& version, const ObjectLocation& copy,
                 const std::vector<ObjectLocation>& copies);
  /// None: every node that stays has a copy.
  NodeId choose_target(const Version& version, Moves& moves,
                       const std::vector<ObjectLocation>& copies) const;
  void on_copy_moved(const Version& version, NodeId from, NodeId target,
                     Result<ControlAnswer> adopted);

  const HeadContext& context_;
  const DrainedNodes& drained_;
  PublishedObjects& published_;
  const std::function<void(NodeId)> on_answer_;
  std::map<NodeId, Moves> moves_;
};

}  // namespace runtime
