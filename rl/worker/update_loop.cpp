#include "rl/worker/update_loop.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "rl/model/guarded.h"
#include "rl/train/flops.h"
#include "rl/worker/reference_worker.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Status backward(const at::Tensor& loss) {
  return guarded<void>("backward pass", [&] { loss.backward(); });
}

Status check_plan(const RolloutBatch& batch, const UpdatePlan& plan) {
  const auto samples = static_cast<std::size_t>(batch.samples());
  const auto fits = [&](std::size_t size) { return size == 0 || size == samples; };
  if (!fits(plan.use.repeats.size()) || !fits(plan.use.positive.size()))
    return runtime::invalid_argument("update: uses of another number of samples");
  for (const MiniBatch& mini_batch : plan.mini_batches) {
    if (mini_batch.first_sample < 0 || mini_batch.first_sample > mini_batch.last_sample ||
        mini_batch.last_sample > batch.samples()) {
      return runtime::invalid_argument("update: a mini-batch outside the samples");
    }
  }
  return {};
}

at::Tensor repeats_of(const SampleUse& use, std::int64_t first, std::int64_t last) {
  at::Tensor repeats_B = at::ones({last - first});
  if (use.repeats.empty()) return repeats_B;
  float* out = repeats_B.mutable_data_ptr<float>();
  for (std::int64_t i = first; i < last; ++i)
    *out++ = static_cast<float>(use.repeats[static_cast<std::size_t>(i)]);
  return repeats_B;
}

at::Tensor positive_of(const SampleUse& use, std::int64_t first, std::int64_t last) {
  at::Tensor positive_B = at::zeros({last - first});
  if (use.positive.empty()) return positive_B;
  float* out = positive_B.mutable_data_ptr<float>();
  for (std::int64_t i = first; i < last; ++i)
    *out++ = static_cast<float>(use.positive[static_cast<std::size_t>(i)]);
  return positive_B;
}

Result<Metrics> run_updates(Learner& learner, const RolloutBatch& batch,
                            std::span<const MiniBatch> mini_batches, const UpdateLoop& loop,
                            const AccumulateSamples& accumulate, const BeginMiniBatch& begin) {
  const auto begun_at = std::chrono::steady_clock::now();
  const std::vector<std::int64_t> lengths = sample_lengths(batch);
  const std::string skipped = loop.role + "/skipped_updates";
  Metrics metrics;
  for (std::int64_t epoch = 0; epoch < loop.epochs; ++epoch) {
    for (const MiniBatch& mini_batch : mini_batches) {
      if (begin) {
        const Status begun = begin(mini_batch, epoch == 0 && &mini_batch == &mini_batches.front());
        if (!begun.ok()) return begun;
      }
      const auto mine = std::span(lengths).subspan(
          static_cast<std::size_t>(mini_batch.first_sample),
          static_cast<std::size_t>(mini_batch.last_sample - mini_batch.first_sample));
      const std::vector<std::int64_t> cuts = plan_micro_batches(mine, loop.micro_batch);
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const Status status = accumulate(mini_batch, mini_batch.first_sample + cuts[i],
                                         mini_batch.first_sample + cuts[i + 1], metrics);
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
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_at;
  if (loop.peak_flops > 0) {
    const double flops =
        training_flops(learner.model().config(), lengths) * static_cast<double>(loop.epochs);
    metrics["perf/mfu/" + loop.role] =
        flops / std::max(took.count(), 1e-9) / loop.peak_flops / learner.communicator().size();
  }
  return metrics;
}

}  // namespace rl
