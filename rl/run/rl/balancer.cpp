#include "rl/run/rl/balancer.h"

#include <optional>
#include <vector>

#include "rl/batch/balance.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Responses to a prompt share its tokens, which are computed once.
std::vector<std::vector<std::int64_t>> prompt_costs(const StepBatch& batch) {
  std::vector<std::vector<std::int64_t>> costs;
  for (const WorkerShare& share : batch.shares) {
    std::vector<std::int64_t>& of_worker = costs.emplace_back();
    for (const SampleGroup& group : share.groups) {
      std::int64_t tokens = group.samples.empty() ? 0 : group.samples.front().prompt_tokens;
      for (const Sample& sample : group.samples) tokens += sample.response_tokens;
      of_worker.push_back(tokens);
    }
  }
  return costs;
}

// Whether each prompt is where it was.
bool are_there(const PromptPlaces& places) {
  for (std::size_t worker = 0; worker < places.size(); ++worker) {
    for (std::size_t row = 0; row < places[worker].size(); ++row) {
      const PromptPlace here{static_cast<std::int64_t>(worker), static_cast<std::int64_t>(row)};
      if (!(places[worker][row] == here)) return false;
    }
  }
  return true;
}

}  // namespace

Status Balancer::balance(StepBatch& batch) {
  batch.generated_tokens = batch.tokens();
  if (leaves_ > 0) {
    batch.leaves = leaves_;
    return move(batch, deal_leaves(batch.shards(), prompt_costs(batch), leaves_, moves_));
  }
  if (!moves_ || batch.shares.size() < 2) return {};
  const std::optional<BalancedShards> balanced =
      balance_shards(batch.shards(), prompt_costs(batch));
  return balanced ? move(batch, *balanced) : Status();
}

Status Balancer::move(StepBatch& batch, const BalancedShards& to) {
  if (are_there(to.places)) {
    batch.place(to);
    return {};
  }
  const Result<std::vector<Generated>> collected = batches_.collect(batch.batches(), to.places);
  if (!collected.ok()) return collected.status();
  batch.place(to);
  return batch.take(*collected);
}

}  // namespace rl
