// LocalProvider: nodes as processes of this machine, started by `starling start` and known again by
// their arguments. For trying things out, and for tests.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "placement/autoscaler/command_run.h"
#include "placement/autoscaler/provider.h"
#include "runtime/core/lifetime.h"
#include "runtime/transport/event_loop.h"

namespace placement {

class LocalProvider final : public NodeProvider {
 public:
  /// `start_limit`: how long `starling start` may take.
  LocalProvider(runtime::EventLoop& loop, std::chrono::milliseconds start_limit, NodeStart start);
  ~LocalProvider() override;

  void add(const NodeRequest& request, Done done) override;
  void remove(const std::string& id, Done done) override;
  void list(Listed done) override;
  std::string removal_by_hand(const std::string&) const override { return ""; }
  void abandon() override { runs_.clear(); }
  bool ends_with_cluster() const override { return true; }

 private:
  struct Removal {
    std::string id;
    Done done;
    runtime::Deadline kill_at;
    runtime::Deadline give_up_at;
  };
  void look_after();  // the removals

  runtime::EventLoop& loop_;
  const std::chrono::milliseconds start_limit_;
  const NodeStart start_;
  std::map<std::uint64_t, std::unique_ptr<CommandRun>> runs_;
  std::uint64_t next_ = 1;
  std::vector<Removal> removals_;
  runtime::Timer timer_;
  bool is_armed_ = false;
  runtime::Lifetime lifetime_;
};

}  // namespace placement
