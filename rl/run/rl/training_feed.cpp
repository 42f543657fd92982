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
                            .has_ground_truth = row->answerless.empty()});
      if (!status.ok()) return status.with_context(row->where);
    }
  }
  return {};
}

namespace {

/// Whether what scores is given ground truths as they are, and may do without.
bool asks_no_rule(const Config& config) {
  for (const char* key : {"reward.custom_reward_function.path", "reward.http.url",
                          "reward.shared_library.path", "reward.mixture"}) {
    const nlohmann::ordered_json* value = config.find(key);
    if (value != nullptr && !value->is_null()) return true;
  }
  return false;
}

bool has_template(const Config& config, const Tokenizer& tokenizer) {
  const auto custom = config.find_string("actor_rollout_ref.model.custom_chat_template");
  return !tokenizer.chat_template_source().empty() || (custom.ok() && *custom);
}

}  // namespace

std::vector<std::string> data_warnings(const Config& config, const PromptFeed& feed) {
  const bool judged = asks_no_rule(config);
  const bool templated =
      has_template(config, feed.tokenizer()) && !config.is_set("data.prompt_form");
  std::string answerless, plain;
  const std::int64_t rows = std::min(feed.dataset().size(), kRowsCheckedMax);
  for (std::int64_t index = 0; index < rows; ++index) {
    const Result<DataRow> row = feed.dataset().read(index);
    if (!row.ok()) break;  // for others to say
    if (judged && answerless.empty() && !row->answerless.empty())
      answerless = row->where + ": no answer: it has " + row->answerless +
                   ", and none of reward_model.ground_truth, ground_truth, answer, solution and "
                   "target; the reward gets None for it. data.columns.answer names another column";
    if (templated && plain.empty() && !row->is_chat())
      plain =
          row->where +
          ": the prompt is plain text, which does not go through the model's chat template; "
          "data.prompt_form=chat makes it a user's message, data.prompt_form=plain says that it "
          "is meant so";
  }
  std::vector<std::string> warnings;
  for (std::string* warning : {&answerless, &plain}) {
    if (!warning->empty()) warnings.push_back(std::move(*warning));
  }
  return warnings;
}

}  // namespace rl
