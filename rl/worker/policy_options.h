// PolicyOptions: the settings of policy and critic workers, read from the configuration once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/agent/agent_options.h"
#include "rl/batch/batch_plan.h"
#include "rl/config/config.h"
#include "rl/model/lora_config.h"
#include "rl/optim/learner.h"
#include "rl/optim/lr_schedule.h"
#include "rl/worker/policy_objective.h"
#include "rl/worker/token_estimates.h"
#include "runtime/core/result.h"

namespace rl {

/// How the policy generates samples.
struct SamplingOptions {
  std::int64_t samples = 1;  // per prompt
  float temperature = 1.0F;  // 0: greedy
  float top_p = 1.0F;
  std::int64_t top_k = -1;
  std::int64_t response_tokens_max = 512;
  std::int64_t response_tokens_min = 0;  // until then no response ends
  float repetition_penalty =
      1.0F;  // see SamplingParams; log-probabilities stay those of the model without it
  bool ignore_eos = false;         // responses go on to response_tokens_max
  float first_temperature = 0.0F;  // of the first token, see SamplingParams; 0: as the others
  std::int64_t first_top_k = 0;
};

/// The adapter that is trained in place of the model's own weights.
struct AdapterOptions {
  LoraConfig lora;               // of a new one
  std::filesystem::path folder;  // one to begin with instead, as PEFT saves it; empty: a new one
  std::uint64_t seed = 0;        // of a new one

  /// From `<section>.lora_*`, `target_modules` and `exclude_modules`; nothing where lora_rank is 0
  /// and no lora_adapter_path given. kInvalidArgument: a value out of range, by key.
  static runtime::Result<std::optional<AdapterOptions>> from_config(
      const Config& config, const std::string& section = "actor_rollout_ref.model");
};

/// Puts the adapter on the model, new or from its folder, and uses it. Errors: those of
/// LoraAdapter.
runtime::Status use_adapter(Transformer& model, const AdapterOptions& options);

/// A critic that is a head on the policy's backbone and learns in the policy's own passes.
struct SharedCriticOptions {
  ValueObjective objective;
  double loss_coefficient = 0.1;  // of the value loss next to the policy's
  std::uint64_t seed = 0;         // of the head's first weights

  /// Nothing unless `actor_rollout_ref.model.custom_forward` is true. kInvalidArgument: a value out
  /// of range, by key; an advantage estimator that has no critic.
  static runtime::Result<std::optional<SharedCriticOptions>> from_config(const Config& config);
};

/// A critic that is a separate model.
struct CriticOptions {
  std::filesystem::path model;  // a Hugging Face folder or .gguf file
  int threads = 1;              // of this worker
  std::string device = {};      // see find_device()
  ValueObjective objective;
  EstimateOptions estimates;
  LearnerOptions learner;
  std::int64_t epochs = 1;  // passes over a step's samples
  MicroBatchLimits micro_batch;
  MicroBatchLimits scoring_batch;  // of passes without backward
  bool recompute_layers = false;   // see PassOptions
  bool bf16 = false;               // see PassOptions
  std::uint64_t seed = 0;          // of the head's first weights, where the model has none

  /// From `critic.*` and `algorithm.*`, without the model. kInvalidArgument: a value out of range,
  /// by key.
  static runtime::Result<CriticOptions> from_config(const Config& config,
                                                    const std::string& device = {});
};

/// How much a policy generates at a time.
struct EngineLimits {
  std::int64_t sequences_max = 64;     // EngineOptions'
  std::int64_t step_tokens_max = 512;  // EngineOptions'
  double utilization = 0.5;            // of a device, for weights and cache; see CachePlan

  /// `actor_rollout_ref.rollout.max_num_seqs`, `.max_num_batched_tokens` and
  /// `.gpu_memory_utilization`. Where the first two are not set, a CPU keeps the engine's own, and
  /// other devices take the keys' defaults. kInvalidArgument: a value out of range, by key.
  static runtime::Result<EngineLimits> from_config(const Config& config, const std::string& device);
};

/// Settings of a policy worker. Size: a field a key, or a group of keys.
struct PolicyOptions {
  std::filesystem::path model;  // a Hugging Face folder or .gguf file
  int threads = 1;              // of this worker
  std::string device = {};      // see find_device()
  SamplingOptions training;
  SamplingOptions validation;
  bool deterministic_rollouts = true;  // EngineOptions::deterministic
  EngineLimits engine;
  PolicyObjective objective;
  EstimateOptions estimates;
  LearnerOptions learner;
  std::int64_t epochs = 1;  // passes over a step's samples
  MicroBatchLimits micro_batch;
  MicroBatchLimits scoring_batch;     // of passes without backward
  bool recompute_layers = false;      // see PassOptions
  bool bf16 = false;                  // in training and scoring: see PassOptions
  bool samples_are_older = false;     // some may come from other weights than a step begins with
  std::int64_t positions_max = 0;     // tokens of prompt and response together
  std::optional<AgentOptions> agent;  // nothing: each sample is one turn
  std::string chat_template;          // of several turns, in place of the model's own
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();  // of several turns
  std::optional<AdapterOptions> adapter;      // nothing: all weights are trained
  bool probes_variance = false;               // variance_proxy/... metrics, for a forward pass more
  std::optional<SharedCriticOptions> critic;  // nothing: none on the policy's backbone

  /// From `actor_rollout_ref.*` and `data.max_*_length`. kInvalidArgument: a value out of range, by
  /// key. kUnimplemented: two that do not go together.
  static runtime::Result<PolicyOptions> from_config(const Config& config,
                                                    const std::string& device = {});
};

/// Sections of the configuration that trained roles have.
inline constexpr const char* kActorRole = "actor_rollout_ref.actor";
inline constexpr const char* kCriticRole = "critic";
inline constexpr const char* kStageRole =
    "";  // a stage trains one thing: `optim.*`, with `optim.clip_grad`

/// Sections that say how samples are scored without learning from them: by the policy itself, and
/// by the reference.
inline constexpr const char* kRolloutRole = "actor_rollout_ref.rollout";
inline constexpr const char* kReferenceRole = "actor_rollout_ref.ref";

/// "critic.optim."; of a stage "optim.".
std::string optim_section(const std::string& role);

/// `<role>.optim` and `<role>.grad_clip`; of a stage `optim` and `optim.clip_grad`.
/// kInvalidArgument: a value out of range, by key.
runtime::Result<LearnerOptions> learner_from_config(const Config& config, const std::string& role);

/// `<section>.param_offload`, `.grad_offload` and `.offload_policy` (both of them), of a policy or
/// critic; of "actor_rollout_ref.ref.fsdp_config" without gradients. The first two count as
/// `megatron.*` next to the section, too. kInvalidArgument: no boolean, by key.
runtime::Result<OffloadOptions> offload_from_config(const Config& config,
                                                    const std::string& section);

/// Whether the numbers that a `dtype` key names are bf16. Where it is not set, they are on another
/// device than the CPU. Errors: those of Config::get_string.
runtime::Result<bool> computes_in_bf16(const Config& config, const std::string& key,
                                       const std::string& device);

/// `<role>.ppo_max_token_len_per_gpu` with `<role>.use_dynamic_bsz`, else
/// `<role>.ppo_micro_batch_size_per_gpu`, and 2048 tokens where neither says, or 16384 on another
/// device than the CPU. On a CPU tokens are never more than these 2048. kInvalidArgument: out of
/// range, by key.
runtime::Result<MicroBatchLimits> micro_batch_from_config(const Config& config,
                                                          const std::string& role,
                                                          const std::string& device = {});

/// The same of passes without backward: `<role>.log_prob_*` of kRolloutRole and kReferenceRole,
/// `critic.forward_*` of kCriticRole. Where they do not say, the keys of the role that learns do
/// (the actor's for the reference). On a CPU that many samples have at most 2048 tokens, too.
runtime::Result<MicroBatchLimits> scoring_batch_from_config(const Config& config,
                                                            const std::string& role,
                                                            const std::string& device = {});

/// The schedule of `<role>.optim`, for a run of `total_steps`, by FSDP's names of the keys or other
/// engines'. kInvalidArgument: a value out of range, by key; two keys that contradict each other.
runtime::Result<LrScheduleOptions> lr_schedule_from_config(const Config& config,
                                                           const std::string& role,
                                                           std::int64_t total_steps);

}  // namespace rl
