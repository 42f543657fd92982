// The data that a run reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "rl/config/config.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/prompt_feed.h"
#include "rl/run/rl/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

/// What a warm start learns, for a run whose training data are read so. Errors: those of
/// dataset_options() and PromptFeed::create.
runtime::Result<std::unique_ptr<PromptFeed>> open_demonstrations(const Config& config,
                                                                 const TrainerOptions& options,
                                                                 const PromptFeedOptions& training);
/// The warnings that matter to demonstrations.
DataWarningOptions demonstration_warnings(const Config& config, const Tokenizer& tokenizer);

struct RunFeeds {
  PromptFeedOptions options = {};  // of the training data
  std::unique_ptr<PromptFeed> training = nullptr;
  std::unique_ptr<PromptFeed> demonstrations = nullptr;  // null without a warm start
  std::unique_ptr<PromptFeed> validation = nullptr;      // null without validation data
  std::set<std::string> warnings = {};                   // on data, each logged once

  /// The training data, with warnings of what is probably meant otherwise. For N workers.
  static runtime::Result<RunFeeds> open(const Config& config, const TrainerOptions& options,
                                        const std::filesystem::path& model, std::int64_t workers);

  /// Demonstrations and validation data, where there are to be some, with the same warnings.
  runtime::Status open_others(const Config& config, const TrainerOptions& run);
};

/// What the reward workers would find wrong with the first answers, as far as it is known without
/// loading what scores. `config`: with reward models as paths.
runtime::Status check_rewards(const Config& config, const RunFeeds& feeds);

}  // namespace rl
