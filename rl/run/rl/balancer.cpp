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

}  // namespace

Status Balancer::balance(StepBatch& batch) {
  batch.drawn_tokens = batch.tokens();
  if (!moves_ || batch.shares.size() < 2) return {};
  const std::optional<BalancedShards> balanced =
      balance_shards(batch.shards(), prompt_costs(batch));
  if (!balanced) return {};
  const Result<std::vector<Generated>> collected =
      batches_.collect(batch.batches(), balanced->places);
  if (!collected.ok()) return collected.status();
  batch.place(*balanced);
  return batch.take(*collected);
}

}  // namespace rl
