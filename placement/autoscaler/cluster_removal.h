// ClusterRemoval: removes the machines that do not end with the cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "placement/autoscaler/planner.h"
#include "placement/autoscaler/provider.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace placement {

/// Lives on the event loop.
class ClusterRemoval {
 public:
  /// Writes down what the planner knows.
  using Record = std::function<void(std::function<void(runtime::Status)> then)>;

  /// Borrows all of them.
  ClusterRemoval(runtime::EventLoop& loop, NodePlanner& planner, NodeProvider& provider,
                 Record record);
  ClusterRemoval(const ClusterRemoval&) = delete;
  ClusterRemoval& operator=(const ClusterRemoval&) = delete;

  /// Tries again what fails; `done` once nothing is left, or after `timeout`. Once.
  void start(std::chrono::milliseconds timeout, std::function<void()> done);
  /// What it could not remove, why, and what a person can do, in words; empty: nothing is left.
  std::string left() const;

 private:
  void remove_all();
  void on_removed(const std::string& id, const runtime::Status& status);
  std::vector<std::string> to_be_removed() const;

  NodePlanner& planner_;
  NodeProvider& provider_;
  const Record record_;
  runtime::Timer again_timer_;
  runtime::Timer stop_timer_;
  std::chrono::milliseconds timeout_{0};
  std::function<void()> done_;  // empty once it ran
  std::size_t removing_ = 0;
  std::map<std::string, std::string> why_left_;  // by id: how its last removal has failed
  runtime::Lifetime lifetime_;
};

}  // namespace placement
