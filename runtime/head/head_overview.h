// HeadOverview: the cluster's state as lists and numbers, for people and metrics.
#pragma once

#include <functional>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"

namespace runtime {

class HeadOverview {
 public:
  /// What the tables do not say.
  struct Sources {
    std::function<NodeInfo(const NodeInfo&)> shown;  // with what changes by itself
    std::function<std::size_t()> actors_waiting;
    std::function<std::size_t()> nodes_draining;
    std::function<std::uint64_t()> drains_begun;
  };

  HeadOverview(const HeadContext& context, ClusterId cluster, Sources sources)
      : context_(context), cluster_(cluster), sources_(std::move(sources)) {}

  void serve(const HeadCall& call, control::QueryCluster& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ReadHead& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::ListActors& body, ControlAnswerer answer);

  ClusterState cluster_state() const;
  Numbers numbers() const;

 private:
  const HeadContext& context_;
  const ClusterId cluster_;
  const Sources sources_;
};

}  // namespace runtime
