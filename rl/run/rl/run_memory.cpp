#include "rl/run/rl/run_memory.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "rl/data/prompt_builder.h"
#include "rl/model/lora.h"
#include "rl/run/reward_model_path.h"
#include "rl/run/rl/teachers.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/reward_model.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// The same passes of a model that is not trained.
MemoryOptions frozen_memory(MemoryOptions options, const FrozenSharding& sharding) {
  options.zero = sharding.shards ? ZeroLevel::kWeights : ZeroLevel::kNone;
  options.shard_ranks = sharding.shard_ranks;
  return options;
}

// Of the reward role besides its processes: the models that score, each with its own pass. What
// is only on the hub is not known, and said.
std::vector<MemoryPart> reward_memory(const Config& config, const FrozenSharding& sharding,
                                      std::int64_t workers, std::int64_t share_tokens,
                                      std::int64_t longest, std::vector<std::string>& notes) {
  std::vector<MemoryPart> parts;
  for (const std::string& name : reward_models(config)) {
    const Result<ModelConfig> model = ModelConfig::load(name);
    if (!model.ok()) {
      notes.push_back("reward model " + name + ": not counted: " + model.status().message());
      continue;
    }
    const std::int64_t pass = std::min(share_tokens, std::max(kRewardModelPassTokens, longest));
    const MemoryOptions options{.trained_elements = -1,
                                .forward_tokens = pass,
                                .output_tokens = 0,
                                .sequences = 0,
                                .positions = longest,
                                .workers = workers};
    for (MemoryPart& part : scoring_memory(*model, frozen_memory(options, sharding)))
      parts.push_back(std::move(part));
  }
  return parts;
}

// The memory of a teacher, likewise.
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

// Passes that only score may be larger than those that learn.
void add_scoring(std::vector<MemoryPart>& parts, const std::vector<MemoryPart>& scoring) {
  for (MemoryPart& part : parts) {
    for (const MemoryPart& other : scoring) {
      if (part.name == "activations" && other.name == part.name)
        part.bytes = std::max(part.bytes, other.bytes);
    }
  }
}

// Parts of passes; of each the larger.
void add_larger_passes(std::vector<MemoryPart>& parts, const std::vector<MemoryPart>& others) {
  for (const MemoryPart& other : others) {
    if (!is_of_passes(other)) continue;
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const MemoryPart& candidate) {
      return candidate.name == other.name;
    });
    if (part == parts.end())
      parts.push_back(other);
    else
      part->bytes = std::max(part->bytes, other.bytes);
  }
}

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
  for (std::int64_t row = 0; row < std::min(rows.size(), kPromptsMeasured); ++row) {
    const Result<DataRow> one = rows.read(row);
    if (!one.ok()) return one.status();
    const auto ids = builder->ids(*one);
    if (ids.ok()) longest = std::max(longest, static_cast<std::int64_t>(ids->size()));
  }
  return longest;
}

namespace {

// Counts one role after the other; options of the policy's passes are those of the others, but for
// what only one has.
class RoleCounter {
 public:
  RoleCounter(const Config& config, const TrainerOptions& trainer, const PolicyOptions& policy,
              const ModelConfig& model, const RunLengths& lengths, const SlotOptions& slots)
      : config_(config),
        trainer_(trainer),
        policy_(policy),
        model_(model),
        device_(slots.device),
        on_device_(slots.on_device()),
        workers_(slots.nodes * slots.per_node),
        share_((trainer.batch_prompts + workers_ - 1) / workers_ * trainer.samples_per_prompt),
        longest_(std::min(lengths.prompt_tokens > 0
                              ? lengths.prompt_tokens + policy.training.response_tokens_max
                              : policy.positions_max,
                          model.max_position_embeddings)),
        demonstrations_(lengths.demonstrations.value_or(
            RowLengths{.longest = std::min(policy.positions_max, model.max_position_embeddings)})) {
  }

  Result<RunMemory> count() {
    for (const auto step :
         {&RoleCounter::add_policy, &RoleCounter::add_critic, &RoleCounter::add_reference,
          &RoleCounter::add_rollout, &RoleCounter::add_teachers, &RoleCounter::add_reward}) {
      if (const Status status = (this->*step)(); !status.ok()) return status;
    }
    add_devices();
    return std::move(memory_);
  }

 private:
  // What of a pass decides its memory, of a worker with its share of the samples.
  MemoryOptions with_pass(MemoryOptions options, const MicroBatchLimits& limits) const {
    const std::int64_t responses = policy_.training.response_tokens_max;
    std::int64_t tokens = share_ * longest_;
    if (limits.samples_max > 0) tokens = std::min(tokens, limits.samples_max * longest_);
    if (limits.tokens_max > 0) tokens = std::min(tokens, std::max(limits.tokens_max, longest_));
    options.forward_tokens =
        rows_computed(tokens / longest_, trainer_.samples_per_prompt, longest_, responses);
    options.output_tokens = tokens * std::min(responses, longest_) / longest_;
    return options;
  }

  // Whether a leaf of a mini-batch, at its longest, is one pass.
  bool one_pass_leaves(const MicroBatchLimits& limits) const {
    const std::int64_t leaves = trainer_.gradient_leaves > 0 ? trainer_.gradient_leaves : workers_;
    const std::int64_t samples =
        (trainer_.mini_batch_prompts + leaves - 1) / leaves * trainer_.samples_per_prompt;
    return (limits.samples_max == 0 || samples <= limits.samples_max) &&
           (limits.tokens_max == 0 || samples * longest_ <= std::max(limits.tokens_max, longest_));
  }

  // While a checkpoint is written as steps go on, a copy of weights and optimizer is there, too; of
  // the worker that writes it.
  bool copies() const {
    return trainer_.async_save &&
           (trainer_.save.repeats() || !trainer_.save_best.goal.metric.empty());
  }

  void add_checkpoint(std::vector<MemoryPart>& parts, const ModelConfig& model,
                      const MemoryOptions& learning) const {
    if (trainer_.save.never() && trainer_.save_best.goal.metric.empty()) return;
    for (MemoryPart& part : checkpoint_memory(model, learning, copies()))
      parts.push_back(std::move(part));
  }

  Status add_policy() {
    learning_ = with_pass({.sequences = share_,
                           .positions = longest_,
                           .workers = workers_,
                           .zero = policy_.learner.zero,
                           .shard_ranks = policy_.learner.shard_ranks,
                           .sharing = policy_.learner.sharing,
                           .reshard_after_forward = policy_.learner.reshard_after_forward,
                           .gradient_leaves = trainer_.gradient_leaves,
                           .compresses_gradients = policy_.learner.compression.is_on(),
                           .orthogonalizes = policy_.learner.optimizer == OptimizerKind::kMuon,
                           .one_pass_leaves = one_pass_leaves(policy_.micro_batch),
                           .recompute_layers = policy_.recompute_layers,
                           .bf16 = policy_.bf16,
                           .sequences_max = policy_.engine.sequences_max,
                           .on_device = on_device_},
                          policy_.micro_batch);
    if (policy_.adapter) {
      const Result<LoraAdapter> adapter =
          policy_.adapter->folder.empty() ? LoraAdapter::create(model_, policy_.adapter->lora, 0)
                                          : LoraAdapter::load(model_, policy_.adapter->folder);
      if (!adapter.ok()) return adapter.status();
      learning_.trained_elements = adapter->parameters().arena_size();
    }
    const OffloadOptions& offload = policy_.learner.offload;
    memory_.roles = {{.role = "policy (generates and trains)",
                      .workers = workers_,
                      .parts = training_memory(model_, learning_),
                      .weights_leave = offload.parameters,
                      .gradients_leave = offload.gradients}};
    scoring_ = learning_;
    scoring_.sequences = 0;
    scoring_.recompute_layers = false;
    scoring_.trained_elements = -1;
    scoring_.sharing = {};
    scoring_.zero = ZeroLevel::kNone;
    std::vector<MemoryPart>& parts = memory_.roles.front().parts;
    add_scoring(parts, scoring_memory(model_, with_pass(scoring_, policy_.scoring_batch)));
    if (trainer_.warm_start.steps > 0) add_larger_passes(parts, warm_start_memory());
    const Result<MicroBatchLimits> reference_batch =
        scoring_batch_from_config(config_, kReferenceRole, device_);
    if (!reference_batch.ok()) return reference_batch.status();
    scoring_ = with_pass(scoring_, *reference_batch);
    const Result<FrozenSharding> reference = frozen_sharding_from_config(config_, kReferenceRole);
    if (!reference.ok()) return reference.status();
    frozen_ = frozen_memory(scoring_, *reference);
    add_checkpoint(parts, model_, learning_);
    return {};
  }

  // The memory of the policy while it learns demonstrations, before it generates.
  std::vector<MemoryPart> warm_start_memory() const {
    const std::int64_t rows = trainer_.warm_start.batch_rows;
    const std::int64_t leaves = trainer_.gradient_leaves > 0 ? trainer_.gradient_leaves : workers_;
    const std::int64_t leaf = (rows + leaves - 1) / leaves;
    MemoryOptions options = learning_;
    options.sequences = 0;
    options.positions = demonstrations_.longest;
    options.recompute_layers = false;  // whatever the keys for RL say
    options.forward_tokens = options.output_tokens =
        demonstrations_.of_pass(leaf, policy_.micro_batch);
    options.one_pass_leaves = demonstrations_.is_one_pass(leaf, policy_.micro_batch);
    return training_memory(model_, options);
  }

  Status add_critic() {
    if (!trainer_.uses_critic()) return {};
    const Result<CriticOptions> critic = CriticOptions::from_config(config_, device_);
    if (!critic.ok()) return critic.status();
    MemoryOptions learning = with_pass(scoring_, critic->micro_batch);
    learning.zero = critic->learner.zero;
    learning.shard_ranks = critic->learner.shard_ranks;
    learning.sharing = critic->learner.sharing;
    learning.orthogonalizes = critic->learner.optimizer == OptimizerKind::kMuon;
    learning.reshard_after_forward = critic->learner.reshard_after_forward;
    learning.one_pass_leaves = one_pass_leaves(critic->micro_batch);
    learning.recompute_layers = critic->recompute_layers;
    learning.bf16 = critic->bf16;
    learning.compresses_gradients = critic->learner.compression.is_on();
    const OffloadOptions& offload = critic->learner.offload;
    const Result<ModelConfig> own =
        trainer_.critic_model.empty() || trainer_.critic_model == kToyModelName
            ? Result<ModelConfig>(model_)
            : ModelConfig::load(trainer_.critic_model);
    if (!own.ok())
      memory_.notes.push_back("critic " + trainer_.critic_model +
                              ": counted as if it were the policy's: " + own.status().message());
    const ModelConfig& model = own.ok() ? *own : model_;
    // Of a model that is not here yet only the number of workers is known.
    const Status shared = own.ok() ? check_pass_sharing(config_, kCriticRole, model, workers_)
                                   : check_teams(config_, kCriticRole, workers_);
    if (!shared.ok()) return shared;
    memory_.roles.push_back({.role = "critic",
                             .workers = workers_,
                             .parts = training_memory(model, learning),
                             .weights_leave = offload.parameters,
                             .gradients_leave = offload.gradients});
    std::vector<MemoryPart>& parts = memory_.roles.back().parts;
    add_scoring(parts, scoring_memory(model, with_pass(scoring_, critic->scoring_batch)));
    add_checkpoint(parts, model, learning);
    return {};
  }

  Status add_reference() {
    const Result<OffloadOptions> offload =
        offload_from_config(config_, "actor_rollout_ref.ref.fsdp_config");
    if (!offload.ok()) return offload.status();
    reference_leaves_ = offload->parameters;
    if (trainer_.uses_reference())
      memory_.roles.push_back({.role = "reference",
                               .workers = workers_,
                               .parts = scoring_memory(model_, frozen_),
                               .weights_leave = reference_leaves_});
    return {};
  }

  Status add_rollout() {
    if (!trainer_.rollout_workers) return {};
    MemoryOptions receiving = learning_;
    receiving.workers = trainer_.rollout_workers->size();
    receiving.compresses_gradients = false;
    receiving.orthogonalizes = false;
    std::vector<MemoryPart> parts = training_memory(model_, receiving);
    std::erase_if(parts, [](const MemoryPart& part) {
      return part.name == "optimizer" || part.name == "activations";
    });
    memory_.roles.push_back({.role = "rollout (generates a step ahead)",
                             .workers = trainer_.rollout_workers->size(),
                             .parts = std::move(parts),
                             .devices_of_its_own = true});
    return {};
  }

  // What is wrong with them is a contradiction, and told as one.
  Status add_teachers() {
    const Result<std::vector<NamedTeacher>> teachers =
        trainer_.distills ? teachers_from_config(config_) : std::vector<NamedTeacher>();
    for (const NamedTeacher& teacher : teachers.value_or({})) {
      const Result<std::string> name = config_.get_string(teacher.model_key);
      if (!name.ok()) return name.status();
      memory_.roles.push_back({.role = teacher.rows.empty() ? "teacher" : "teacher " + teacher.name,
                               .workers = workers_,
                               .parts = teacher_memory(*name, model_, frozen_, memory_.notes),
                               .weights_leave = reference_leaves_});
    }
    return {};
  }

  Status add_reward() {
    const Result<std::optional<bool>> leaves =
        config_.find_bool("reward_model.model.fsdp_config.param_offload");
    if (!leaves.ok()) return leaves.status();
    const Result<FrozenSharding> sharding = frozen_sharding_from_config(config_, kRewardModelRole);
    if (!sharding.ok()) return sharding.status();
    memory_.roles.push_back({.role = "reward",
                             .workers = workers_,
                             .parts = reward_memory(config_, *sharding, workers_, share_ * longest_,
                                                    longest_, memory_.notes),
                             .weights_leave = leaves->value_or(false),
                             .concurrent = true});
    return {};
  }

  void add_devices() {
    std::vector<DeviceMemory> devices, generating;
    for (RoleMemory& role : memory_.roles) {
      if (on_device_) {
        (role.devices_of_its_own ? generating : devices)
            .push_back(device_memory(role, context_bytes(device_)));
        role.parts = host_memory(role.parts);
      }
      const auto has = [&](const char* name) {
        return std::any_of(role.parts.begin(), role.parts.end(),
                           [&](const MemoryPart& part) { return part.name == name; });
      };
      role.parts.push_back(process_memory(has("optimizer"), on_device_ && has("weights")));
    }
    if (on_device_) memory_.device_bytes = device_peak(devices);
    if (!generating.empty()) memory_.ahead_device_bytes = device_peak(generating);
  }

  const Config& config_;
  const TrainerOptions& trainer_;
  const PolicyOptions& policy_;
  const ModelConfig& model_;
  const std::string device_;
  const bool on_device_;
  const std::int64_t workers_;
  const std::int64_t share_;    // samples of a worker
  const std::int64_t longest_;  // tokens of a sample
  const RowLengths demonstrations_;
  MemoryOptions learning_;  // of the policy
  MemoryOptions scoring_;   // of the reference, with whole weights
  MemoryOptions frozen_;    // the same as it keeps them
  bool reference_leaves_ = false;
  RunMemory memory_;
};

}  // namespace

Result<RunMemory> run_memory(const Config& config, const TrainerOptions& trainer,
                             const PolicyOptions& policy, const ModelConfig& policy_model,
                             const RunLengths& lengths, const SlotOptions& slots) {
  return RoleCounter(config, trainer, policy, policy_model, lengths, slots).count();
}

}  // namespace rl
