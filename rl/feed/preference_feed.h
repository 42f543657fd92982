// PreferenceFeed: from rows of data to each worker's pairs or single responses. Lives with the
// controller.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "rl/batch/preference_batch.h"
#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/data/preference_builder.h"
#include "rl/data/row_feed.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// The rows of one split as preferences. Errors: as dataset_options(); kInvalidArgument:
/// data.conversations. Nothing for a validation that there are no data for.
runtime::Result<std::optional<DatasetOptions>> preference_dataset(const Config& config, Split split,
                                                                  PreferenceForm form);

struct PreferenceFeedOptions {
  std::filesystem::path model;  // whose tokenizer and chat template to use
  std::int64_t context = 0;     // the model's, in tokens; 0: unknown
  std::int64_t vocabulary = 0;  // the model\'s entries; 0: unknown
  PreferenceForm form = PreferenceForm::kPairs;
  std::int64_t batch_rows = 1;
  std::int64_t workers = 1;
  bool shuffle = true;
  std::uint64_t shuffle_seed = 0;
};

/// One step's rows, cut evenly over the workers.
struct PreferenceStep {
  std::vector<PreferenceBatch> batches;  // [workers]
  std::int64_t tokens = 0;               // of all workers
  std::int64_t rows = 0;                 // pairs, or single responses
  std::int64_t wanted = 0;               // of single responses
};

/// Reads, orders and encodes rows. Of single responses each gets the response before it in the step
/// that answers another prompt, whichever worker has that: what the divergence is estimated from
/// does not depend on how many workers there are. Its position is saved with checkpoints. Not
/// thread-safe; stays where it is made.
class PreferenceFeed {
 public:
  /// Every row of a data set of up to kRowsCheckedMax rows is encoded once here, so that one that
  /// is wrong is found before the first step. Errors: those of Dataset::load, Tokenizer::load,
  /// PreferenceBuilder; kInvalidArgument: fewer rows than a batch, sequences longer than the
  /// model's context.
  static runtime::Result<std::unique_ptr<PreferenceFeed>> create(
      const Config& config, const DatasetOptions& dataset, const PreferenceFeedOptions& options);

  PreferenceFeed(const PreferenceFeed&) = delete;
  PreferenceFeed& operator=(const PreferenceFeed&) = delete;

  runtime::Result<PreferenceStep> next();

  /// All rows in order, in steps of so many, for validation.
  runtime::Result<std::vector<PreferenceStep>> all(std::int64_t step_rows) const;

  /// The first row for people: prompt, responses and what is said of them; all of them end with the
  /// sequence's last token. Errors: as next().
  runtime::Result<std::string> first_row() const;

  /// How many rows, which epoch, and where in it.
  RowFeed& rows() { return *rows_; }
  const RowFeed& rows() const { return *rows_; }

  static constexpr std::int64_t kRowsCheckedMax = 10'000;

 private:
  PreferenceFeed(const PreferenceFeedOptions& options, Tokenizer tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}
  runtime::Result<PreferenceStep> make(const std::vector<std::int64_t>& rows) const;
  runtime::Result<PreferenceTokens> tokens(std::int64_t row) const;
  std::vector<PreferenceBatch> shard_singles(const std::vector<PreferenceTokens>& rows) const;

  PreferenceFeedOptions options_;
  std::int64_t tokens_max_ = 0;
  Tokenizer tokenizer_;
  std::optional<PreferenceBuilder> builder_;
  std::optional<RowFeed> rows_;
};

}  // namespace rl
