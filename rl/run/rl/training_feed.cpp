#include "rl/run/rl/training_feed.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rl/agent/tool_host.h"
#include "rl/model/model_config.h"
#include "rl/run/reward_model_path.h"
#include "rl/run/rl/teachers.h"

namespace rl {

using runtime::Result;

EarlyDraws early_draws(const TrainerOptions& trainer) {
  return {.filters_groups = trainer.filter_groups.enabled,
          .has_rollout_workers = trainer.rollout_workers.has_value(),
          .is_partial = trainer.partial_rollouts.has_value()};
}

Result<PromptFeedOptions> training_feed_options(const Config& config, const TrainerOptions& trainer,
                                                const std::filesystem::path& model,
                                                std::int64_t workers) {
  const Result<ModelConfig> model_config = ModelConfig::load(model);
  if (!model_config.ok()) return model_config.status();
  PromptFeedOptions options{
      .model = model,
      .context = model_config->max_position_embeddings,
      .vocabulary = model_config->vocab_size,
      .batch_prompts = trainer.gen_batch_prompts,
      .batch_key = trainer.filter_groups.enabled ? "data.gen_batch_size" : "data.train_batch_size",
      .mini_batch_prompts = trainer.mini_batch_prompts,
      .workers = workers,
      .sampling_seed = trainer.seed,
      .shuffle = trainer.shuffle,
      .shuffle_seed = trainer.shuffle_seed,
      .with_prompts = !reward_models(config).empty()};
  if (trainer.distills) {
    const Result<std::vector<NamedTeacher>> teachers = teachers_from_config(config);
    if (!teachers.ok()) return teachers.status();
    const Result<std::string> column = config.get_string("distillation.teacher_key");
    if (!column.ok()) return column.status();
    options.teacher_column = *column;
    for (const NamedTeacher& teacher : *teachers) {
      if (!teacher.rows.empty()) options.teachers.push_back(teacher.rows);
    }
  }
  Result<RowOrderChoice> order = RowOrderChoice::from_config(config, early_draws(trainer));
  if (!order.ok()) return order.status();
  options.adaptive = std::move(order->adaptive);
  options.python_sampler = std::move(order->python_sampler);
  const Result<std::optional<AgentOptions>> agent = AgentOptions::from_config(config);
  if (!agent.ok()) return agent.status();
  if (!*agent) return options;
  Result<nlohmann::ordered_json> tools = tool_schemas(**agent);
  if (!tools.ok()) return tools.status();
  options.tools = std::move(*tools);
  options.conversations = true;
  options.whole_rows = (*agent)->custom();
  return options;
}

runtime::Status check_reward_rows(const RewardFunction& reward,
                                  std::span<const Dataset* const> datasets) {
  for (const Dataset* dataset : datasets) {
    const std::int64_t rows =
        dataset->in_memory() ? dataset->size() : std::min(dataset->size(), kRowsCheckedMax);
    for (std::int64_t index = 0; index < rows; ++index) {
      const Result<DataRow> row = dataset->read(index);
      if (!row.ok()) return row.status();
      const runtime::Status status =
          reward.check_row({.data_source = row->data_source,
                            .response = {},
                            .ground_truth = row->ground_truth,
                            .extra_info = {},
                            .where = row->where,
                            .prompt = row->prompt.dump(),
                            .has_ground_truth = row->answerless.empty(),
                            .ground_truth_is_json = row->ground_truth_is_json});
      if (!status.ok()) return status.with_context(row->where);
    }
  }
  return {};
}

}  // namespace rl
