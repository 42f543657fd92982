// PreferenceFeed: from rows of data to each worker's pairs or single responses. Lives with the
// controller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/preference_batch.h"
#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/preference_builder.h"
#include "rl/data/row_feed.h"
#include "rl/feed/encoded_rows.h"
#include "rl/feed/row_lengths.h"
#include "runtime/core/result.h"

namespace rl {

/// The rows of one split as preferences. Errors: as dataset_options(); kInvalidArgument:
/// data.conversations. Nothing for a validation that there are no data for.
runtime::Result<std::optional<DatasetOptions>> preference_dataset(const Config& config, Split split,
                                                                  PreferenceForm form);

/// One step's rows, cut evenly over the workers.
struct PreferenceStep {
  std::vector<PreferenceBatch> batches;  // [workers]
  std::int64_t tokens = 0;               // of all workers
  std::int64_t rows = 0;                 // pairs, or single responses
  std::int64_t wanted = 0;               // of single responses
  RowLeaves leaves = {};
};

/// Reads, orders and encodes rows. Of single responses each gets the response before it in the step
/// that answers another prompt, whichever worker has that. What the divergence is estimated from
/// does not depend on how many workers there are. Its position is saved with checkpoints. Not
/// thread-safe.
class PreferenceFeed {
 public:
  /// Errors: those of EncodedRows::create.
  static runtime::Result<std::unique_ptr<PreferenceFeed>> create(const Config& config,
                                                                 const DatasetOptions& dataset,
                                                                 PreferenceForm form,
                                                                 const EncodedRowsOptions& options);

  runtime::Result<PreferenceStep> next();

  /// All rows in order, in steps of N, for validation.
  runtime::Result<std::vector<PreferenceStep>> all(std::int64_t step_rows) const;

  /// The first row for people: prompt, responses and what is said of them; all of them end with the
  /// sequence's last token. Errors: as next().
  runtime::Result<std::string> first_row() const;

  /// What the chat template leaves out of the messages, with the first row of each field that it
  /// does not write. Looks at some of the rows.
  std::vector<std::string> unwritten_fields() const;

  /// Of the rows that were encoded at the beginning. `shares_prompts`: a pass computes the prompt
  /// of a pair once.
  RowLengths row_lengths(bool shares_prompts) const;

  /// The feed of rows: their number, the epoch, and the position in it.
  RowFeed& rows() { return rows_->rows(); }
  const RowFeed& rows() const { return std::as_const(*rows_).rows(); }

  const Tokenizer& tokenizer() const { return rows_->tokenizer(); }

 private:
  using Rows = EncodedRows<PreferenceBuilder, PreferenceTokens>;

  PreferenceFeed(PreferenceForm form, std::int64_t tokens_max, std::unique_ptr<Rows> rows)
      : form_(form), tokens_max_(tokens_max), rows_(std::move(rows)) {}
  PreferenceStep make(const std::vector<PreferenceTokens>& rows) const;
  void add_singles(const std::vector<PreferenceTokens>& rows, PreferenceStep& step) const;

  PreferenceForm form_;
  std::int64_t tokens_max_;
  std::unique_ptr<Rows> rows_;
};

}  // namespace rl
