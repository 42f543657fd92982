#include "rl/worker/reference_worker.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <utility>

#include "rl/worker/policy_options.h"
#include "rl/worker/response_scores.h"

namespace rl {

using runtime::Result;

Result<std::unique_ptr<ReferenceWorker>> ReferenceWorker::create(
    const ReferenceOptions& options, std::unique_ptr<Communicator> ranks) {
  at::set_num_threads(options.threads);
  Result<std::unique_ptr<FrozenModel>> model =
      FrozenModel::load(options.model, {.threads = options.threads, .device = options.device},
                        {ranks.get(), options.sharding.shard_ranks});
  if (!model.ok()) return model.status();
  if (!options.adapter.empty()) {
    const runtime::Status used =
        use_adapter((*model)->transformer(), {.lora = {}, .folder = options.adapter});
    if (!used.ok()) return used;
  }
  return std::unique_ptr<ReferenceWorker>(
      new ReferenceWorker(options, std::move(ranks), std::move(*model)));
}

Result<ReferenceScores> ReferenceWorker::score(const RolloutBatch& batch,
                                               std::span<const MicroBatch> micro_batches) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  const Offload::Stay here = offload_.stay();
  Result<std::vector<float>> logprobs =
      response_logprobs(Passes(model_->transformer(), {.bf16 = options_.bf16}), batch,
                        options_.temperature, {{0, batch.samples()}, micro_batches});
  if (!logprobs.ok()) return logprobs.status();
  ReferenceScores scores{.logprobs = std::move(*logprobs), .kl_penalties = {}};
  const auto tokens = static_cast<std::int64_t>(batch.logprobs.size());
  const at::Tensor policy_N =
      at::from_blob(const_cast<float*>(batch.logprobs.data()), {tokens}, at::kFloat);
  const at::Tensor reference_N = at::from_blob(scores.logprobs.data(), {tokens}, at::kFloat);
  const at::Tensor penalty_N = kl_penalty(policy_N, reference_N, options_.penalty).contiguous();
  const float* penalty = penalty_N.const_data_ptr<float>();
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    double sum = 0.0;
    for (std::int64_t i = 0, tokens_of = batch.learned_tokens(sample); i < tokens_of; ++i)
      sum += *penalty++;
    scores.kl_penalties.push_back(sum);
  }
  return scores;
}

}  // namespace rl
