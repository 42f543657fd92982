// SupervisedFeed: from rows of data to the sequences of each worker. Lives with the controller.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rl/batch/supervised_batch.h"
#include "rl/config/config.h"
#include "rl/data/conversation_builder.h"
#include "rl/data/dataset.h"
#include "rl/data/row_feed.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// The rows of one split as `starling sft` reads them: conversations (data.messages_key), or
/// prompts with responses. Errors: as dataset_options(); nothing for a validation that there are no
/// data for.
runtime::Result<std::optional<DatasetOptions>> supervised_dataset(const Config& config,
                                                                  Split split);

/// From `data.*` and `model.custom_chat_template`.
runtime::Result<ConversationOptions> conversation_options(const Config& config);

struct SupervisedFeedOptions {
  std::filesystem::path model = {};  // whose tokenizer and chat template to use
  std::int64_t context = 0;          // the model's, in tokens; 0: unknown
  std::int64_t vocabulary = 0;       // the model\'s entries; 0: unknown
  std::int64_t batch_rows = 1;
  std::int64_t workers = 1;
  bool shuffle = true;
  std::uint64_t shuffle_seed = 0;
};

/// One step's rows, cut evenly over the workers.
struct SupervisedStep {
  std::vector<SupervisedBatch> batches;  // [workers]
  std::int64_t tokens = 0;               // of all workers
  std::int64_t learned_tokens = 0;
};

/// Reads, orders and encodes rows. Its position is saved with checkpoints. Not thread-safe; stays
/// where it is made.
class SupervisedFeed {
 public:
  /// Every row of a data set of up to kRowsCheckedMax rows is encoded once here, so that one that
  /// is wrong is found before the first step. Errors: those of Dataset::load, Tokenizer::load,
  /// ConversationBuilder; kInvalidArgument: fewer rows than a batch, a sequence longer than the
  /// model's context.
  static runtime::Result<std::unique_ptr<SupervisedFeed>> create(
      const Config& config, const DatasetOptions& dataset, const SupervisedFeedOptions& options);

  SupervisedFeed(const SupervisedFeed&) = delete;
  SupervisedFeed& operator=(const SupervisedFeed&) = delete;

  /// kInvalidArgument: of the rows drawn no token is to be learned; those of ConversationBuilder.
  runtime::Result<SupervisedStep> next();

  /// All rows in order, in steps of so many, for validation.
  runtime::Result<std::vector<SupervisedStep>> all(std::int64_t step_rows) const;

  /// The first row for people: the sequence as the model reads it, and which tokens are learned.
  /// Errors: as next().
  runtime::Result<std::string> first_row() const;

  /// How many rows, which epoch, and where in it.
  RowFeed& rows() { return *rows_; }
  const RowFeed& rows() const { return *rows_; }

  static constexpr std::int64_t kRowsCheckedMax = 10'000;

 private:
  SupervisedFeed(const SupervisedFeedOptions& options, Tokenizer tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}
  runtime::Result<SupervisedStep> make(const std::vector<std::int64_t>& rows) const;
  runtime::Result<LearnedTokens> tokens(std::int64_t row) const;

  SupervisedFeedOptions options_;
  Tokenizer tokenizer_;
  std::optional<ConversationBuilder> builder_;
  std::optional<RowFeed> rows_;
};

}  // namespace rl
