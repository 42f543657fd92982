#include "rl/app/dry_run.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/actor/worker_slots.h"
#include "rl/agent/agent_options.h"
#include "rl/app/cached_models.h"
#include "rl/app/kept.h"
#include "rl/checkpoint/resume.h"
#include "rl/data/dataset.h"
#include "rl/data/json_text.h"
#include "rl/data/prompt_builder.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/row_order_choice.h"
#include "rl/feed/shown_row.h"
#include "rl/hub/hub_cache.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/plan/memory_plan.h"
#include "rl/reward/process_scorer.h"
#include "rl/reward/reward_function.h"
#include "rl/run/profile_options.h"
#include "rl/run/reward_model_path.h"
#include "rl/run/rl/run_feeds.h"
#include "rl/run/rl/run_fit.h"
#include "rl/run/rl/run_memory.h"
#include "rl/run/rl/teachers.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/run/rl/training_feed.h"
#include "rl/run/stage_memory.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/reward_model.h"
#include "rl/worker/toy_model.h"
#include "runtime/core/ids.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kActorModel = "actor_rollout_ref.model.path";

// Keys of which each is right and which contradict each other.
std::vector<std::string> contradictions(const TrainerOptions& trainer, const SlotOptions& slots,
                                        const Config& config) {
  std::vector<std::string> found = trainer.uneven_batches(slots.nodes * slots.per_node);
  const auto given = config.find_string(kActorModel);
  if (given.ok() && !given->has_value())
    found.push_back(std::string(kActorModel) + " is not set: there is no model to train");
  if (const auto teachers = teachers_from_config(config); trainer.distills && !teachers.ok())
    found.push_back(teachers.status().message());
  return found;
}

// What the training data are, as far as a run's size depends on it.
struct DataSize {
  std::int64_t rows = 0;
  RunLengths lengths = {};
  std::string first = {};  // the first row, for people
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
                    .has_ground_truth = row.answerless.empty(),
                    .ground_truth_is_json = row.ground_truth_is_json});
  const auto shown = [&](const char* key) {
    return excerpt(json_line(nlohmann::ordered_json(given.at(key))), kShownValueBytes);
  };
  text += "  its answer: " + (row.answerless.empty() ? shown("ground_truth") : "none");
  return text + "\n  what the reward gets: the response, ground_truth " + shown("ground_truth") +
         ", data_source " + shown("data_source") + ", extra_info " + shown("extra_info") + "\n";
}

// That what a warm start learns can be read, where the model is not here.
Status check_demonstrations(const Config& config, const TrainerOptions& trainer) {
  if (trainer.warm_start.steps < 1) return {};
  const Result<std::optional<DatasetOptions>> options =
      dataset_options(config, Split::kDemonstrations);
  if (!options.ok()) return options.status();
  return Dataset::load(**options).status().with_context("warm start");
}

// Opens the held-out rows, read in their order in batches of any size.
Result<std::unique_ptr<PromptFeed>> open_held_out(const Config& config,
                                                  const DatasetOptions& validation,
                                                  PromptFeedOptions reading) {
  reading.batch_prompts = reading.mini_batch_prompts = reading.workers = 1;
  reading.shuffle = false;
  reading.adaptive.reset();
  reading.python_sampler = {};
  reading.teachers.clear();
  return PromptFeed::create(config, validation, reading);
}

void add_longest_prompt(std::int64_t tokens, DataSize& size) {
  size.lengths.prompt_tokens = tokens;
  if (size.rows > kPromptsMeasured)
    size.warnings.push_back(
        "of " + std::to_string(size.rows) + " prompts the longest of the first " +
        std::to_string(kPromptsMeasured) + " counts for memory; longer ones behind them take more");
}

void add_demonstrations(const Config& config, const PromptFeed& feed, DataSize& size) {
  add_data_warnings(feed.dataset(), demonstration_warnings(config, feed.tokenizer()),
                    size.warnings);
  add_warnings(feed.unwritten_fields(), size.warnings);
  size.lengths.demonstrations = feed.demonstration_lengths();
  if (const auto note = unseen_rows_note(feed.demonstration_lengths()))
    size.warnings.push_back("warm start: " + *note);
}

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
    if (const Status there = check_demonstrations(config, trainer); !there.ok())
      wrong.push_back(there.message());
    return DataSize{.rows = rows->size()};
  }
  const Result<std::unique_ptr<PromptFeed>> feed = PromptFeed::create(config, **options, *feeding);
  if (!feed.ok()) return fail(feed.status());
  DataSize size{.rows = (*feed)->rows()};
  std::vector<const Dataset*> read = {&(*feed)->dataset()};
  std::unique_ptr<PromptFeed> held_out;
  if (validation.ok() && *validation &&
      (trainer.validation_interval >= 1 || trainer.validate_first)) {
    Result<std::unique_ptr<PromptFeed>> opened = open_held_out(config, **validation, *feeding);
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
  const Result<std::int64_t> longest = longest_prompt(config, model, (*feed)->dataset());
  if (!longest.ok()) return fail(longest.status());
  add_longest_prompt(*longest, size);
  if (size.rows > 0) {
    const Result<DataRow> first = (*feed)->dataset().read(0);
    if (!first.ok()) return fail(first.status());
    if (const auto prompt = builder->text(*first); prompt.ok())
      size.first = first_row_text(*first, *prompt);
  }
  const DataWarningOptions matters = DataWarningOptions::of_prompts(config, *tokenizer);
  for (const Dataset* dataset : read) add_data_warnings(*dataset, matters, size.warnings);
  add_warnings((*feed)->unwritten_fields(), size.warnings);
  if (held_out) add_warnings(held_out->unwritten_fields(), size.warnings);
  if (trainer.warm_start.steps > 0) {
    const auto demonstrations = open_demonstrations(config, trainer, *feeding);
    if (!demonstrations.ok())
      wrong.push_back(demonstrations.status().message());
    else
      add_demonstrations(config, **demonstrations, size);
  }
  if (reward == nullptr) return size;
  if (const Status judged = check_reward_rows(*reward, read); !judged.ok())
    wrong.push_back(judged.message());
  return size;
}

// A name that can only be one of this machine's. What the hub may have is not fetched.
bool is_path(const std::string& name) {
  return name != kToyModelName && !HubName::parse(name).ok();
}

// The keys of the models that a run loads, reward models aside.
std::vector<std::string> model_keys(const Config& config, const TrainerOptions& trainer) {
  std::vector<std::string> keys = {kActorModel};
  if (trainer.uses_critic()) keys.emplace_back("critic.model.path");
  const auto teachers = trainer.distills
                            ? teachers_from_config(config)
                            : Result<std::vector<NamedTeacher>>(std::vector<NamedTeacher>());
  for (const NamedTeacher& teacher : teachers.value_or({})) keys.push_back(teacher.model_key);
  return keys;
}

// What parts of a run would find wrong with their own keys.
void add_wrong_parts(const Config& config, const TrainerOptions& trainer,
                     std::vector<std::string>& wrong) {
  if (trainer.uses_critic()) {
    const Result<CriticOptions> critic = CriticOptions::from_config(config);
    if (!critic.ok()) wrong.push_back(critic.status().message());
    if (const auto schedule = lr_schedule_from_config(config, kCriticRole, 1); !schedule.ok())
      wrong.push_back(schedule.status().message());
  }
  if (const auto schedule = lr_schedule_from_config(config, kActorRole, 1); !schedule.ok())
    wrong.push_back(schedule.status().message());
  if (const auto agent = AgentOptions::from_config(config); !agent.ok())
    wrong.push_back(agent.status().message());
  if (const auto profile = ProfileOptions::from_config(config, trainer.folder); !profile.ok())
    wrong.push_back(profile.status().message());
  if (const auto order = RowOrderChoice::from_config(config, early_draws(trainer)); !order.ok())
    wrong.push_back(order.status().message());
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
  for (const std::string& key : model_keys(config, trainer)) {
    const auto name = config.find_string(key);
    if (name.ok() && *name && is_path(**name) && !std::filesystem::exists(**name, error))
      wrong.push_back(key + ": there is no " + **name + " here");
  }
}

// Where the model is. The toy model is made for the while, with a run's seed.
Result<std::filesystem::path> find_local_model(const std::filesystem::path& model,
                                               std::uint64_t seed) {
  if (model != kToyModelName) return model;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("starling_toy_" + runtime::JobId::random().hex());
  const Status made = make_toy_model(folder, {.seed = seed});
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

// Where what the run leaves lies.
std::string kept_text(const TrainerOptions& trainer) {
  return "  checkpoints " + trainer.save.text(trainer.folder, trainer.save_best.goal.metric) +
         "\n  configuration and logs in " + trainer.folder.string() + "\n";
}

// Whether there is a checkpoint to continue from.
bool goes_on(const TrainerOptions& trainer, const Config& config) {
  const auto checkpoint = checkpoint_to_resume(trainer.resume, trainer.folder, config.command());
  return checkpoint.ok() && *checkpoint;
}

// What each trained role learns by, as far as the number of steps is known.
Status print_rates(const Config& config, const TrainerOptions& trainer,
                   const Result<DataSize>& data, std::ostream& out) {
  const std::int64_t steps_a_batch = trainer.estimator->traits().steps_per_batch();
  const std::int64_t steps =
      data.ok() ? trainer.length.scheduled(data->rows / trainer.batch_prompts * steps_a_batch)
                : trainer.length.steps.value_or(0);
  out << "learning rate:\n";
  std::vector<std::pair<const char*, const char*>> roles = {{"policy", kActorRole}};
  if (trainer.uses_critic()) roles.emplace_back("critic", kCriticRole);
  for (const auto& [name, role] : roles) {
    const Result<LrScheduleOptions> schedule = lr_schedule_from_config(config, role, steps);
    if (!schedule.ok()) return schedule.status();
    out << "  " << name << " " << schedule_text(*schedule) << " ("
        << config.origin(std::string(role) + ".optim.lr") << ")\n";
  }
  if (trainer.warm_start.steps > 0)
    out << "  warm start " << schedule_text(trainer.warm_start.schedule()) << " ("
        << config.origin("sft.lr") << ")\n";
  return {};
}

void print_memory(const RunMemory& memory, const SlotOptions& slots, std::ostream& out) {
  const bool on_device = memory.device_bytes > 0;
  for (const std::string& note : memory.notes) out << "  " << note << "\n";
  out << (on_device ? "memory of each process on the host, at its peak:\n"
                    : "memory of each process, at its peak:\n");
  for (const RoleMemory& role : memory.roles) {
    out << "  " << role.role << " x " << role.workers << ": " << bytes_text(role.total()) << " (";
    for (std::size_t i = 0; i < role.parts.size(); ++i)
      out << (i > 0 ? ", " : "") << role.parts[i].name << " " << bytes_text(role.parts[i].bytes);
    out << ")\n";
  }
  out << "  all: " << bytes_text(memory_of_all(memory.roles)) << " over the nodes\n";
  if (on_device)
    out << "memory of each device (" << slots.device << "), at its peak:\n  "
        << bytes_text(memory.device_bytes) << "\n";
  if (memory.ahead_device_bytes > 0)
    out << "  " << bytes_text(memory.ahead_device_bytes)
        << " of those that generate a step ahead\n";
}

// Prints it, and finds out whether it fits.
Status judge_memory(const Config& config, const TrainerOptions& trainer,
                    const PolicyOptions& policy, const Result<ModelConfig>& model,
                    const RunLengths& lengths, const SlotOptions& slots,
                    std::span<const NodeRoom> nodes, std::ostream& out) {
  if (!model.ok()) {
    out << "memory:\n  not known: " << model.status().message() << "\n";
    return check_groups(config, trainer, slots);
  }
  SlotOptions places = slots;
  if (trainer.rollout_workers) {
    places.separate_nodes = trainer.rollout_workers->nodes;
    places.separate_per_node = trainer.rollout_workers->per_node;
  }
  const Result<RunFit> fit = fit_run(config, trainer, policy, *model, lengths, places, nodes);
  if (!fit.ok()) return fit.status();
  print_memory(fit->memory, slots, out);
  if (const std::string zero = fit->zero.text(); !zero.empty()) out << "  " << zero << "\n";
  for (const std::string& line : mesh_lines(fit->zero.settled(config), trainer, slots))
    out << "  " << line << "\n";
  if (const auto warning = cpu_warning(places, nodes)) out << "note: " << *warning << "\n";
  if (const Status enough = check_enough_nodes(places, nodes); !enough.ok()) return enough;
  if (!fit->fits.ok()) return fit->fits;
  places.memory = slot_memory(fit->memory.roles, places);
  return nodes.empty() ? Status() : plan_slots(places, nodes).status();
}

}  // namespace

Status dry_run(const Config& given, std::ostream& out, std::span<const NodeRoom> nodes) {
  const Result<TrainerOptions> named = TrainerOptions::from_config(given);
  if (!named.ok()) return named.status();
  const CachedModels models = find_cached_models(given, model_keys(given, *named));
  const Config& config = models.config;
  const Result<TrainerOptions> trainer = TrainerOptions::from_config(config);
  if (!trainer.ok()) return trainer.status();
  const Result<SlotOptions> slots = SlotOptions::from_config(config);
  if (!slots.ok()) return slots.status();
  std::vector<std::string> wrong = contradictions(*trainer, *slots, config);
  const Result<PolicyOptions> policy = PolicyOptions::from_config(config, slots->device);
  if (!policy.ok() && policy.status().code() != runtime::ErrorCode::kNotFound)
    return policy.status();
  add_wrong_parts(config, *trainer, wrong);
  // Of reward models only that they can be there: one may be on the hub, and is not fetched.
  const RewardModelLoader no_model = [](const std::filesystem::path&,
                                        bool) -> Result<std::unique_ptr<Scorer>> {
    return std::unique_ptr<Scorer>();
  };
  const auto reward = RewardFunction::from_config(config, /*workers=*/1, /*start=*/false, no_model);
  if (!reward.ok()) wrong.push_back(reward.status().message());
  add_missing(config, *trainer, wrong);
  wrong.insert(wrong.end(), models.unreachable.begin(), models.unreachable.end());
  if (policy.ok()) {
    const std::int64_t workers = slots->nodes * slots->per_node;
    for (const std::string& note : config.notes()) out << note << "\n";
    for (const std::string& note : models.notes) out << "note: " << note << "\n";
    const EstimatorTraits& estimator = trainer->estimator->traits();
    if (estimator.does_with_one && trainer->samples_per_prompt < 2) {
      out << "algorithm.adv_estimator=" << estimator.name
          << " compares the responses to a prompt with each other, and "
             "actor_rollout_ref.rollout.n is 1: a response's score is its advantage then\n";
    }
    const Result<std::filesystem::path> model = find_local_model(policy->model, trainer->seed);
    if (!model.ok()) return model.status();
    const Result<DataSize> data = measure_data(config, *trainer, *model, workers,
                                               reward.ok() ? reward->get() : nullptr, wrong);
    print_batches(*trainer, *policy, data, workers, out);
    if (const Status rates = print_rates(config, *trainer, data, out);
        !rates.ok() && std::find(wrong.begin(), wrong.end(), rates.message()) == wrong.end())
      wrong.push_back(rates.message());
    out << "where:\n  " << slots->nodes << " node(s) with " << slots->per_node
        << " worker(s) of each role\n"
        << kept_text(*trainer);
    if (const Status resumes = print_resume(out, trainer->resume, trainer->folder, given,
                                            kActorModel, *model, policy->adapter.has_value());
        !resumes.ok())
      wrong.push_back(resumes.message());
    const Result<ModelConfig> model_config = models.lacks(kActorModel)
                                                 ? runtime::not_found("the model is not here")
                                                 : ModelConfig::load(*model);
    TrainerOptions sized = *trainer;
    if (goes_on(*trainer, config)) sized.warm_start.steps = 0;  // it is behind
    const Status fits = judge_memory(config, sized, *policy, model_config,
                                     data.ok() ? data->lengths : RunLengths(), *slots, nodes, out);
    if (policy->model == kToyModelName) std::filesystem::remove_all(*model);
    if (!fits.ok()) wrong.push_back(fits.message());
  }
  if (wrong.empty()) return {};
  std::string lines;
  for (const std::string& line : wrong) lines += (lines.empty() ? "" : "\n") + line;
  return runtime::invalid_argument(std::move(lines));
}

}  // namespace rl
