#include "rl/run/preference/preference_stage.h"

#include <utility>

#include "rl/metrics/step_metrics.h"
#include "rl/model/model_config.h"
#include "rl/run/teacher_vocabulary.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::split;
using runtime::Status;

// The sum of the workers' parts, below train/ or val/.
Metrics below(const std::string& section, const std::vector<Metrics>& parts) {
  Metrics metrics;
  for (const auto& [name, value] : sum_metrics(parts))
    metrics[name.starts_with("perf/") ? name : section + name] = value;
  return metrics;
}

}  // namespace

Status PreferenceStage::open(const StageSetup& setup) {
  setup_ = setup;
  const Result<PreferenceObjective> objective = PreferenceObjective::from_config(setup.config);
  if (!objective.ok()) return objective.status();
  if (objective->is_reward_model() && setup.options.adapter)
    return runtime::unimplemented(
        "starling rm trains all weights: an adapter would leave the reward's head as it began; set "
        "model.lora_rank=0");
  pairs_ = objective->is_pairs();
  const PreferenceForm form = pairs_ ? PreferenceForm::kPairs : PreferenceForm::kSingles;
  if (form == PreferenceForm::kSingles && setup.options.batch_rows < 2) {
    return runtime::invalid_argument(
        "data.train_batch_size: starling kto estimates the divergence from responses to other "
        "prompts in the batch: set it to at least 2");
  }
  if (objective->needs_reference() && !setup.options.adapter)
    reference_ = setup.model;  // an adapter's is the model without it
  if (objective->needs_reference() &&
      setup.config.find_string(kReferencePath).value_or(std::nullopt)) {
    Result<std::filesystem::path> reference =
        resolve_model(setup.config, kReferencePath, setup.options.seed);
    if (!reference.ok()) return reference.status();
    if (const Status reads = check_reads_vocabulary(setup.model, *reference, "reference");
        !reads.ok())
      return reads.with_context(kReferencePath);
    reference_ = std::move(*reference);
  }
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  PreferenceFeedOptions options{.model = setup.model,
                                .context = model->max_position_embeddings,
                                .vocabulary = model->vocab_size,
                                .form = form,
                                .batch_rows = setup.options.batch_rows,
                                .workers = setup.workers,
                                .shuffle = setup.options.shuffle,
                                .shuffle_seed = setup.options.shuffle_seed};
  const Result<std::optional<DatasetOptions>> train =
      preference_dataset(setup.config, Split::kTrain, form);
  if (!train.ok()) return train.status();
  Result<std::unique_ptr<PreferenceFeed>> feed =
      PreferenceFeed::create(setup.config, **train, options);
  if (!feed.ok()) return feed.status();
  feed_ = std::move(*feed);

  const Result<std::optional<DatasetOptions>> validation =
      preference_dataset(setup.config, Split::kValidation, form);
  if (!validation.ok()) return validation.status();
  if (!*validation) return {};
  options.batch_rows = 1;  // any number of rows will do
  feed = PreferenceFeed::create(setup.config, **validation, options);
  if (!feed.ok()) return feed.status().with_context("validation data");
  validation_feed_ = std::move(*feed);
  return {};
}

std::vector<std::filesystem::path> PreferenceStage::frozen_models() const {
  return reference_.empty() ? std::vector<std::filesystem::path>{}
                            : std::vector<std::filesystem::path>{reference_};
}

Result<std::string> PreferenceStage::first_row() const {
  Result<std::string> row = feed_->first_row();
  if (!row.ok()) return row;
  const Result<PreferenceObjective> objective = PreferenceObjective::from_config(setup_.config);
  if (!objective.ok()) return objective.status();
  return *row + (objective->is_reward_model()
                     ? "trained on: the reward that the last token of each response is given\n"
                     : "trained on: the tokens behind >; the prompt has no loss\n");
}

Status PreferenceStage::start(runtime::Runtime& runtime, const WorkerSlots& slots) {
  auto workers = WorkerGroup<PreferenceActor>::spawn(runtime, slots, /*reserves=*/true,
                                                     setup_.spec("preference", slots));
  if (!workers.ok()) return workers.status();
  workers_ = std::move(*workers);
  return {};
}

Status PreferenceStage::draw() {
  Result<PreferenceStep> step = feed_->next();
  if (step.ok()) drawn_ = std::move(*step);
  return step.status();
}

std::vector<PreferencePasses> PreferenceStage::passes_of(const PreferenceStep& step) const {
  return plan_preferences(step.batches, pairs_,
                          std::vector(step.batches.size(), setup_.options.micro_batch));
}

Result<Metrics> PreferenceStage::step(double learning_rate) {
  const auto reports =
      workers_.fetch(&PreferenceActor::update, split(drawn_.batches), split(passes_of(drawn_)),
                     PreferenceTotals{drawn_.rows, drawn_.wanted}, learning_rate);
  if (!reports.ok()) return reports.status();
  Metrics metrics = below("train/", *reports);
  metrics["train/global_tokens"] = static_cast<double>(drawn_.tokens);
  return metrics;
}

Result<Metrics> PreferenceStage::validate() {
  const Result<std::vector<PreferenceStep>> steps =
      validation_feed_->all(setup_.options.batch_rows);
  if (!steps.ok()) return steps.status();
  PreferenceTotals totals;
  for (const PreferenceStep& step : *steps) {
    totals.rows += step.rows;
    totals.wanted += step.wanted;
  }
  std::vector<Metrics> parts;
  for (const PreferenceStep& step : *steps) {
    const auto reports = workers_.fetch(&PreferenceActor::evaluate, split(step.batches),
                                        split(passes_of(step)), totals, step.rows);
    if (!reports.ok()) return reports.status();
    parts.insert(parts.end(), reports->begin(), reports->end());
  }
  return below("val/", parts);
}

Status PreferenceStage::load(const std::filesystem::path& folder) {
  return workers_.fetch(&PreferenceActor::load, folder.string());
}

}  // namespace rl
