#include "rl/worker/update_loop.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "rl/worker/reference_worker.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status backward(const at::Tensor& loss) {
  try {
    loss.backward();
    return {};
  } catch (const std::exception& error) {
    return runtime::resource_exhausted("backward pass: " + std::string(error.what()));
  }
}

Status check_mini_batches(const RolloutBatch& batch, std::span<const MiniBatch> mini_batches) {
  for (const MiniBatch& mini_batch : mini_batches) {
    if (mini_batch.first_sample < 0 || mini_batch.first_sample > mini_batch.last_sample || mini_batch.last_sample > batch.samples()) {
      return runtime::invalid_argument("update: a mini-batch outside the samples");
    }
  }
  return {};
}

Result<Metrics> run_updates(Learner& learner, const RolloutBatch& batch, std::span<const MiniBatch> mini_batches, const UpdateLoop& loop,
                            const AccumulateSamples& accumulate) {
  const std::vector<std::int64_t> lengths = sample_lengths(batch);
  const std::string skipped = loop.role + "/skipped_updates";
  Metrics metrics;
  for (std::int64_t epoch = 0; epoch < loop.epochs; ++epoch) {
    for (const MiniBatch& mini_batch : mini_batches) {
      const auto mine = std::span(lengths).subspan(static_cast<std::size_t>(mini_batch.first_sample),
                                                   static_cast<std::size_t>(mini_batch.last_sample - mini_batch.first_sample));
      const std::vector<std::int64_t> cuts = plan_micro_batches(mine, loop.micro_batch);
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const Status status = accumulate(mini_batch, mini_batch.first_sample + cuts[i], mini_batch.first_sample + cuts[i + 1], metrics);
        if (!status.ok()) return status;
      }
      const Result<OptimizerReport> report = learner.apply(loop.learning_rate);
      if (!report.ok()) return report.status();
      const double part = 1.0 / learner.communicator().size();
      metrics[loop.role + "/grad_norm"] += report->grad_norm * part;
      metrics[skipped] += report->skipped ? part : 0.0;
    }
  }
  const double steps = static_cast<double>(loop.epochs) * static_cast<double>(mini_batches.size());
  for (auto& [name, value] : metrics) {
    if (name != skipped) value /= std::max(1.0, steps);
  }
  return metrics;
}

}  // namespace rl
