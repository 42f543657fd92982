#include "rl/train/rollout_batch.h"

#include <algorithm>

namespace rl {

template <class T>
bool Ragged<T>::consistent() const {
  return !offsets.empty() && offsets.front() == 0 && std::is_sorted(offsets.begin(), offsets.end()) &&
         offsets.back() == static_cast<std::int64_t>(values.size());
}

template bool Ragged<std::int32_t>::consistent() const;
template bool Ragged<std::uint8_t>::consistent() const;

runtime::Status RolloutBatch::validate() const {
  const auto samples = static_cast<std::size_t>(responses.rows());
  if (!prompts.consistent() || !responses.consistent()) return runtime::invalid_argument("rollout batch: row offsets are inconsistent");
  if (prompt_of.size() != samples || stopped.size() != samples || logprobs.size() != responses.values.size() ||
      (!lengths_max.empty() && lengths_max.size() != samples)) {
    return runtime::invalid_argument("rollout batch: sizes differ");
  }
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (prompt_of[sample] < 0 || prompt_of[sample] >= prompts.rows()) return runtime::invalid_argument("rollout batch: a prompt is missing");
    if (responses.row_size(static_cast<std::int64_t>(sample)) == 0) return runtime::invalid_argument("rollout batch: an empty response");
    if (prompts.row_size(prompt_of[sample]) == 0) return runtime::invalid_argument("rollout batch: an empty prompt");
  }
  return {};
}

RolloutSummary summarize(const RolloutBatch& batch) {
  RolloutSummary summary;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    summary.prompt_tokens.push_back(batch.prompts.row_size(batch.prompt_of[static_cast<std::size_t>(sample)]));
    summary.response_tokens.push_back(batch.responses.row_size(sample));
  }
  summary.stopped = batch.stopped;
  return summary;
}

runtime::Result<RolloutBatch> append_prompts(const RolloutBatch& kept, const RolloutBatch& fresh, std::span<const std::int64_t> prompts) {
  for (const RolloutBatch* batch : {&kept, &fresh}) {
    const runtime::Status valid = batch->validate();
    if (!valid.ok()) return valid;
  }
  RolloutBatch all = kept;
  for (const std::int64_t prompt : prompts) {
    if (prompt < 0 || prompt >= fresh.prompts.rows()) return runtime::invalid_argument("rollout batch: prompt " + std::to_string(prompt) + " is not there");
    const auto row = static_cast<std::int32_t>(all.prompts.rows());
    all.prompts.append(fresh.prompts.row(prompt));
    for (std::int64_t sample = 0; sample < fresh.samples(); ++sample) {
      const auto at = static_cast<std::size_t>(sample);
      if (fresh.prompt_of[at] != prompt) continue;
      all.prompt_of.push_back(row);
      all.responses.append(fresh.responses.row(sample));
      const auto logprobs = std::span(fresh.logprobs).subspan(static_cast<std::size_t>(fresh.responses.offsets[at]), static_cast<std::size_t>(fresh.responses.row_size(sample)));
      all.logprobs.insert(all.logprobs.end(), logprobs.begin(), logprobs.end());
      all.stopped.push_back(fresh.stopped[at]);
      if (!fresh.lengths_max.empty()) all.lengths_max.push_back(fresh.lengths_max[at]);
    }
  }
  return all;
}

runtime::Result<RolloutBatch> without_samples(const RolloutBatch& batch, const std::vector<std::uint8_t>& left_out) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(left_out.size()) != batch.samples()) {
    return runtime::invalid_argument("rollout batch: " + std::to_string(left_out.size()) + " marks for " + std::to_string(batch.samples()) + " samples");
  }
  RolloutBatch kept;
  kept.prompts = batch.prompts;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const auto i = static_cast<std::size_t>(sample);
    if (left_out[i] != 0) continue;
    kept.prompt_of.push_back(batch.prompt_of[i]);
    kept.responses.append(batch.responses.row(sample));
    const auto begin = batch.logprobs.begin() + batch.responses.offsets[i];
    kept.logprobs.insert(kept.logprobs.end(), begin, begin + batch.responses.row_size(sample));
    kept.stopped.push_back(batch.stopped[i]);
    if (!batch.lengths_max.empty()) kept.lengths_max.push_back(batch.lengths_max[i]);
  }
  return kept;
}

}  // namespace rl
