#include "rl/run/rl/step_report.h"

#include "rl/batch/worker_lists.h"
#include "rl/metrics/process_memory.h"
#include "rl/run/alarms.h"
#include "rl/worker/variance_proxy.h"

namespace rl {
namespace {

SampleScalars scalars_of(const StepBatch& batch, const Credit& credit,
                         std::int64_t prompt_tokens_max) {
  SampleScalars scalars{.scores = batch.all<double>(&Sample::score),
                        .rewards = batch.all<double>(&Sample::reward),
                        .advantages = {},
                        .prompt_tokens = batch.all<std::int64_t>(&Sample::prompt_tokens),
                        .response_tokens = batch.all<std::int64_t>(&Sample::response_tokens),
                        .learned_tokens = batch.all<std::int64_t>(&Sample::learned_tokens),
                        .turns = batch.all<std::int64_t>(&Sample::turns),
                        .stopped = batch.all<std::uint8_t>(&Sample::stopped),
                        .prompt_tokens_max = prompt_tokens_max};
  if (!credit.per_token) scalars.advantages = batch.all<float>(&Sample::advantage);
  std::erase(scalars.turns, 0);  // unknown
  return scalars;
}

}  // namespace

void add_sample_metrics(const StepBatch& batch, const Credit& credit,
                        std::int64_t prompt_tokens_max, const StepTimer& timer, Metrics& metrics) {
  const SampleScalars scalars = scalars_of(batch, credit, prompt_tokens_max);
  finish_variance_proxies(metrics, static_cast<std::int64_t>(scalars.scores.size()));
  metrics.merge(sample_metrics(scalars));
  metrics.merge(balance_metrics(batch.generated_tokens, batch.tokens()));
  metrics["perf/cpu_memory_used_gb"] = machine_memory_used_gb();
  const double equal_groups =
      equal_score_groups(scalars.scores, join<std::int64_t>(batch.group_sizes()));
  if (equal_groups >= 0 && !credit.per_token) metrics["critic/score/equal_groups"] = equal_groups;
  metrics.merge(timer.metrics(scalars, static_cast<std::int64_t>(batch.shares.size())));
}

}  // namespace rl
