// The input of supervised workers: sequences of which some tokens are to be learned. A value;
// travels between actors.
#pragma once

#include <cstdint>
#include <tuple>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/data/conversation_builder.h"
#include "rl/model/packed_batch.h"
#include "runtime/core/status.h"

namespace rl {

struct SupervisedBatch {
  Ragged<std::int32_t> ids;
  Ragged<std::uint8_t> learned;  // of the same sizes: 1 where the token is to be learned, never at
                                 // the first of a sequence

  std::int64_t rows() const { return ids.rows(); }
  void append(const LearnedTokens& row);

  /// The number of learned tokens of all rows.
  std::int64_t learned_tokens() const;

  /// kInvalidArgument: sizes that do not fit together, a first token that is to be learned.
  runtime::Status validate() const;

  auto fields() { return std::tie(ids, learned); }
  bool operator==(const SupervisedBatch&) const = default;
};

/// Those sequences end to end; the targets are the tokens to learn.
PackedBatch pack_supervised(const SupervisedBatch& batch, const MicroBatch& rows);

/// Of each sequence: what micro-batches are planned by.
std::vector<std::int64_t> sequence_lengths(const SupervisedBatch& batch);

}  // namespace rl
