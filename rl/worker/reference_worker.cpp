#include "rl/worker/reference_worker.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <span>
#include <utility>

#include "rl/model/bf16_products.h"
#include "rl/worker/policy_options.h"

namespace rl {

using runtime::Result;

Result<std::unique_ptr<ReferenceWorker>> ReferenceWorker::create(const ReferenceOptions& options) {
  at::set_num_threads(options.threads);
  Result<std::unique_ptr<Transformer>> model =
      Transformer::load(options.model, {.threads = options.threads, .device = options.device});
  if (!model.ok()) return model.status();
  if (!options.adapter.empty()) {
    const runtime::Status used = use_adapter(**model, {.lora = {}, .folder = options.adapter});
    if (!used.ok()) return used;
  }
  return std::unique_ptr<ReferenceWorker>(new ReferenceWorker(options, std::move(*model)));
}

Result<ReferenceScores> ReferenceWorker::score(const RolloutBatch& batch) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  const Offload::Stay here = offload_.stay();
  const Bf16Products bf16(options_.bf16);
  Result<std::vector<float>> logprobs =
      response_logprobs(*model_, batch, options_.temperature, options_.micro_batch);
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

std::vector<std::int64_t> sample_lengths(const RolloutBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    lengths.push_back(batch.prompts.row_size(batch.prompt_of[static_cast<std::size_t>(sample)]) +
                      batch.responses.row_size(sample));
  }
  return lengths;
}

PackedBatch pack_samples(const RolloutBatch& batch, std::int64_t first, std::int64_t last) {
  PackedBatch packed;
  std::vector<std::int32_t> sequence;
  for (std::int64_t sample = first; sample < last; ++sample) {
    const auto prompt = batch.prompts.row(batch.prompt_of[static_cast<std::size_t>(sample)]);
    const auto response = batch.responses.row(sample);
    sequence.assign(prompt.begin(), prompt.end());
    sequence.insert(sequence.end(), response.begin(), response.end());
    const std::span<const std::uint8_t> mask = batch.mask_of(sample);
    if (mask.empty()) {
      packed.append(sequence, static_cast<std::int64_t>(prompt.size()));
    } else {
      packed.append(sequence, static_cast<std::int64_t>(prompt.size()), mask);
    }
    if (!batch.lengths_max.empty())
      packed.rope_lengths.push_back(batch.lengths_max[static_cast<std::size_t>(sample)]);
  }
  return packed;
}

Result<std::vector<float>> response_logprobs(const Transformer& model, const RolloutBatch& batch,
                                             float temperature, const MicroBatchLimits& limits) {
  return response_logprobs(model, batch, temperature, limits, 0, batch.samples());
}

Result<std::vector<float>> response_logprobs(const Transformer& model, const RolloutBatch& batch,
                                             float temperature, const MicroBatchLimits& limits,
                                             std::int64_t first, std::int64_t last) {
  const at::NoGradGuard no_grad;
  std::vector<float> logprobs;
  const std::vector<std::int64_t> lengths = sample_lengths(batch);
  const std::vector<std::int64_t> cuts =
      plan_micro_batches(std::span(lengths).subspan(static_cast<std::size_t>(first),
                                                    static_cast<std::size_t>(last - first)),
                         limits);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Result<TokenLogprobs> part = model.token_logprobs(
        pack_samples(batch, first + cuts[i], first + cuts[i + 1]), {.temperature = temperature});
    if (!part.ok()) return part.status();
    const at::Tensor values_N = part->logprobs_N.contiguous();
    logprobs.insert(logprobs.end(), values_N.const_data_ptr<float>(),
                    values_N.const_data_ptr<float>() + values_N.numel());
  }
  return logprobs;
}

}  // namespace rl
