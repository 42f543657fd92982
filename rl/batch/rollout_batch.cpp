#include "rl/batch/rollout_batch.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

namespace rl {

template <class T>
bool Ragged<T>::consistent() const {
  return !offsets.empty() && offsets.front() == 0 &&
         std::is_sorted(offsets.begin(), offsets.end()) &&
         offsets.back() == static_cast<std::int64_t>(values.size());
}

template bool Ragged<std::int32_t>::consistent() const;
template bool Ragged<std::uint8_t>::consistent() const;

std::int64_t RolloutBatch::learned_before(std::int64_t sample) const {
  const std::int64_t before = responses.offsets[static_cast<std::size_t>(sample)];
  return response_mask.empty()
             ? before
             : std::count(response_mask.begin(), response_mask.begin() + before, std::uint8_t{1});
}

std::int64_t RolloutBatch::learned_tokens(std::int64_t sample) const {
  const std::span<const std::uint8_t> mask = mask_of(sample);
  return response_mask.empty() ? responses.row_size(sample)
                               : std::count(mask.begin(), mask.end(), std::uint8_t{1});
}

std::span<const std::uint8_t> RolloutBatch::mask_of(std::int64_t sample) const {
  if (response_mask.empty()) return {};
  return std::span(response_mask)
      .subspan(static_cast<std::size_t>(responses.offsets[static_cast<std::size_t>(sample)]),
               static_cast<std::size_t>(responses.row_size(sample)));
}

runtime::Status RolloutBatch::validate() const {
  const auto samples = static_cast<std::size_t>(responses.rows());
  if (!prompts.consistent() || !responses.consistent())
    return runtime::invalid_argument("rollout batch: row offsets are inconsistent");
  const bool masked = !response_mask.empty();
  if (masked && (response_mask.size() != responses.values.size() ||
                 std::any_of(response_mask.begin(), response_mask.end(),
                             [](std::uint8_t mark) { return mark > 1; }))) {
    return runtime::invalid_argument("rollout batch: a mask that is not of the responses' tokens");
  }
  if (prompt_of.size() != samples || stopped.size() != samples ||
      static_cast<std::int64_t>(logprobs.size()) != learned_before(responses.rows()) ||
      (!lengths_max.empty() && lengths_max.size() != samples) ||
      (!turns.empty() && turns.size() != samples) || (!notes.empty() && notes.size() != samples)) {
    return runtime::invalid_argument("rollout batch: sizes differ");
  }
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (prompt_of[sample] < 0 || prompt_of[sample] >= prompts.rows())
      return runtime::invalid_argument("rollout batch: a prompt is missing");
    if (responses.row_size(static_cast<std::int64_t>(sample)) == 0)
      return runtime::invalid_argument("rollout batch: an empty response");
    if (prompts.row_size(prompt_of[sample]) == 0)
      return runtime::invalid_argument("rollout batch: an empty prompt");
    if (masked && learned_tokens(static_cast<std::int64_t>(sample)) == 0)
      return runtime::invalid_argument("rollout batch: a response without a token of the policy's");
  }
  return {};
}

namespace {

// Adds a sample of `from` to `to`, as an answer to its prompt `prompt`; the sample's log-probs
// begin at `first`. Masks are written out as soon as one of both has one.
void append_sample(RolloutBatch& to, const RolloutBatch& from, std::int64_t sample,
                   std::int64_t first, std::int32_t prompt) {
  const auto at = static_cast<std::size_t>(sample);
  if (to.response_mask.empty() && !from.response_mask.empty())
    to.response_mask.assign(to.responses.values.size(), 1);
  const bool masked = !to.response_mask.empty() || !from.response_mask.empty();
  to.prompt_of.push_back(prompt);
  to.responses.append(from.responses.row(sample));
  const auto begin = from.logprobs.begin() + first;
  to.logprobs.insert(to.logprobs.end(), begin, begin + from.learned_tokens(sample));
  to.stopped.push_back(from.stopped[at]);
  if (!from.lengths_max.empty()) to.lengths_max.push_back(from.lengths_max[at]);
  if (!from.turns.empty()) to.turns.push_back(from.turns[at]);
  if (!from.notes.empty()) to.notes.push_back(from.notes[at]);
  if (!masked) return;
  const std::span<const std::uint8_t> mask = from.mask_of(sample);
  to.response_mask.insert(to.response_mask.end(), mask.begin(), mask.end());
  to.response_mask.resize(to.responses.values.size(), 1);
}

}  // namespace

RolloutSummary summarize(const RolloutBatch& batch) {
  RolloutSummary summary;
  auto logprob = batch.logprobs.begin();
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    summary.prompt_tokens.push_back(
        batch.prompts.row_size(batch.prompt_of[static_cast<std::size_t>(sample)]));
    summary.response_tokens.push_back(batch.responses.row_size(sample));
    summary.learned_tokens.push_back(batch.learned_tokens(sample));
    const std::int64_t learned = summary.learned_tokens.back();
    summary.mean_logprobs.push_back(
        learned == 0 ? 0.0F
                     : static_cast<float>(std::accumulate(logprob, logprob + learned, 0.0) /
                                          static_cast<double>(learned)));
    logprob += learned;
  }
  summary.stopped = batch.stopped;
  summary.turns = batch.turns;
  return summary;
}

std::vector<std::vector<std::int64_t>> tokens_by_sample(std::span<const RolloutSummary> summaries) {
  std::vector<std::vector<std::int64_t>> tokens;
  for (const RolloutSummary& summary : summaries) {
    std::vector<std::int64_t>& mine = tokens.emplace_back(summary.prompt_tokens);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += summary.response_tokens[i];
  }
  return tokens;
}

namespace {

// Puts prompts of a batch with their samples behind those of another.
class PromptCopier {
 public:
  explicit PromptCopier(const RolloutBatch& from)
      : from_(from), samples_(static_cast<std::size_t>(from.prompts.rows())) {
    for (std::int64_t sample = 0, first = 0; sample < from.samples();
         first += from.learned_tokens(sample++)) {
      samples_[static_cast<std::size_t>(from.prompt_of[static_cast<std::size_t>(sample)])]
          .push_back({sample, first});
    }
  }

  runtime::Status copy(std::int64_t prompt, RolloutBatch& to) const {
    if (prompt < 0 || prompt >= from_.prompts.rows())
      return runtime::invalid_argument("rollout batch: prompt " + std::to_string(prompt) +
                                       " is not there");
    const auto row = static_cast<std::int32_t>(to.prompts.rows());
    to.prompts.append(from_.prompts.row(prompt));
    for (const auto& [sample, first] : samples_[static_cast<std::size_t>(prompt)])
      append_sample(to, from_, sample, first, row);
    return {};
  }

 private:
  const RolloutBatch& from_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>>
      samples_;  // of each prompt: the sample, and where its log-probs begin
};

}  // namespace

runtime::Result<RolloutBatch> append_prompts(const RolloutBatch& kept, const RolloutBatch& fresh,
                                             std::span<const std::int64_t> prompts) {
  for (const RolloutBatch* batch : {&kept, &fresh}) {
    const runtime::Status valid = batch->validate();
    if (!valid.ok()) return valid;
  }
  RolloutBatch all = kept;
  const PromptCopier copier(fresh);
  for (const std::int64_t prompt : prompts) {
    if (const runtime::Status copied = copier.copy(prompt, all); !copied.ok()) return copied;
  }
  return all;
}

runtime::Result<RolloutBatch> collect_prompts(std::span<const RolloutBatch> batches,
                                              std::span<const PromptPlace> places) {
  std::vector<PromptCopier> copiers;
  for (const RolloutBatch& batch : batches) {
    const runtime::Status valid = batch.validate();
    if (!valid.ok()) return valid;
    copiers.emplace_back(batch);
  }
  RolloutBatch all;
  for (const PromptPlace& place : places) {
    if (place.worker < 0 || place.worker >= static_cast<std::int64_t>(copiers.size()))
      return runtime::invalid_argument("rollout batch: worker " + std::to_string(place.worker) +
                                       " is not there");
    if (const runtime::Status copied =
            copiers[static_cast<std::size_t>(place.worker)].copy(place.row, all);
        !copied.ok())
      return copied;
  }
  return all;
}

runtime::Result<RolloutBatch> without_samples(const RolloutBatch& batch,
                                              const std::vector<std::uint8_t>& left_out) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(left_out.size()) != batch.samples()) {
    return runtime::invalid_argument("rollout batch: " + std::to_string(left_out.size()) +
                                     " marks for " + std::to_string(batch.samples()) + " samples");
  }
  RolloutBatch kept;
  kept.prompts = batch.prompts;
  for (std::int64_t sample = 0, first = 0; sample < batch.samples();
       first += batch.learned_tokens(sample++)) {
    const auto i = static_cast<std::size_t>(sample);
    if (left_out[i] == 0) append_sample(kept, batch, sample, first, batch.prompt_of[i]);
  }
  return kept;
}

runtime::Result<std::vector<float>> token_values_without(
    const RolloutBatch& batch, std::span<const float> values,
    const std::vector<std::uint8_t>& left_out) {
  const runtime::Status valid = batch.validate();
  if (!valid.ok()) return valid;
  if (static_cast<std::int64_t>(left_out.size()) != batch.samples() ||
      static_cast<std::int64_t>(values.size()) != batch.learned_before(batch.samples())) {
    return runtime::invalid_argument(
        "rollout batch: " + std::to_string(left_out.size()) + " marks and " +
        std::to_string(values.size()) + " numbers for " + std::to_string(batch.samples()) +
        " samples with " + std::to_string(batch.learned_before(batch.samples())) +
        " learned tokens");
  }
  std::vector<float> kept;
  auto next = values.begin();
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const auto end = next + batch.learned_tokens(sample);
    if (left_out[static_cast<std::size_t>(sample)] == 0) kept.insert(kept.end(), next, end);
    next = end;
  }
  return kept;
}

runtime::Status put_token_values(const RolloutBatch& batch, std::span<const float> of_kept,
                                 const std::vector<std::uint8_t>& left_out,
                                 std::span<float> values) {
  const runtime::Result<std::vector<float>> present = token_values_without(batch, values, left_out);
  if (!present.ok()) return present.status();
  if (present->size() != of_kept.size()) {
    return runtime::invalid_argument("rollout batch: " + std::to_string(of_kept.size()) +
                                     " numbers for " + std::to_string(present->size()) +
                                     " learned tokens");
  }
  auto from = of_kept.begin();
  auto to = values.begin();
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const std::int64_t tokens = batch.learned_tokens(sample);
    if (left_out[static_cast<std::size_t>(sample)] == 0) {
      std::copy(from, from + tokens, to);
      from += tokens;
    }
    to += tokens;
  }
  return {};
}

std::vector<std::int64_t> row_lengths(const DemonstrationBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < batch.prompts.rows(); ++row)
    lengths.push_back(batch.prompts.row_size(row) + batch.responses.row_size(row));
  return lengths;
}

}  // namespace rl
