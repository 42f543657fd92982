#include "rl/worker/update_loop.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "rl/plan/flops.h"
#include "rl/worker/response_scores.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

MicroBatch samples_of(const MiniBatch& mini_batch) {
  return {mini_batch.first_sample, mini_batch.last_sample};
}

}  // namespace

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
    for (const auto* passes : {&mini_batch.micro_batches, &mini_batch.scoring_batches}) {
      const Status whole = passes_over(samples_of(mini_batch), *passes).status();
      if (!whole.ok()) return whole;
    }
  }
  return passes_over({0, batch.samples()}, plan.scoring_batches).status();
}

at::Tensor repeats_of(const SampleUse& use, const MicroBatch& samples) {
  at::Tensor repeats_B = at::ones({samples.last - samples.first});
  if (use.repeats.empty()) return repeats_B;
  float* out = repeats_B.mutable_data_ptr<float>();
  for (std::int64_t i = samples.first; i < samples.last; ++i)
    *out++ = static_cast<float>(use.repeats[static_cast<std::size_t>(i)]);
  return repeats_B;
}

at::Tensor positive_of(const SampleUse& use, const MicroBatch& samples) {
  at::Tensor positive_B = at::zeros({samples.last - samples.first});
  if (use.positive.empty()) return positive_B;
  float* out = positive_B.mutable_data_ptr<float>();
  for (std::int64_t i = samples.first; i < samples.last; ++i)
    *out++ = static_cast<float>(use.positive[static_cast<std::size_t>(i)]);
  return positive_B;
}

Result<Metrics> run_updates(Learner& learner, const RolloutBatch& batch,
                            std::span<const MiniBatch> mini_batches, const UpdateLoop& loop,
                            const MiniBatchLoss& learn) {
  const auto begun_at = std::chrono::steady_clock::now();
  const Passes passes(learner.model(), loop.passes);
  const PassInput input{
      .pack = [&](const MicroBatch& samples) { return pack_samples(batch, samples); },
      .wanted = learn.wanted};
  const std::string skipped = loop.role + "/skipped_updates";
  const double part = learner.ranks().share();
  Metrics metrics;
  for (std::int64_t epoch = 0; epoch < loop.epochs; ++epoch) {
    for (const MiniBatch& mini_batch : mini_batches) {
      if (learn.begin) {
        const Status begun =
            learn.begin(mini_batch, epoch == 0 && &mini_batch == &mini_batches.front());
        if (!begun.ok()) return begun;
      }
      const auto micro_batches = passes_over(samples_of(mini_batch), mini_batch.micro_batches);
      if (!micro_batches.ok()) return micro_batches.status();
      const Status learned =
          learn_in_rounds(learner, *micro_batches, mini_batch.rounds, learn.wanted,
                          [&](std::span<const MicroBatch> of_round, int turn) {
                            return passes.learn(
                                of_round, input,
                                [&](const Outputs& outputs, const MicroBatch& samples,
                                    const PackedBatch& packed, Metrics& sums) {
                                  return learn.loss(mini_batch, outputs, samples, packed, sums);
                                },
                                metrics, turn);
                          });
      if (!learned.ok()) return learned;
      const Result<OptimizerReport> report = learner.apply(loop.learning_rate);
      if (!report.ok()) return report.status();
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
    const double flops = training_flops(learner.model().config(), sample_lengths(batch)) *
                         static_cast<double>(loop.epochs);
    metrics["perf/mfu/" + loop.role] =
        flops / std::max(took.count(), 1e-9) / loop.peak_flops * part;
  }
  return metrics;
}

}  // namespace rl
