// SupervisedFeed: from rows of data to the sequences of each worker. Lives with the controller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/supervised_batch.h"
#include "rl/config/config.h"
#include "rl/data/conversation_builder.h"
#include "rl/data/dataset.h"
#include "rl/data/row_feed.h"
#include "rl/feed/encoded_rows.h"
#include "rl/feed/row_lengths.h"
#include "runtime/core/result.h"

namespace rl {

/// The rows of one split as `starling sft` reads them: conversations (data.messages_key), or
/// prompts with responses. Errors: as dataset_options(); nothing for a validation that there are no
/// data for.
runtime::Result<std::optional<DatasetOptions>> supervised_dataset(const Config& config,
                                                                  Split split);

/// One step's rows, cut evenly over the workers.
struct SupervisedStep {
  std::vector<SupervisedBatch> batches;  // [workers]
  std::int64_t tokens = 0;               // of all workers
  std::int64_t learned_tokens = 0;
  RowLeaves leaves = {};
};

/// Reads, orders and encodes rows. Its position is saved with checkpoints. Not thread-safe.
class SupervisedFeed {
 public:
  /// Errors: those of EncodedRows::create.
  static runtime::Result<std::unique_ptr<SupervisedFeed>> create(const Config& config,
                                                                 const DatasetOptions& dataset,
                                                                 const EncodedRowsOptions& options);

  /// kInvalidArgument: no token of the rows is to be learned; those of ConversationBuilder.
  runtime::Result<SupervisedStep> next();

  /// All rows in order, in steps of N, for validation.
  runtime::Result<std::vector<SupervisedStep>> all(std::int64_t step_rows) const;

  /// The first row for people: the sequence as the model reads it, and which tokens are learned.
  /// Errors: as next().
  runtime::Result<std::string> first_row() const;

  /// What the chat template leaves out of the conversations, with the first row of each field that
  /// it does not write. Looks at some of the rows.
  std::vector<std::string> unwritten_fields() const;

  /// Of the rows that were encoded at the beginning.
  RowLengths row_lengths() const;

  /// The feed of rows: their number, the epoch, and the position in it.
  RowFeed& rows() { return rows_->rows(); }
  const RowFeed& rows() const { return std::as_const(*rows_).rows(); }

  const Tokenizer& tokenizer() const { return rows_->tokenizer(); }

 private:
  using Rows = EncodedRows<ConversationBuilder, LearnedTokens>;

  explicit SupervisedFeed(std::unique_ptr<Rows> rows) : rows_(std::move(rows)) {}
  SupervisedStep make(const std::vector<LearnedTokens>& rows) const;

  std::unique_ptr<Rows> rows_;
};

}  // namespace rl
