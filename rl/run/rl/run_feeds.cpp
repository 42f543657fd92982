#include "rl/run/rl/run_feeds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/reward/reward_function.h"
#include "rl/run/rl/training_feed.h"
#include "rl/worker/reward_model.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of other data than the training's: in their order, for no teacher.
PromptFeedOptions plain(PromptFeedOptions options) {
  options.teachers.clear();
  options.adaptive.reset();
  options.python_sampler = {};
  return options;
}

}  // namespace

Result<std::unique_ptr<PromptFeed>> open_demonstrations(const Config& config,
                                                        const TrainerOptions& options,
                                                        const PromptFeedOptions& training) {
  const Result<std::optional<DatasetOptions>> demonstrations =
      dataset_options(config, Split::kDemonstrations);
  if (!demonstrations.ok()) return demonstrations.status();
  PromptFeedOptions warm_options = plain(training);
  warm_options.batch_prompts = warm_options.mini_batch_prompts = options.warm_start.batch_rows;
  warm_options.batch_key = "sft.train_batch_size";
  warm_options.demonstrations = true;
  warm_options.leaves = options.gradient_leaves;
  auto feed = PromptFeed::create(config, **demonstrations, warm_options);
  if (!feed.ok()) return feed.status().with_context("warm start");
  return feed;
}

DataWarningOptions demonstration_warnings(const Config& config, const Tokenizer& tokenizer) {
  DataWarningOptions options = DataWarningOptions::of_prompts(config, tokenizer);
  options.answers = false;  // nothing scores them
  return options;
}

namespace {

// Null: there are none.
Result<std::unique_ptr<PromptFeed>> open_validation(const Config& config,
                                                    const PromptFeedOptions& training) {
  const Result<std::optional<DatasetOptions>> validation =
      dataset_options(config, Split::kValidation);
  if (!validation.ok()) return validation.status();
  if (!*validation) return std::unique_ptr<PromptFeed>();
  const Result<std::optional<std::int64_t>> batch = config.find_int("data.val_batch_size");
  if (!batch.ok()) return batch.status();
  Result<Dataset> rows = Dataset::load(**validation);
  if (!rows.ok()) return rows.status();
  const std::int64_t at_a_time = batch->value_or(-1);
  PromptFeedOptions feed_options = plain(training);
  feed_options.batch_prompts = at_a_time < 1 ? rows->size() : std::min(at_a_time, rows->size());
  feed_options.mini_batch_prompts = feed_options.batch_prompts;
  feed_options.shuffle = false;
  auto feed = PromptFeed::create(config, **validation, feed_options);
  if (!feed.ok()) return feed.status().with_context("validation data");
  return feed;
}

// Those that `told` does not have yet.
void log_warnings(const PromptFeed& feed, const DataWarningOptions& options,
                  std::set<std::string>& told) {
  std::vector<std::string> all = data_warnings(feed.dataset(), options);
  add_warnings(feed.unwritten_fields(), all);
  for (const std::string& warning : all) {
    if (told.insert(warning).second) LOG(warn, "{}", warning);
  }
}

}  // namespace

Result<RunFeeds> RunFeeds::open(const Config& config, const TrainerOptions& options,
                                const std::filesystem::path& model, std::int64_t workers) {
  const Result<std::optional<DatasetOptions>> train = dataset_options(config, Split::kTrain);
  if (!train.ok()) return train.status();
  Result<PromptFeedOptions> feed_options = training_feed_options(config, options, model, workers);
  if (!feed_options.ok()) return feed_options.status();
  Result<std::unique_ptr<PromptFeed>> feed = PromptFeed::create(config, **train, *feed_options);
  if (!feed.ok()) return feed.status();
  if ((*feed)->rows_dropped() > 0)
    LOG(info, "left out {} prompts longer than data.max_prompt_length", (*feed)->rows_dropped());
  RunFeeds feeds{.options = std::move(*feed_options), .training = std::move(*feed)};
  log_warnings(*feeds.training, DataWarningOptions::of_prompts(config, feeds.training->tokenizer()),
               feeds.warnings);
  return feeds;
}

Status RunFeeds::open_others(const Config& config, const TrainerOptions& run) {
  if (run.warm_start.steps > 0) {
    auto feed = open_demonstrations(config, run, options);
    if (!feed.ok()) return feed.status();
    demonstrations = std::move(*feed);
    log_warnings(*demonstrations, demonstration_warnings(config, training->tokenizer()), warnings);
  }
  if (run.validation_interval < 1 && !run.validate_first) return {};
  auto feed = open_validation(config, options);
  if (!feed.ok()) return feed.status();
  validation = std::move(*feed);
  if (validation)
    log_warnings(*validation, DataWarningOptions::of_prompts(config, validation->tokenizer()),
                 warnings);
  return {};
}

Status check_rewards(const Config& config, const RunFeeds& feeds) {
  const Result<std::unique_ptr<RewardFunction>> reward =
      RewardFunction::from_config(config, /*workers=*/1, /*start=*/false, reward_model_loader({}));
  if (!reward.ok()) return reward.status();
  std::vector<const Dataset*> read;
  for (const PromptFeed* feed : {feeds.training.get(), feeds.validation.get()}) {
    if (feed != nullptr) read.push_back(&feed->dataset());
  }
  return check_reward_rows(**reward, read);
}

}  // namespace rl
