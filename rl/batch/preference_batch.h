// The input of preference workers: prompts with two responses each. A value; travels between
// actors.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/data/preference_builder.h"
#include "rl/model/packed_batch.h"
#include "runtime/core/status.h"

namespace rl {

/// Pairs, or single responses. Responses are never empty rows.
struct PreferenceBatch {
  Ragged<std::int32_t> prompts;
  Ragged<std::int32_t> responses;  // the chosen ones, or the single ones
  Ragged<std::int32_t> others;  // the rejected ones; of single responses one that answers another
                                // prompt, from which the divergence is estimated
  std::vector<double> margins;  // of pairs, else empty
  std::vector<std::uint8_t> wanted;  // of single responses, else empty: 1 for the wanted ones

  std::int64_t rows() const { return prompts.rows(); }
  bool is_pairs() const { return wanted.empty(); }
  std::int64_t wanted_count() const;
  std::int64_t tokens() const;  // of all sequences, prompts counted with each

  void append_pair(const PreferenceTokens& pair);
  /// `other` answers another prompt.
  void append_single(std::span<const std::int32_t> prompt, std::span<const std::int32_t> response,
                     bool wanted, std::span<const std::int32_t> other);

  /// kInvalidArgument: sizes that do not fit together, an empty prompt or response.
  runtime::Status validate() const;

  auto fields() { return std::tie(prompts, responses, others, margins, wanted); }
  bool operator==(const PreferenceBatch&) const = default;
};

/// The passes over a worker's rows, as many on every worker; none: one pass over all of them.
struct PreferencePasses {
  std::vector<MicroBatch> rows;            // that are learned
  std::vector<MicroBatch> responses;       // scored without learning
  std::vector<MicroBatch> others;          // likewise
  std::vector<GradientRound> rounds = {};  // what `rows` are of; none: of one leaf a worker

  auto fields() { return std::tie(rows, responses, others, rounds); }
  bool operator==(const PreferencePasses&) const = default;
};

/// Of every worker, within its limits; a pair counts as one row. `pairs`: what the batches have,
/// which an empty one does not say.
std::vector<PreferencePasses> plan_preferences(std::span<const PreferenceBatch> batches, bool pairs,
                                               std::span<const MicroBatchLimits> limits,
                                               const RowLeaves& leaves = {});

/// Those rows of prompts, each followed by its row of `responses`, whose tokens are the
/// targets.
PackedBatch pack_responses(const Ragged<std::int32_t>& prompts,
                           const Ragged<std::int32_t>& responses, const MicroBatch& rows);

/// The same for both responses of each row: response, other, response, other.
PackedBatch pack_both(const PreferenceBatch& batch, const MicroBatch& rows);

}  // namespace rl
