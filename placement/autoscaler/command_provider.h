// CommandProvider: nodes by a command of the user's, which adds, removes and lists them.
// docs/guide/autoscaler.md is its protocol.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "placement/autoscaler/command_run.h"
#include "placement/autoscaler/provider.h"
#include "runtime/transport/event_loop.h"

namespace placement {

class CommandProvider final : public NodeProvider {
 public:
  // Exit codes with a meaning; any other but 0 is a failure.
  static constexpr int kExitNoCapacity = 75;   // of `add`: there are no such nodes at present
  static constexpr int kExitUnsupported = 64;  // of `list`: it cannot say

  CommandProvider(runtime::EventLoop& loop, ProviderOptions options, NodeStart start);

  void add(const NodeRequest& request, Done done) override;
  void remove(const std::string& id, Done done) override;
  void list(Listed done) override;
  std::string removal_by_hand(const std::string& id) const override;
  void abandon() override;
  bool ends_with_cluster() const override { return false; }

 private:
  struct Waiting {
    runtime::ProcessSpec spec;
    std::function<void(CommandOutcome)> done;
  };
  runtime::ProcessSpec spec_of(const std::string& operation) const;
  void run(runtime::ProcessSpec spec, std::function<void(CommandOutcome)> done);
  void start_next();

  runtime::EventLoop& loop_;
  const ProviderOptions options_;
  const NodeStart start_;
  std::deque<Waiting> waiting_;
  std::map<std::uint64_t, std::unique_ptr<CommandRun>> runs_;
  std::uint64_t next_ = 1;
};

/// Whether the command is there and may be run, looked for as when it is run. Errors:
/// kInvalidArgument, with the cure.
runtime::Status check_command(const ProviderOptions& options);

/// What `list` has printed: a JSON array of ids, or an object with the array "nodes". Errors:
/// kInvalidArgument.
runtime::Result<std::vector<std::string>> parse_node_list(const std::string& output);

}  // namespace placement
