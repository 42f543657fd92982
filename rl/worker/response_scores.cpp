#include "rl/worker/response_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <span>
#include <utility>

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

void append_values(std::vector<float>& to, const at::Tensor& values) {
  const at::Tensor part = values.contiguous();
  to.insert(to.end(), part.const_data_ptr<float>(), part.const_data_ptr<float>() + part.numel());
}

Status score_samples(const Passes& passes, const RolloutBatch& batch, OutputOptions wanted,
                     const ScoredSamples& scored, const Passes::Take& take) {
  const auto micro_batches = passes_over(scored.samples, scored.passes);
  if (!micro_batches.ok()) return micro_batches.status();
  const PassInput input{
      .pack = [&batch](const MicroBatch& samples) { return pack_samples(batch, samples); },
      .wanted = std::move(wanted)};
  return passes.score(*micro_batches, input, take);
}

}  // namespace

std::vector<std::int64_t> sample_lengths(const RolloutBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    lengths.push_back(batch.prompts.row_size(batch.prompt_of[static_cast<std::size_t>(sample)]) +
                      batch.responses.row_size(sample));
  }
  return lengths;
}

PackedBatch pack_samples(const RolloutBatch& batch, const MicroBatch& samples) {
  PackedBatch packed;
  std::vector<std::int32_t> sequence;
  for (std::int64_t sample = samples.first; sample < samples.last; ++sample) {
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

Result<std::vector<float>> response_logprobs(const Passes& passes, const RolloutBatch& batch,
                                             float temperature, const ScoredSamples& scored) {
  std::vector<float> logprobs;
  const Status done =
      score_samples(passes, batch, {.logprobs = LogprobOptions{.temperature = temperature}}, scored,
                    [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&) -> Status {
                      append_values(logprobs, outputs.logprobs.logprobs_N);
                      return {};
                    });
  if (!done.ok()) return done;
  return logprobs;
}

Result<Probabilities> response_probabilities(const Passes& passes, const RolloutBatch& batch,
                                             float temperature, const ScoredSamples& scored) {
  Probabilities probabilities;
  const Status done = score_samples(
      passes, batch, {.logprobs = LogprobOptions{.temperature = temperature, .with_squares = true}},
      scored, [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&) -> Status {
        append_values(probabilities.logprobs, outputs.logprobs.logprobs_N);
        append_values(probabilities.squares, outputs.logprobs.squares_N);
        return {};
      });
  if (!done.ok()) return done;
  return probabilities;
}

Result<std::vector<float>> response_values(const Passes& passes, const std::string& head,
                                           const RolloutBatch& batch, const ScoredSamples& scored) {
  std::vector<float> values;
  values.reserve(batch.logprobs.size());
  const Status done = score_samples(
      passes, batch, {.heads = {head}}, scored,
      [&](const Outputs& outputs, const MicroBatch&, const PackedBatch& packed) -> Status {
        append_values(values, at_targets(outputs.heads.front(), packed));
        return {};
      });
  if (!done.ok()) return done;
  return values;
}

at::Tensor at_targets(const at::Tensor& head_T, const PackedBatch& packed) {
  std::vector<std::int64_t> before;
  before.reserve(packed.targets.size());
  for (const std::int64_t target : packed.targets) before.push_back(target - 1);
  return head_T.reshape({-1}).index_select(
      0,
      at::from_blob(before.data(), {static_cast<std::int64_t>(before.size())}, at::kLong).clone());
}

}  // namespace rl
