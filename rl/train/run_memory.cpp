#include "rl/train/run_memory.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/prompt_builder.h"
#include "rl/model/lora.h"
#include "rl/text/tokenizer.h"
#include "rl/train/reward_model_path.h"
#include "rl/train/teachers.h"
#include "rl/train/toy_model.h"
#include "rl/worker/reward_model.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of the reward role beside its processes: the models that score, each with a pass of its own. What
// is only on the hub is not known, and said.
std::vector<MemoryPart> reward_memory(const Config& config, std::int64_t share_tokens,
                                      std::int64_t longest, std::vector<std::string>& notes) {
  std::vector<MemoryPart> parts;
  for (const std::string& name : reward_models(config)) {
    const Result<ModelConfig> model = ModelConfig::load(name);
    if (!model.ok()) {
      notes.push_back("reward model " + name + ": not counted: " + model.status().message());
      continue;
    }
    const std::int64_t pass = std::min(share_tokens, std::max(kRewardModelPassTokens, longest));
    for (MemoryPart& part : scoring_memory(*model, {.trained_elements = -1,
                                                   .forward_tokens = pass,
                                                   .output_tokens = 0,
                                                   .sequences = 0,
                                                   .positions = longest}))
      parts.push_back(std::move(part));
  }
  return parts;
}

// Of a teacher, likewise.
std::vector<MemoryPart> teacher_memory(const std::string& model_name, const ModelConfig& student,
                                       const MemoryOptions& scoring,
                                       std::vector<std::string>& notes) {
  const Result<ModelConfig> model =
      model_name == kToyModelName ? Result<ModelConfig>(student) : ModelConfig::load(model_name);
  if (model.ok()) return scoring_memory(*model, scoring);
  notes.push_back("teacher " + model_name + ": not counted: " + model.status().message());
  return {};
}

// Rows of a pass over `samples` whole ones: the responses of a group share their prompt's.
std::int64_t rows_computed(std::int64_t samples, std::int64_t samples_per_prompt,
                           std::int64_t longest, std::int64_t responses) {
  const std::int64_t groups = (samples + samples_per_prompt - 1) / samples_per_prompt;
  const std::int64_t prompt = std::max<std::int64_t>(longest - responses, 0);
  return samples * longest - (samples - groups) * prompt;
}

// What of a pass decides its memory, of a worker with `share` samples.
void set_pass(MemoryOptions& options, const MicroBatchLimits& limits, std::int64_t share,
              std::int64_t samples_per_prompt, std::int64_t longest, std::int64_t responses) {
  std::int64_t tokens = share * longest;
  if (limits.samples_max > 0) tokens = std::min(tokens, limits.samples_max * longest);
  if (limits.tokens_max > 0) tokens = std::min(tokens, std::max(limits.tokens_max, longest));
  options.forward_tokens = rows_computed(tokens / longest, samples_per_prompt, longest, responses);
  options.output_tokens = tokens * std::min(responses, longest) / longest;
}

// Passes that only score may be larger than those that learn.
void add_scoring(std::vector<MemoryPart>& parts, const std::vector<MemoryPart>& scoring) {
  for (MemoryPart& part : parts) {
    for (const MemoryPart& other : scoring) {
      if (part.name == "activations" && other.name == part.name)
        part.bytes = std::max(part.bytes, other.bytes);
    }
  }
}

constexpr std::int64_t kRowsLookedAt = 1000;

}  // namespace

Result<std::int64_t> longest_prompt(const Config& config, const std::filesystem::path& model,
                                    const Dataset& rows) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(model);
  if (!tokenizer.ok()) return tokenizer.status();
  const Result<PromptOptions> options = PromptOptions::from_config(config);
  if (!options.ok()) return options.status();
  const Result<PromptBuilder> builder = PromptBuilder::create(*tokenizer, *options);
  if (!builder.ok()) return builder.status();
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < std::min(rows.size(), kRowsLookedAt); ++row) {
    const Result<DataRow> one = rows.read(row);
    if (!one.ok()) return one.status();
    const auto ids = builder->ids(*one);
    if (ids.ok()) longest = std::max(longest, static_cast<std::int64_t>(ids->size()));
  }
  return longest;
}

Result<RunMemory> run_memory(const Config& config, const TrainerOptions& trainer,
                             const PolicyOptions& policy, const ModelConfig& policy_model,
                             std::int64_t prompt_tokens, const SlotOptions& slots) {
  RunMemory memory;
  const ModelConfig* const model = &policy_model;
  const std::int64_t workers = slots.nodes * slots.per_node;
  const std::int64_t share =
      (trainer.batch_prompts + workers - 1) / workers * trainer.samples_per_prompt;
  const std::int64_t responses = policy.training.response_tokens_max;
  const std::int64_t longest =
      std::min(prompt_tokens > 0 ? prompt_tokens + responses : policy.positions_max,
               model->max_position_embeddings);
  const auto with_pass = [&](MemoryOptions of, const MicroBatchLimits& limits) {
    set_pass(of, limits, share, trainer.samples_per_prompt, longest, responses);
    return of;
  };
  const bool on_device = !slots.device.empty() && slots.device != "cpu";
  MemoryOptions options = with_pass({.sequences = share,
                                     .positions = longest,
                                     .recompute_layers = policy.recompute_layers,
                                     .bf16 = policy.bf16,
                                     .sequences_max = policy.engine.sequences_max,
                                     .on_device = on_device},
                                    policy.micro_batch);
  if (policy.adapter) {
    const Result<LoraAdapter> adapter = policy.adapter->folder.empty()
                                            ? LoraAdapter::create(*model, policy.adapter->lora, 0)
                                            : LoraAdapter::load(*model, policy.adapter->folder);
    if (!adapter.ok()) return adapter.status();
    options.trained_elements = adapter->parameters().arena_size();
  }
  const OffloadOptions& policy_offload = policy.learner.offload;
  std::vector<RoleMemory>& roles = memory.roles;
  roles = {{.role = "policy (generates and trains)",
            .workers = workers,
            .parts = training_memory(*model, options),
            .weights_leave = policy_offload.parameters,
            .gradients_leave = policy_offload.gradients}};
  MemoryOptions scoring = options;
  scoring.sequences = 0;
  scoring.recompute_layers = false;
  scoring.trained_elements = -1;
  add_scoring(roles.front().parts,
              scoring_memory(*model, with_pass(scoring, policy.scoring_batch)));
  const Result<MicroBatchLimits> reference_batch =
      scoring_batch_from_config(config, kReferenceRole, slots.device);
  if (!reference_batch.ok()) return reference_batch.status();
  scoring = with_pass(scoring, *reference_batch);
  // While a checkpoint is written beside the steps, its copy of weights and optimizer is there,
  // too; of the worker that writes it.
  const std::int64_t trained =
      options.trained_elements >= 0 ? options.trained_elements : weight_elements(*model);
  const bool copies =
      trainer.async_save && (trainer.save.repeats() || !trainer.save_best.goal.metric.empty());
  if (copies) roles.front().parts.push_back(checkpoint_memory(trained));
  if (trainer.uses_critic()) {
    const Result<CriticOptions> critic = CriticOptions::from_config(config, slots.device);
    if (!critic.ok()) return critic.status();
    MemoryOptions learning = with_pass(scoring, critic->micro_batch);
    learning.recompute_layers = critic->recompute_layers;
    learning.bf16 = critic->bf16;
    const OffloadOptions& offload = critic->learner.offload;
    const Result<ModelConfig> own =
        trainer.critic_model.empty() || trainer.critic_model == kToyModelName
            ? Result<ModelConfig>(*model)
            : ModelConfig::load(trainer.critic_model);
    if (!own.ok())
      memory.notes.push_back("critic " + trainer.critic_model +
                             ": counted as if it were the policy's: " + own.status().message());
    const ModelConfig& critic_model = own.ok() ? *own : *model;
    roles.push_back({.role = "critic",
                     .workers = workers,
                     .parts = training_memory(critic_model, learning),
                     .weights_leave = offload.parameters,
                     .gradients_leave = offload.gradients});
    add_scoring(roles.back().parts,
                scoring_memory(critic_model, with_pass(scoring, critic->scoring_batch)));
    if (copies) roles.back().parts.push_back(checkpoint_memory(weight_elements(critic_model)));
  }
  const Result<OffloadOptions> reference =
      offload_from_config(config, "actor_rollout_ref.ref.fsdp_config");
  if (!reference.ok()) return reference.status();
  if (trainer.uses_reference())
    roles.push_back({.role = "reference",
                     .workers = workers,
                     .parts = scoring_memory(*model, scoring),
                     .weights_leave = reference->parameters});
  if (trainer.rollout_workers) {
    std::vector<MemoryPart> parts = training_memory(*model, options);
    std::erase_if(parts, [](const MemoryPart& part) {
      return part.name == "optimizer" || part.name == "activations";
    });
    roles.push_back({.role = "rollout (generates a step ahead)",
                     .workers = trainer.rollout_workers->size(),
                     .parts = std::move(parts),
                     .devices_of_its_own = true});
  }
  const Result<std::vector<NamedTeacher>> teachers =
      trainer.distills ? teachers_from_config(config) : std::vector<NamedTeacher>();
  for (const NamedTeacher& teacher :
       teachers.value_or({})) {  // what is wrong with them is a contradiction, and told as one
    const Result<std::string> name = config.get_string(teacher.model_key);
    if (!name.ok()) return name.status();
    roles.push_back({.role = teacher.rows.empty() ? "teacher" : "teacher " + teacher.name,
                     .workers = workers,
                     .parts = teacher_memory(*name, *model, scoring, memory.notes),
                     .weights_leave = reference->parameters});
  }
  const Result<std::optional<bool>> judges =
      config.find_bool("reward_model.model.fsdp_config.param_offload");
  if (!judges.ok()) return judges.status();
  roles.push_back({.role = "reward",
                   .workers = workers,
                   .parts = reward_memory(config, share * longest, longest, memory.notes),
                   .weights_leave = judges->value_or(false),
                   .beside_others = true});
  std::vector<DeviceMemory> devices, drawing;
  for (RoleMemory& role : roles) {
    if (on_device) {
      (role.devices_of_its_own ? drawing : devices).push_back(device_memory(role));
      role.parts = host_memory(role.parts);
    }
    const bool trains =
        std::any_of(role.parts.begin(), role.parts.end(),
                    [](const MemoryPart& part) { return part.name == "optimizer"; });
    role.parts.push_back(process_memory(trains));
  }
  if (on_device) memory.device_bytes = device_peak(devices);
  if (!drawing.empty()) memory.ahead_device_bytes = device_peak(drawing);
  return memory;
}

}  // namespace rl
