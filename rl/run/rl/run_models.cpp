#include "rl/run/rl/run_models.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rl/model/model_config.h"
#include "rl/optim/learner.h"
#include "rl/run/reward_model_path.h"
#include "rl/run/teacher_vocabulary.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

Result<fs::path> find_critic(const Config& config, const TrainerOptions& options,
                             const fs::path& policy) {
  if (!options.uses_critic() || options.critic_model.empty()) return policy;
  Result<fs::path> critic = resolve_model(config, "critic.model.path", options.seed);
  if (!critic.ok()) return critic;
  if (const Status reads = check_reads_vocabulary(policy, *critic, "critic"); !reads.ok())
    return reads.with_context("critic.model.path");
  return critic;
}

Status check_teacher(const fs::path& policy, const NamedTeacher& named, const fs::path& model,
                     std::int64_t longest) {
  if (const Status same = check_same_vocabulary(policy, model); !same.ok())
    return same.with_context(named.model_key);
  const Result<ModelConfig> teacher = ModelConfig::load(model);
  if (!teacher.ok()) return teacher.status().with_context(named.model_key);
  if (teacher->max_position_embeddings >= longest) return {};
  return runtime::invalid_argument(named.model_key + ": " + model.string() + " reads at most " +
                                   std::to_string(teacher->max_position_embeddings) +
                                   " tokens, and samples have up to " + std::to_string(longest) +
                                   ": lower data.max_prompt_length or data.max_response_length");
}

// What makes a teacher unfit is found before workers start.
Result<std::vector<Teacher>> find_teachers(const Config& config, const TrainerOptions& options,
                                           const fs::path& policy, std::int64_t positions_max) {
  std::vector<Teacher> teachers;
  if (!options.distills) return teachers;
  const Result<std::vector<NamedTeacher>> named = teachers_from_config(config);
  if (!named.ok()) return named.status();
  const Result<ModelConfig> student = ModelConfig::load(policy);
  if (!student.ok()) return student.status();
  const std::int64_t longest = std::min(positions_max, student->max_position_embeddings);
  for (const NamedTeacher& one : *named) {
    Result<fs::path> model = resolve_model(config, one.model_key, options.seed);
    if (!model.ok()) return model.status();
    if (const Status fits = check_teacher(policy, one, *model, longest); !fits.ok()) return fits;
    teachers.push_back({.named = one, .model = std::move(*model)});
  }
  return teachers;
}

}  // namespace

Result<RunModels> RunModels::find(const Config& config, const TrainerOptions& options,
                                  const PolicyOptions& policy) {
  Result<fs::path> model = resolve_model(config, "actor_rollout_ref.model.path", options.seed);
  if (!model.ok()) return model.status();
  Result<ModelIdentity> identity =
      identify_model(config.get_string("actor_rollout_ref.model.path").value_or(""), *model);
  if (!identity.ok()) return identity.status();
  identity->adapter = policy.adapter.has_value();
  Result<fs::path> critic = find_critic(config, options, *model);
  if (!critic.ok()) return critic.status();
  std::optional<fs::path> adapter;
  if (policy.adapter) {
    const fs::path& folder = policy.adapter->folder;
    adapter = folder.empty() ? folder : fs::absolute(folder);
  }
  Result<std::vector<Teacher>> teachers =
      find_teachers(config, options, *model, policy.positions_max);
  if (!teachers.ok()) return teachers.status();
  Result<Config> reward_config = with_reward_models_found(config);
  if (!reward_config.ok()) return reward_config.status();
  return RunModels{.policy = std::move(*model),
                   .identity = std::move(*identity),
                   .critic = std::move(*critic),
                   .adapter = std::move(adapter),
                   .teachers = std::move(*teachers),
                   .reward_config = std::move(*reward_config)};
}

}  // namespace rl
