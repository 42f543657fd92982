// Autoscaler: the process that adds and removes nodes. Asks the head for the demand, lets the
// planner decide, has the head keep the records, has a provider do it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "placement/autoscaler/cluster_removal.h"
#include "placement/autoscaler/planner.h"
#include "placement/autoscaler/provider.h"
#include "runtime/control/node_client.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"

namespace placement {

// Pairs of the cluster's own that the head keeps.
inline constexpr const char* kRecordsKey = "starling.autoscaler.records";  // encode_records()
inline constexpr const char* kStatusKey =
    "starling.autoscaler.status";  // status_json(): what `starling autoscaler status` shows

/// Lives on the event loop. What it asks of the provider is in the records first. So one that
/// continues after a kill -9, of this process or of the head's, knows of it.
class Autoscaler {
 public:
  struct Options {
    AutoscalerConfig config;
    std::string config_file;  // for the status
  };
  Autoscaler(runtime::EventLoop& loop, Options options, runtime::NodeClient& client,
             std::unique_ptr<NodeProvider> provider);
  Autoscaler(const Autoscaler&) = delete;
  Autoscaler& operator=(const Autoscaler&) = delete;
  ~Autoscaler();

  /// Begins with what the records say. `failed`: they cannot be used.
  void start(std::function<void(runtime::Status)> failed);
  /// Removes what does not end with the cluster; `done` once nothing is left, or at the end of
  /// stop_timeout.
  void stop(std::function<void()> done);
  /// Once stopped: what it could not remove, why, and what a person can do, in words; empty:
  /// nothing is left.
  std::string left() const { return removal_.left(); }

 private:
  void load();
  void arm(std::chrono::milliseconds after);
  void look();
  void decide(const runtime::Demand& demand);
  void record(std::function<void(runtime::Status)> then);
  void carry_out(const PlanActions& actions);
  void retire(const NodeRecord& record);
  void list();
  void outcome();  // something has come to an end: look again soon
  void tell(bool at_once);
  void log_news();

  runtime::EventLoop& loop_;
  const Options options_;
  runtime::NodeClient& client_;
  const std::unique_ptr<NodeProvider> provider_;
  NodePlanner planner_;
  runtime::Timer timer_;
  std::function<void(runtime::Status)> failed_;
  bool is_looking_ = false;
  bool again_ = false;
  bool stopping_ = false;
  ClusterRemoval removal_;
  std::string recorded_;
  std::string reported_;
  runtime::Deadline reported_at_ = runtime::Deadline::min();
  runtime::Deadline listed_at_ = runtime::Deadline::min();
  bool lists_ = true;  // the provider can
  NodePlanner::Time logged_ = runtime::Deadline::min();
  std::uint64_t bound_ = 0, unlisted_ = 0;
  std::int64_t epoch_ms_;  // of the steady clock's zero
  runtime::Lifetime lifetime_;
};

}  // namespace placement
