#include "rl/command/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/agent/agent_options.h"
#include "rl/data/dataset.h"
#include "rl/data/json_text.h"
#include "rl/data/prompt_builder.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/reward/process_scorer.h"
#include "rl/reward/reward_function.h"
#include "rl/text/tokenizer.h"
#include "rl/train/memory_plan.h"
#include "rl/train/profile_options.h"
#include "rl/train/reward_model_path.h"
#include "rl/train/row_order_choice.h"
#include "rl/train/shown_row.h"
#include "rl/train/teachers.h"
#include "rl/train/toy_model.h"
#include "rl/train/trainer_options.h"
#include "rl/train/training_feed.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/reward_model.h"
#include "rl/worker/worker_group.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Keys of which each is right and which contradict each other.
std::vector<std::string> contradictions(const TrainerOptions& trainer, const SlotOptions& slots,
                                        const Config& config) {
  std::vector<std::string> found = trainer.uneven_batches(slots.nodes * slots.per_node);
  const auto given = config.find_string("actor_rollout_ref.model.path");
  if (given.ok() && !given->has_value())
    found.push_back("actor_rollout_ref.model.path is not set: there is no model to train");
  if (const auto teachers = teachers_from_config(config); trainer.distills && !teachers.ok())
    found.push_back(teachers.status().message());
  return found;
}

// What the training data are, as far as a run's size depends on it.
struct DataSize {
  std::int64_t rows = 0;
  std::int64_t prompt_tokens = 0;  // of the longest prompt of those looked at
  std::string first = {};          // the first row, for people
  std::vector<std::string> warnings = {};
};

constexpr std::size_t kShownValueBytes = 400;

// A row as the model and the reward get it.
std::string first_row_text(const DataRow& row, const std::string& prompt) {
  std::string text =
      "the first prompt (" + row.where + "), as the model reads it:\n" + shown_lines(prompt, '|');
  const nlohmann::json given =
      request_json({.data_source = row.data_source,
                    .response = {},
                    .ground_truth = row.ground_truth,
                    .extra_info = row.extra.is_null() ? std::string() : json_line(row.extra),
                    .where = row.where,
                    .has_ground_truth = row.answerless.empty()});
  const auto shown = [&](const char* key) {
    return excerpt(json_line(nlohmann::ordered_json(given.at(key))), kShownValueBytes);
  };
  text += "  its answer: " + (row.answerless.empty() ? shown("ground_truth") : "none");
  return text + "\n  what the reward gets: the response, ground_truth " + shown("ground_truth") +
         ", data_source " + shown("data_source") + ", extra_info " + shown("extra_info") + "\n";
}

constexpr std::int64_t kRowsLookedAt = 1000;

// Reads the data as a run would, where the model is here; `wrong` gets what would end that before
// its first step. Errors say why nothing is known.
Result<DataSize> measure_data(const Config& config, const TrainerOptions& trainer,
                              const std::filesystem::path& model, std::int64_t workers,
                              const RewardFunction* reward, std::vector<std::string>& wrong) {
  const Result<std::optional<DatasetOptions>> options = dataset_options(config, Split::kTrain),
                                              validation =
                                                  dataset_options(config, Split::kValidation);
  const auto fail = [&](const Status& status) {
    wrong.push_back(status.message());
    return status;
  };
  if (!validation.ok()) wrong.push_back(validation.status().message());
  if (!options.ok()) return fail(options.status());
  if (!*options) return fail(runtime::not_found("no training data: set data.train_files"));
  const Result<PromptFeedOptions> feeding = training_feed_options(config, trainer, model, workers);
  if (!feeding.ok() && ModelConfig::load(model).ok()) return fail(feeding.status());
  if (!feeding.ok()) {  // without a model: what is there to read
    const Result<Dataset> rows = Dataset::load(**options);
    if (!rows.ok()) return fail(rows.status());
    return DataSize{.rows = rows->size(), .prompt_tokens = 0};
  }
  const Result<std::unique_ptr<PromptFeed>> feed = PromptFeed::create(config, **options, *feeding);
  if (!feed.ok()) return fail(feed.status());
  DataSize size{.rows = (*feed)->rows(), .prompt_tokens = 0};
  std::vector<const Dataset*> read = {&(*feed)->dataset()};
  std::unique_ptr<PromptFeed> held_out;
  if (validation.ok() && *validation &&
      (trainer.validation_interval >= 1 || trainer.validate_first)) {
    PromptFeedOptions reading = *feeding;
    reading.batch_prompts = reading.mini_batch_prompts = reading.workers = 1;
    reading.shuffle = false;
    reading.adaptive.reset();
    reading.python_sampler = {};
    reading.teachers.clear();
    Result<std::unique_ptr<PromptFeed>> opened = PromptFeed::create(config, **validation, reading);
    if (!opened.ok())
      wrong.push_back(opened.status().message());
    else
      held_out = std::move(*opened);
  }
  if (held_out) read.push_back(&held_out->dataset());
  const Result<Tokenizer> tokenizer = Tokenizer::load(model);
  const Result<PromptOptions> prompts = PromptOptions::from_config(config);
  if (!tokenizer.ok()) return fail(tokenizer.status());
  if (!prompts.ok()) return fail(prompts.status());
  const Result<PromptBuilder> builder = PromptBuilder::create(*tokenizer, *prompts);
  if (!builder.ok()) return fail(builder.status());
  for (std::int64_t row = 0; row < std::min(size.rows, kRowsLookedAt); ++row) {
    const Result<DataRow> one = (*feed)->dataset().read(row);
    if (!one.ok()) return fail(one.status());
    const auto ids = builder->ids(*one);
    if (ids.ok())
      size.prompt_tokens = std::max(size.prompt_tokens, static_cast<std::int64_t>(ids->size()));
    if (row > 0) continue;
    if (const auto prompt = builder->text(*one); prompt.ok())
      size.first = first_row_text(*one, *prompt);
  }
  size.warnings = data_warnings(config, **feed);
  if (reward == nullptr) return size;
  if (const Status judged = check_reward_rows(*reward, read); !judged.ok())
    wrong.push_back(judged.message());
  return size;
}

// A name that can only be one of this machine's. What the hub may have is not fetched, and not
// judged.
bool is_path(const std::string& name) {
  return name != kToyModelName && (name.starts_with('/') || name.starts_with('.') ||
                                   name.starts_with('~') || name.find('/') == std::string::npos);
}

// Files that a run would look for and not find.
void add_missing(const Config& config, const TrainerOptions& trainer,
                 std::vector<std::string>& wrong) {
  std::error_code error;
  for (const char* key : {"reward.custom_reward_function.path", "reward.shared_library.path"}) {
    const auto file = config.find_string(key);
    if (file.ok() && *file && !std::filesystem::is_regular_file(**file, error))
      wrong.push_back(std::string(key) + ": there is no file " + **file + " here");
  }
  std::vector<std::string> models = {"actor_rollout_ref.model.path"};
  if (trainer.uses_critic()) models.emplace_back("critic.model.path");
  const auto teachers = trainer.distills
                            ? teachers_from_config(config)
                            : Result<std::vector<NamedTeacher>>(std::vector<NamedTeacher>());
  for (const NamedTeacher& teacher : teachers.value_or({})) models.push_back(teacher.model_key);
  for (const std::string& key : models) {
    const auto name = config.find_string(key);
    if (name.ok() && *name && is_path(**name) && !std::filesystem::exists(**name, error))
      wrong.push_back(key + ": there is no " + **name + " here");
  }
}

// Where the model is. The toy model is made for the while; what is only on the hub is not fetched.
Result<std::filesystem::path> find_local_model(const std::filesystem::path& model) {
  if (model != kToyModelName) return model;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("starling_toy_" + std::to_string(::getpid()));
  const Status made = make_toy_model(folder, {});
  if (!made.ok()) return made;
  return folder;
}

void print_batches(const TrainerOptions& trainer, const PolicyOptions& policy,
                   const Result<DataSize>& data, std::int64_t workers, std::ostream& out) {
  const std::int64_t updates = (trainer.batch_prompts + trainer.mini_batch_prompts - 1) /
                               trainer.mini_batch_prompts * policy.epochs;
  out << "a step:\n  " << trainer.batch_prompts << " prompts x " << trainer.samples_per_prompt
      << " responses = " << trainer.batch_prompts * trainer.samples_per_prompt
      << " samples, of at most " << policy.positions_max << " tokens each\n  "
      << (trainer.batch_prompts + workers - 1) / workers << " prompts at most on each of "
      << workers << " workers\n  " << updates << " optimizer steps of "
      << trainer.mini_batch_prompts << " prompts ("
      << trainer.mini_batch_prompts * trainer.samples_per_prompt << " samples)";
  if (policy.epochs > 1) out << ", in " << policy.epochs << " passes";
  out << "\n";
  if (data.ok()) {
    const std::int64_t steps = data->rows / trainer.batch_prompts;
    out << "data:\n  " << data->rows << " rows, " << steps << " steps an epoch, "
        << trainer.length.last(steps) << " steps in all\n";
    for (const std::string& warning : data->warnings) out << "  note: " << warning << "\n";
    out << data->first;
  } else {
    out << "data:\n  not counted: " << data.status().message() << "\n";
    if (trainer.length.steps)
      out << "  " << *trainer.length.steps
          << " steps in all, unless trainer.total_epochs ends it before\n";
  }
}

// Of the reward role beside its processes: the models that score, each with a pass of its own. What
// is only on the hub is not known, and said.
std::vector<MemoryPart> reward_memory(const Config& config, std::int64_t share_tokens,
                                      std::int64_t longest, std::ostream& out) {
  std::vector<MemoryPart> parts;
  for (const std::string& name : reward_models(config)) {
    const Result<ModelConfig> model = ModelConfig::load(name);
    if (!model.ok()) {
      out << "  reward model " << name << ": not counted: " << model.status().message() << "\n";
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
                                       const MemoryOptions& scoring, std::ostream& out) {
  const Result<ModelConfig> model =
      model_name == kToyModelName ? Result<ModelConfig>(student) : ModelConfig::load(model_name);
  if (model.ok()) return scoring_memory(*model, scoring);
  out << "  teacher " << model_name << ": not counted: " << model.status().message() << "\n";
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

// Prompts are as long as the longest of the data, or as may be where that is not known; responses
// as long as may be.
Status print_memory(const Config& config, const TrainerOptions& trainer,
                    const PolicyOptions& policy, const Result<ModelConfig>& model,
                    const Result<DataSize>& data, const SlotOptions& slots, std::ostream& out) {
  const std::int64_t workers = slots.nodes * slots.per_node;
  if (!model.ok()) {
    out << "memory:\n  not known: " << model.status().message() << "\n";
    return {};
  }
  const std::int64_t share =
      (trainer.batch_prompts + workers - 1) / workers * trainer.samples_per_prompt;
  const bool measured = data.ok() && data->prompt_tokens > 0;
  const std::int64_t responses = policy.training.response_tokens_max;
  const std::int64_t longest =
      std::min(measured ? data->prompt_tokens + responses : policy.positions_max,
               model->max_position_embeddings);
  const auto with_pass = [&](MemoryOptions of, const MicroBatchLimits& limits) {
    set_pass(of, limits, share, trainer.samples_per_prompt, longest, responses);
    return of;
  };
  MemoryOptions options = with_pass({.sequences = share,
                                     .positions = longest,
                                     .recompute_layers = policy.recompute_layers,
                                     .bf16 = policy.bf16},
                                    policy.micro_batch);
  if (policy.adapter) {
    const Result<LoraAdapter> adapter = policy.adapter->folder.empty()
                                            ? LoraAdapter::create(*model, policy.adapter->lora, 0)
                                            : LoraAdapter::load(*model, policy.adapter->folder);
    if (!adapter.ok()) return adapter.status();
    options.trained_elements = adapter->parameters().arena_size();
  }
  const OffloadOptions& policy_offload = policy.learner.offload;
  std::vector<RoleMemory> roles = {{.role = "policy (generates and trains)",
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
  const bool copies = trainer.save_interval > 0 && trainer.async_save;
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
            ? model
            : ModelConfig::load(trainer.critic_model);
    if (!own.ok())
      out << "  critic " << trainer.critic_model
          << ": counted as if it were the policy's: " << own.status().message() << "\n";
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
  const bool on_device = !slots.device.empty() && slots.device != "cpu";
  out << (on_device ? "memory of each process on the host, at its peak:\n"
                    : "memory of each process, at its peak:\n");
  const Result<std::vector<NamedTeacher>> teachers =
      trainer.distills ? teachers_from_config(config) : std::vector<NamedTeacher>();
  for (const NamedTeacher& teacher :
       teachers.value_or({})) {  // what is wrong with them is a contradiction, and told as one
    const Result<std::string> name = config.get_string(teacher.model_key);
    if (!name.ok()) return name.status();
    roles.push_back({.role = teacher.rows.empty() ? "teacher" : "teacher " + teacher.name,
                     .workers = workers,
                     .parts = teacher_memory(*name, *model, scoring, out),
                     .weights_leave = reference->parameters});
  }
  const Result<std::optional<bool>> judges =
      config.find_bool("reward_model.model.fsdp_config.param_offload");
  if (!judges.ok()) return judges.status();
  roles.push_back({.role = "reward",
                   .workers = workers,
                   .parts = reward_memory(config, share * longest, longest, out),
                   .weights_leave = judges->value_or(false),
                   .beside_others = true});
  std::vector<DeviceMemory> devices, drawing;
  std::int64_t all = 0;
  for (RoleMemory& role : roles) {
    if (on_device) {
      (role.devices_of_its_own ? drawing : devices).push_back(device_memory(role));
      role.parts = host_memory(role.parts);
    }
    const bool trains =
        std::any_of(role.parts.begin(), role.parts.end(),
                    [](const MemoryPart& part) { return part.name == "optimizer"; });
    role.parts.push_back(process_memory(trains));
    all += role.total() * role.workers;
    out << "  " << role.role << " x " << role.workers << ": " << bytes_text(role.total()) << " (";
    for (std::size_t i = 0; i < role.parts.size(); ++i)
      out << (i > 0 ? ", " : "") << role.parts[i].name << " " << bytes_text(role.parts[i].bytes);
    out << ")\n";
  }
  out << "  all: " << bytes_text(all) << " over the nodes\n";
  if (on_device)
    out << "memory of each device (" << slots.device << "), at its peak:\n  "
        << bytes_text(device_peak(devices)) << "\n";
  if (!drawing.empty())
    out << "  " << bytes_text(device_peak(drawing)) << " of those that generate a step ahead\n";
  return {};
}

}  // namespace

Status dry_run(const Config& config, std::ostream& out) {
  const Result<TrainerOptions> trainer = TrainerOptions::from_config(config);
  if (!trainer.ok()) return trainer.status();
  const Result<SlotOptions> slots = SlotOptions::from_config(config);
  if (!slots.ok()) return slots.status();
  std::vector<std::string> wrong = contradictions(*trainer, *slots, config);
  const Result<PolicyOptions> policy = PolicyOptions::from_config(config, slots->device);
  if (!policy.ok() && policy.status().code() != runtime::ErrorCode::kNotFound)
    return policy.status();
  if (trainer->uses_critic()) {
    const Result<CriticOptions> critic = CriticOptions::from_config(config);
    if (!critic.ok()) wrong.push_back(critic.status().message());
    if (const auto schedule = lr_schedule_from_config(config, kCriticRole, 1); !schedule.ok())
      wrong.push_back(schedule.status().message());
  }
  if (const auto schedule = lr_schedule_from_config(config, kActorRole, 1); !schedule.ok())
    wrong.push_back(schedule.status().message());
  if (const auto agent = AgentOptions::from_config(config); !agent.ok())
    wrong.push_back(agent.status().message());
  if (const auto profile = ProfileOptions::from_config(config, trainer->folder); !profile.ok())
    wrong.push_back(profile.status().message());
  if (const auto order = RowOrderChoice::from_config(config, *trainer); !order.ok())
    wrong.push_back(order.status().message());
  // Of reward models only that they can be there: one may be on the hub, and is not fetched.
  const RewardModelLoader no_model = [](const std::filesystem::path&,
                                        bool) -> Result<std::unique_ptr<Scorer>> {
    return std::unique_ptr<Scorer>();
  };
  const auto reward = RewardFunction::from_config(config, /*workers=*/1, /*start=*/false, no_model);
  if (!reward.ok()) wrong.push_back(reward.status().message());
  add_missing(config, *trainer, wrong);
  if (policy.ok()) {
    const std::int64_t workers = slots->nodes * slots->per_node;
    for (const std::string& note : config.notes()) out << note << "\n";
    if (trainer->estimator == AdvantageEstimator::kGrpo && trainer->samples_per_prompt < 2) {
      out << "algorithm.adv_estimator=grpo compares the responses to a prompt with each other, and "
             "actor_rollout_ref.rollout.n is 1: a response's score is its advantage then\n";
    }
    const Result<std::filesystem::path> model = find_local_model(policy->model);
    if (!model.ok()) return model.status();
    const Result<DataSize> data = measure_data(config, *trainer, *model, workers,
                                               reward.ok() ? reward->get() : nullptr, wrong);
    print_batches(*trainer, *policy, data, workers, out);
    out << "where:\n  " << slots->nodes << " node(s) with " << slots->per_node
        << " worker(s) of each role; checkpoints and logs in " << trainer->folder.string() << "\n";
    const Status printed =
        print_memory(config, *trainer, *policy, ModelConfig::load(*model), data, *slots, out);
    if (policy->model == kToyModelName) std::filesystem::remove_all(*model);
    if (!printed.ok()) wrong.push_back(printed.message());
  }
  if (wrong.empty()) return {};
  std::string lines;
  for (const std::string& line : wrong) lines += (lines.empty() ? "" : "\n") + line;
  return runtime::invalid_argument(std::move(lines));
}

}  // namespace rl
