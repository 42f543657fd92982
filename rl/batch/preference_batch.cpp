#include "rl/batch/preference_batch.h"

#include <algorithm>

namespace rl {
namespace {

void append_sequence(PackedBatch& packed, std::span<const std::int32_t> prompt,
                     std::span<const std::int32_t> response) {
  std::vector<std::int32_t> sequence(prompt.begin(), prompt.end());
  sequence.insert(sequence.end(), response.begin(), response.end());
  packed.append(sequence, static_cast<std::int64_t>(prompt.size()));
}

// Tokens of each row as pack_responses() packs it.
std::vector<std::int64_t> lengths_with(const Ragged<std::int32_t>& prompts,
                                       const Ragged<std::int32_t>& responses) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < prompts.rows(); ++row)
    lengths.push_back(prompts.row_size(row) + responses.row_size(row));
  return lengths;
}

}  // namespace

std::int64_t PreferenceBatch::wanted_count() const {
  return std::count(wanted.begin(), wanted.end(), 1);
}

std::int64_t PreferenceBatch::tokens() const {
  return static_cast<std::int64_t>(2 * prompts.values.size() + responses.values.size() +
                                   others.values.size());
}

void PreferenceBatch::append_pair(const PreferenceTokens& pair) {
  prompts.append(pair.prompt);
  responses.append(pair.chosen);
  others.append(pair.rejected);
  margins.push_back(pair.margin);
}

void PreferenceBatch::append_single(std::span<const std::int32_t> prompt,
                                    std::span<const std::int32_t> response, bool is_wanted,
                                    std::span<const std::int32_t> other) {
  prompts.append(prompt);
  responses.append(response);
  others.append(other);
  wanted.push_back(is_wanted ? 1 : 0);
}

runtime::Status PreferenceBatch::validate() const {
  const auto count = static_cast<std::size_t>(prompts.consistent() ? rows() : 0);
  const bool fit = prompts.consistent() && responses.consistent() && others.consistent() &&
                   responses.rows() == rows() && others.rows() == rows();
  if (!fit || margins.size() + wanted.size() != count || (!margins.empty() && !wanted.empty()))
    return runtime::invalid_argument("a batch of preferences whose sizes do not fit together");
  for (std::int64_t row = 0; row < rows(); ++row) {
    if (prompts.row_size(row) == 0 || responses.row_size(row) == 0 || others.row_size(row) == 0)
      return runtime::invalid_argument("a batch of preferences with an empty prompt or response");
  }
  return {};
}

PackedBatch pack_responses(const Ragged<std::int32_t>& prompts,
                           const Ragged<std::int32_t>& responses, const MicroBatch& rows) {
  PackedBatch packed;
  for (std::int64_t row = rows.first; row < rows.last; ++row)
    append_sequence(packed, prompts.row(row), responses.row(row));
  return packed;
}

PackedBatch pack_both(const PreferenceBatch& batch, const MicroBatch& rows) {
  PackedBatch packed;
  for (std::int64_t row = rows.first; row < rows.last; ++row) {
    append_sequence(packed, batch.prompts.row(row), batch.responses.row(row));
    append_sequence(packed, batch.prompts.row(row), batch.others.row(row));
  }
  return packed;
}

std::vector<PreferencePasses> plan_preferences(std::span<const PreferenceBatch> batches, bool pairs,
                                               std::span<const MicroBatchLimits> limits,
                                               const RowLeaves& leaves) {
  std::vector<std::vector<std::int64_t>> responses, others, rows;
  for (const PreferenceBatch& batch : batches) {
    responses.push_back(lengths_with(batch.prompts, batch.responses));
    others.push_back(lengths_with(batch.prompts, batch.others));
    rows.push_back(responses.back());
    for (std::size_t row = 0; pairs && row < rows.back().size(); ++row)
      rows.back()[row] += others.back()[row];
  }
  std::vector<LearningPasses> learned = plan_learning(rows, limits, leaves);
  const auto response_rounds = plan_rounds(responses, limits);
  const auto other_rounds = plan_rounds(others, limits);
  std::vector<PreferencePasses> passes;
  for (std::size_t w = 0; w < batches.size(); ++w)
    passes.push_back({std::move(learned[w].micro_batches), response_rounds[w], other_rounds[w],
                      std::move(learned[w].rounds)});
  return passes;
}

}  // namespace rl
