// PromptFeed: from rows of data to what the workers of one step need. Lives with the controller;
// what it makes is put into the object store and handled by reference from there on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "rl/batch/balance.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/config/config.h"
#include "rl/data/adaptive_order.h"
#include "rl/data/dataset.h"
#include "rl/data/prompt_builder.h"
#include "rl/data/python_sampler.h"
#include "rl/data/row_feed.h"
#include "rl/feed/row_lengths.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// The prompts of one step, cut into one share per worker.
struct StepPrompts {
  std::vector<PromptShard> shards;             // which prompt of the step went where
  std::vector<PromptBatch> batches;            // [workers]
  std::vector<std::vector<RewardTask>> tasks;  // [workers][prompts of the worker]
  std::int64_t epoch = 0;
  std::vector<std::int64_t> rows = {};  // [prompts of the step]: of the data set
};

/// One step's demonstrations.
struct DemonstrationStep {
  std::vector<DemonstrationBatch> batches;  // [workers]
  RowLeaves leaves = {};
};

struct PromptFeedOptions {
  std::filesystem::path model;  // whose tokenizer and chat template to use
  std::int64_t context = 0;     // the model's, in tokens: prompt and response together; 0: unknown
  std::int64_t vocabulary = 0;  // the model's entries; 0: unknown
  std::int64_t batch_prompts = 1;
  std::string batch_key = "data.train_batch_size";  // what sets batch_prompts, for messages
  std::int64_t mini_batch_prompts = 1;
  std::int64_t workers = 1;
  std::int64_t leaves = 0;          // of demonstrations; see deal_rows()
  std::uint64_t sampling_seed = 0;  // of the responses
  bool shuffle = true;
  std::uint64_t shuffle_seed = 0;
  std::optional<AdaptiveOrderOptions> adaptive =
      {};                                  // a curriculum by difficulty, in place of shuffling
  PythonSampler python_sampler = {};       // a class that says which rows come
  nlohmann::ordered_json tools = nullptr;  // schemas of the tools that prompts tell of
  bool conversations = false;              // PromptBatch::contexts, for several turns
  bool whole_rows = false;                 // and all of the row in them, for custom agent loops
  bool with_prompts = false;               // RewardTask::prompt, for a reward model
  std::string teacher_column =
      "data_source";  // with several teachers: what says which of them a row is for
  std::vector<std::string> teachers =
      {};  // NamedTeacher::rows of each; empty: there is one or none, and rows need not say
  bool demonstrations =
      false;  // next_demonstrations() is what is asked for: responses count as well as prompts
};

/// What PromptBatch::contexts has of a row: its messages, the loop that it asks for (agent_name),
/// and what its `extra_info` says to tools and users. The latter is tools_kwargs,
/// interaction_kwargs and tool_selection. With `whole` the row itself besides, by verl's names:
/// data_source, reward_model, extra_info, index.
std::string conversation_context(const DataRow& row, bool whole = false);

/// Reads, orders, renders and encodes prompts. Its position is saved with checkpoints. Not
/// thread-safe; stays where it is made.
class PromptFeed {
 public:
  /// `dataset` says which rows. Every prompt of a data set of up to kRowsCheckedMax rows is encoded
  /// once here. So one that is too long is found before the first step. Errors: those of
  /// Dataset::load, Tokenizer::load, PromptBuilder; kInvalidArgument: fewer rows than a batch, a
  /// row for no teacher.
  static runtime::Result<std::unique_ptr<PromptFeed>> create(const Config& config,
                                                             const DatasetOptions& dataset,
                                                             const PromptFeedOptions& options);

  PromptFeed(const PromptFeed&) = delete;
  PromptFeed& operator=(const PromptFeed&) = delete;

  /// The prompts of `step`, or of one more `round` of generation for it; both seed their samples.
  /// Errors: those of PromptBuilder::ids, with the row.
  runtime::Result<StepPrompts> next(std::int64_t step, std::int64_t round = 0);

  /// The same as next() for these rows of the data set; the position stays.
  runtime::Result<StepPrompts> of_rows(const std::vector<std::int64_t>& rows,
                                       std::int64_t step) const;

  /// All rows in order, in batches like next()'s, for validation; seeds do not depend on a step.
  runtime::Result<std::vector<StepPrompts>> all() const;

  /// The next rows with their demonstrations, cut evenly over the workers. kInvalidArgument: a row
  /// without one, or with a token that the model has no embedding for.
  runtime::Result<DemonstrationStep> next_demonstrations();

  /// What the chat template leaves out of the prompts, with the first row of each field that it
  /// does not write. Looks at some of the rows.
  std::vector<std::string> unwritten_fields() const;

  const Dataset& dataset() const { return rows_->dataset(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  std::int64_t rows() const { return rows_->rows(); }
  std::int64_t rows_dropped() const { return dropped_; }  // over the length limit
  /// Of demonstrations, with their prompts: those that were encoded at the beginning.
  const RowLengths& demonstration_lengths() const { return lengths_; }
  std::int64_t batches_per_epoch() const { return rows_->batches_per_epoch(); }

  /// What came of the rows of the last next(), for orders that follow it; see RowOrder.
  bool learns() const { return rows_->learns(); }
  runtime::Status learn(std::span<const RowOutcome> outcomes) { return rows_->learn(outcomes); }

  nlohmann::json position() const { return rows_->position(); }
  /// Continues at a saved position. kInvalidArgument: it belongs to other data.
  runtime::Status resume(const nlohmann::json& position) { return rows_->resume(position); }

 private:
  PromptFeed(const PromptFeedOptions& options, Tokenizer tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}
  runtime::Result<StepPrompts> make(const std::vector<std::int64_t>& rows, std::uint64_t step,
                                    std::int64_t first = 0) const;
  runtime::Result<std::string> teacher_of(const DataRow& row) const;
  runtime::Result<std::vector<std::int32_t>> demonstration_ids(const DataRow& row) const;
  DealtRows deal_demonstrations() const;

  PromptFeedOptions options_;
  Tokenizer tokenizer_;
  std::optional<PromptBuilder> builder_;
  std::int64_t dropped_ = 0;
  RowLengths lengths_;  // of demonstrations
  std::optional<RowFeed> rows_;
};

}  // namespace rl
