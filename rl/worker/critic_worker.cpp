#include "rl/worker/critic_worker.h"

#include <ATen/Parallel.h>

#include <utility>

#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/model/head.h"
#include "rl/plan/flops.h"
#include "rl/plan/memory_plan.h"
#include "rl/worker/passes.h"
#include "rl/worker/response_scores.h"

namespace rl {

using runtime::Result;
using runtime::Status;

CriticWorker::CriticWorker(const CriticOptions& options, std::unique_ptr<Transformer> model,
                           TrainingRanks ranks)
    : options_(options),
      learner_(std::move(model), std::move(ranks), options.learner),
      head_(learner_.model().config().output_heads.front().name),
      peak_flops_(
          measured_peak_flops(learner_.model().parameters().arena().device(), options.bf16)) {}

Result<std::unique_ptr<CriticWorker>> CriticWorker::create(const CriticOptions& options,
                                                           TrainingRanks ranks) {
  at::set_num_threads(options.threads);  // backward's matrix products
  Result<ModelConfig> config = ModelConfig::load(options.model);
  if (!config.ok()) return config.status();
  if (!config->output_heads.empty() && config->task == ModelTask::kCausalLm) {
    return runtime::invalid_argument(
        options.model.string() +
        ": a model with heads in addition to its output layer cannot be made "
        "into a critic; give another critic.model.path");
  }
  Result<std::unique_ptr<Transformer>> model = Transformer::load(
      with_task(std::move(*config), ModelTask::kTokenClassification), options.model, options.seed,
      {.threads = options.threads,
       .device = options.device,
       .part = weights_needed(options.learner, ranks)});
  if (!model.ok()) return model.status();
  CriticOptions fitted = options;
  if (const auto room = device_room((*model)->parameters().arena().device());
      room && fitted.micro_batch.tokens_max > 0)
    fitted.micro_batch.tokens_max = tokens_that_fit(
        (*model)->config(),
        {.recompute_layers = options.recompute_layers, .bf16 = options.bf16, .on_device = true},
        fitted.micro_batch.tokens_max, room->free / 2);
  return guarded<std::unique_ptr<CriticWorker>>("the critic's gradients and optimizer", [&] {
    return std::unique_ptr<CriticWorker>(
        new CriticWorker(fitted, std::move(*model), std::move(ranks)));
  });
}

Result<TokenEstimates> CriticWorker::estimate(const RolloutBatch& batch,
                                              std::span<const float> reference_logprobs,
                                              const EstimateTask& task) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  const Offload::Stay here = learner_.stay();
  Result<std::vector<float>> values =
      response_values(Passes(learner_.model(), {.bf16 = options_.bf16}), head_, batch,
                      {{0, batch.samples()}, task.micro_batches});
  if (!values.ok()) return values.status();
  return estimate_tokens(batch, std::move(*values), reference_logprobs, task, options_.estimates);
}

Result<Metrics> CriticWorker::update(const RolloutBatch& batch, const TokenEstimates& estimates,
                                     const UpdatePlan& plan) {
  Status valid = batch.validate();
  if (valid.ok()) valid = check_estimates(batch, estimates);
  if (valid.ok()) valid = check_plan(batch, plan);
  if (!valid.ok()) return valid;
  const Offload::Stay here = learner_.stay(/*with_gradients=*/true);
  const UpdateLoop loop{
      .epochs = options_.epochs,
      .passes = {.bf16 = options_.bf16, .recompute_layers = options_.recompute_layers},
      .learning_rate = plan.learning_rate,
      .role = "critic",
      .peak_flops = peak_flops_};
  return run_updates(
      learner_, batch, plan.mini_batches, loop,
      {.wanted = {.heads = {head_}},
       .loss = [&](const MiniBatch& mini_batch, const Outputs& outputs, const MicroBatch& samples,
                   const PackedBatch& packed, Metrics& metrics) -> Result<at::Tensor> {
         return value_loss(batch, samples, packed, outputs.heads.front(), estimates,
                           repeats_of(plan.use, samples), mini_batch, options_.objective, metrics);
       }});
}

}  // namespace rl
