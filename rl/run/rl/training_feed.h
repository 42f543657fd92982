// The feed of training prompts, for a run and for its dry run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/feed/prompt_feed.h"
#include "rl/feed/row_order_choice.h"
#include "rl/reward/reward_function.h"
#include "rl/run/rl/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

EarlyDraws early_draws(const TrainerOptions& trainer);

/// Of a model folder or file that is here, for N workers. Errors: those of ModelConfig::load,
/// RowOrderChoice, AgentOptions, tool_schemas() and teachers_from_config().
runtime::Result<PromptFeedOptions> training_feed_options(const Config& config,
                                                         const TrainerOptions& trainer,
                                                         const std::filesystem::path& model,
                                                         std::int64_t workers);

/// That a reward can judge the rows of these data sets: all of those in memory, of others the first
/// kRowsCheckedMax. Errors: those of RewardFunction::check_row, with the row.
runtime::Status check_reward_rows(const RewardFunction& reward,
                                  std::span<const Dataset* const> datasets);

}  // namespace rl
